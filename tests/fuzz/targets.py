"""The readers of data on disk, fed with any bytes: each returns a value or raises the one error that it
declares.

Each target takes bytes, and tells whether a reader has accepted them. If it raises an error that is not
declared, that is a bug. Formats with a checksum get the bytes both unchanged and sealed with the right
checksum, because hardly any mutation would get past the checksum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from barnabas.broker.produce.inline_budget import InlineBudget
from barnabas.broker.produce.produced_records import Prepared, prepare
from barnabas.coordinator.metadata.kafka_metadata import KafkaMetadata
from barnabas.coordinator.metadata.snapshot import SnapshotId, decode_snapshot, encode_snapshot
from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX, unpack
from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    control_key,
    decode_control_record,
    encode_checkpoint,
)
from barnabas.protocol.errors import ApiError
from barnabas.protocol.metadata_records import NoOpRecord, TopicRecord
from barnabas.protocol.record_batch import CONTROL_FLAG, HEADER_BYTES, Compression, build_batch
from barnabas.protocol.record_walk import NO_TIMESTAMP, record_spans
from barnabas.protocol.records import encode_records
from barnabas.protocol.share_state_records import decode_share_state_record
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.stepwise import Steps
from barnabas.storage.errors import StorageError
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_offsets
from barnabas.storage.format.producer_snapshot import SnapshotCorrupt
from barnabas.storage.format.producer_snapshot import decode_snapshot as decode_producers
from barnabas.storage.format.share_snapshot import (
    ShareSnapshot,
    ShareSnapshotCorrupt,
    decode_share_snapshot,
    encode_share_snapshot,
)
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.pipeline.decoding.batches import RECORDS, body_of, sealed
from tests.pipeline.decoding.decoders import compare_decoders
from tests.protocol.record_walk.walkers import NOW_MS, STRICT, compare_walkers
from tests.storage.log_building import (
    DIRECTORY,
    TOPIC_ID,
    append,
    append_deltas,
    delta_batch,
    open_log,
    produced,
)
from tests.storage.memory_filesystem import MemoryFileSystem

Target = Callable[[bytes], bool]

_PRODUCED = [record._replace(offset=index) for index, record in enumerate(RECORDS)]
_SEGMENT = f"{DIRECTORY}/{0:020d}"


def log_recovery(data: bytes) -> bool:
    """The bytes are a segment. The log opens, accepts records, and opens again with the same content."""
    return asyncio.run(_open_twice({".log": data})) is not None


def share_state_in_a_log(data: bytes) -> bool:
    """The bytes are the share state in a control batch that is valid otherwise."""
    key, value = data[:4], data[4:]
    strange = build_batch(1, [(key, value)], leader_epoch=0, timestamp_ms=0, attributes=CONTROL_FLAG)
    return asyncio.run(_open_twice({".log": _data_batch(0) + strange + _data_batch(2)})) is not None


def share_index(data: bytes) -> bool:
    """The bytes are the share index of a valid log: the holes in its offsets follow from the log."""
    log = _data_batch(0) + delta_batch(1, 0).data + _data_batch(2)
    opened = asyncio.run(_open_twice({".log": log, ".shareindex": data}))
    assert opened is not None
    assert opened.control_runs.data_ranges(0, 3) == [(0, 0), (2, 3)]
    return True


def indexes(data: bytes) -> bool:
    """The bytes are the offset index and the time index of a valid log."""
    log = b"".join(_data_batch(offset) for offset in range(3))
    opened = asyncio.run(_open_twice({".log": log, ".index": data, ".timeindex": data}))
    assert opened is not None
    return True


def control_record(data: bytes) -> bool:
    """The first byte is the type, the rest is the value."""
    kinds = (ControlType.SHARE_CHECKPOINT, ControlType.SHARE_DELTA)
    key = control_key(kinds[data[0] % 2] if data else kinds[0])
    is_value = _accepts(decode_control_record, key, data[1:])
    return _accepts(decode_control_record, data[:4], data[4:]) or is_value


def share_state_record(data: bytes) -> bool:
    """The first byte is the length of the key."""
    length = data[0] if data else 0
    return _accepts(decode_share_state_record, data[1 : length + 1], data[length + 1 :])


def share_snapshot(data: bytes) -> bool:
    """A file that is a hint: anything that differs from the written content is refused."""
    try:
        snapshot = decode_share_snapshot(data)
    except ShareSnapshotCorrupt:
        return False
    assert encode_share_snapshot(snapshot) == data
    return True


def metadata_snapshot(data: bytes) -> bool:
    """A snapshot of Barnabas or of Kafka."""
    is_ours = _accepts(decode_snapshot, data)
    return _accepts(KafkaMetadata().replay_snapshot, data) or is_ours


def metadata_record(data: bytes) -> bool:
    """The bytes are one record of a batch that is valid otherwise."""
    batch = build_batch(0, [(None, data)], leader_epoch=0, timestamp_ms=0)
    header_and_footer = encode_snapshot(SnapshotId(1, 0), [], 0)
    is_in_snapshot = metadata_snapshot(batch + header_and_footer)
    return _accepts(KafkaMetadata().replay_log, batch, 0) or is_in_snapshot


def record_batches(data: bytes) -> bool:
    """The bytes are a log; and the records of a batch, whose codec and count are the first two bytes.

    The native decoder and the native walker read memory without bounds checks. Their results equal those of
    their Python twins.
    """
    is_log = compare_decoders(data).error is None
    if len(data) < 2:
        return is_log
    compare_walkers(data[2:], data[1])
    compare_walkers(data[2:], data[1], STRICT)
    batch = sealed(data[2:], attributes=data[0] % 6, record_count=data[1], last_offset_delta=2**31 - 1)
    return compare_decoders(batch).error is None or is_log


def produced_records(data: bytes) -> bool:
    """A batch as a client sends it: the bytes alone, and behind a correct header.

    Either a topic refuses it, or every reader can read all of its records.
    """
    is_batch = _produces(data)
    if len(data) < 2:
        return is_batch
    header = {"attributes": data[0] % 5, "record_count": data[1], "last_offset_delta": data[1] - 1}
    return _produces(sealed(data[2:], **header)) or is_batch


def small_files(data: bytes) -> bool:
    """A checkpoint of offsets, and a snapshot of producers."""
    is_checkpoint = _accepts(decode_offsets, data, declared=CheckpointCorrupt)
    return _accepts(decode_producers, data, declared=SnapshotCorrupt) or is_checkpoint


def _accepts(
    reader: Callable[..., object], *given: Any, declared: type[Exception] = RecordFormatError
) -> bool:
    try:
        reader(*given)
    except declared:
        return False
    return True


def _produces(batch: bytes) -> bool:
    try:
        prepared = prepare(batch, LogConfig(), NOW_MS, InlineBudget(), True, True)
        if not isinstance(prepared, Prepared):
            prepared = _result_of(prepared)
    except ApiError:
        return False
    ((_, header),) = prepared.batches
    compressed = memoryview(prepared.records)[HEADER_BYTES:]
    body = bytes(unpack(header.compression, compressed, bytes_max=DECOMPRESSED_BYTES_MAX))
    spans = list(record_spans(body, header.record_count))
    assert [span.offset_delta for span in spans] == list(range(header.record_count))
    assert header.last_offset_delta == header.record_count - 1
    latest_ms = max(header.base_timestamp_ms + span.timestamp_delta_ms for span in spans)
    assert header.max_timestamp_ms == max(latest_ms, NO_TIMESTAMP)
    return True


def _result_of(steps: Steps[Prepared]) -> Prepared:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            prepared: Prepared = end.value
            return prepared


async def _open_twice(files: dict[str, bytes]) -> PartitionLog | None:
    filesystem = MemoryFileSystem()
    filesystem.make_directory(DIRECTORY)
    for suffix, content in files.items():
        filesystem.files[_SEGMENT + suffix] = bytearray(content)
    try:
        log = await open_log(filesystem)
    except (RecordFormatError, StorageError):
        return None
    assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
    with suppress(StorageError, RecordFormatError):
        log.read(log.log_start_offset, bytes_max=1 << 20)
    assert append(log).error is None
    assert append_deltas(log).error is None
    again = await open_log(filesystem.copy())
    assert (again.log_end_offset, again.high_watermark) == (log.log_end_offset, log.high_watermark)
    return again


def _data_batch(offset: int) -> bytes:
    batch = bytearray(produced())
    batch[:8] = offset.to_bytes(8, "big")
    return bytes(batch)


def _checkpoint_value() -> bytes:
    _, value = encode_checkpoint(ShareCheckpoint("group", 1, 1, 0, 0, 0, 0, 3, 0, ()))
    return value


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        log_recovery,
        share_state_in_a_log,
        share_index,
        indexes,
        control_record,
        share_state_record,
        share_snapshot,
        metadata_snapshot,
        metadata_record,
        record_batches,
        produced_records,
        small_files,
    )
}

SEEDS: dict[str, list[bytes]] = {
    "log_recovery": [_data_batch(0) + delta_batch(1, 0).data + _data_batch(2)],
    "share_state_in_a_log": [control_key(ControlType.SHARE_CHECKPOINT) + _checkpoint_value()],
    "control_record": [b"\0" + _checkpoint_value()],
    "share_snapshot": [encode_share_snapshot(ShareSnapshot(5, 0, {"group": 3}))],
    "metadata_snapshot": [
        encode_snapshot(SnapshotId(2, 0), [TopicRecord(name="t", topic_id=TOPIC_ID), NoOpRecord()], 0)
    ],
    "record_batches": [encode_records(RECORDS), b"\0\3" + body_of(encode_records(RECORDS))],
    "produced_records": [
        encode_records(_PRODUCED),
        *(
            bytes([codec, len(_PRODUCED)]) + body_of(encode_records(_PRODUCED, compression=codec))
            for codec in Compression
        ),
    ],
    "small_files": [b"0\n1\norders 0 5\n"],
}
"""Valid data to begin with."""
