"""Logs and batches for the storage tests: small, with fixed times and ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from barnabas.protocol.control_record import (
    VALUE_VERSION,
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    build_control_batch,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.protocol.record_batch import (
    BatchHeader,
    ProducedBatch,
    build_batch,
    iterate_headers,
    validate_produced,
)
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import Buffer
from barnabas.runtime.moment import Moment
from barnabas.runtime.stepwise import StepwiseWork
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log.appended import Append, Appended
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.pending_append import AppendGroup
from barnabas.storage.log_config import LogConfig, StorageConfig
from barnabas.storage.segments.control_batch import ControlBatch
from barnabas.storage.state.log_files import LogPlace
from barnabas.storage.state.newest_batches import KeptBatches
from barnabas.storage.state.shared_parts import SharedParts
from barnabas.storage.topic_partition import TopicPartition
from tests.storage.memory_filesystem import MemoryFileSystem

TOPIC_ID = UUID(int=7)
KEY = TopicPartition("orders", 0)
DIRECTORY = "/data/orders-0"
NOW_MS = 1_000_000
MOMENT = Moment(now_ms=0, wall_ms=NOW_MS)
"""When logs are opened."""
COLLIDING = ("gc1127d5c38", "g62fe1353")
"""Two group ids with the same hash in the share index."""


async def open_log(
    filesystem: FileSystem, *, config: LogConfig | None = None, **options: Any
) -> PartitionLog:
    """The log under test, by default at leader epoch 0, and without its newest batches in memory: its file is
    read.
    """
    opening: dict[str, Any] = {"leader_epoch": 0, "moment": MOMENT}
    opening |= {name: options.pop(name) for name in (*opening, "on_flush_due") if name in options}
    return await PartitionLog.open(place_of(filesystem, config=config, **options), **opening)


def place_of(filesystem: FileSystem, *, config: LogConfig | None = None, **options: Any) -> LogPlace:
    """The place of the log under test."""
    storage = options.setdefault("storage", StorageConfig())
    shared = SharedParts.make(filesystem, options.get("directory", DIRECTORY), storage.open_files_max)
    place: dict[str, Any] = {
        "directory": DIRECTORY,
        "topic_partition": KEY,
        "topic_id": TOPIC_ID,
        "config": config or LogConfig(),
        "shared": shared._replace(kept_batches=KeptBatches(0)),
    }
    return LogPlace(filesystem=filesystem, **{**place, **options})


def small_storage(**settings: Any) -> StorageConfig:
    return StorageConfig(**settings)


def produced(
    count: int = 1,
    *,
    value: bytes = b"value",
    timestamp_ms: int = NOW_MS,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """A batch in the form in which a client sends it."""
    return build_batch(
        0,
        [(None, value)] * count,
        leader_epoch=-1,
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def validated(batch: bytes) -> Sequence[ProducedBatch]:
    return validate_produced(batch, message_bytes_max=2**31 - 1)


def append(log: PartitionLog, count: int = 1, *, now_ms: int = NOW_MS, **options: Any) -> Append:
    batch = produced(count, **options)
    return log.append_produced(batch, validated(batch), now_ms)


def sequenced(log: PartitionLog, sequence: int, count: int = 1, *, producer_epoch: int = 0) -> Append:
    """Appends a batch of producer 9 with this sequence."""
    return append(log, count, producer_id=9, producer_epoch=producer_epoch, base_sequence=sequence)


def delta_batch(offset: int, leader_epoch: int, group_id: str = "group") -> ControlBatch:
    state = StateRange(offset, offset, RecordState.ACKNOWLEDGED, 1, Cause.ACCEPT)
    key, value = encode_delta(ShareDelta(group_id, 1, 1, NOW_MS, -1, (state,)))
    data = build_control_batch(offset, leader_epoch, NOW_MS, key, value)
    return ControlBatch(data, 0, group_id, ControlType.SHARE_DELTA, False)


def checkpoint_batch(
    offset: int, leader_epoch: int, group_id: str = "group", *, deleted: bool = False
) -> ControlBatch:
    checkpoint = ShareCheckpoint(group_id, 1, 1, NOW_MS, 0, 0, 0, 0, 0, (), deleted)
    key, value = encode_checkpoint(checkpoint)
    data = build_control_batch(offset, leader_epoch, NOW_MS, key, value)
    return ControlBatch(data, 0, group_id, ControlType.SHARE_CHECKPOINT, deleted)


def of_newer_version(value: bytes) -> bytes:
    """A control record's value as the next version of this broker would write it."""
    return (VALUE_VERSION + 1).to_bytes(2, "big") + value[2:]


def newer_checkpoint_batch(offset: int, leader_epoch: int) -> ControlBatch:
    control = checkpoint_batch(offset, leader_epoch)
    (record,) = iterate_records(control.data)
    assert record.key is not None and record.value is not None
    data = build_control_batch(
        offset, leader_epoch, NOW_MS, record.key, of_newer_version(bytes(record.value))
    )
    return control._replace(data=data)


Encode = Callable[[int, int], ControlBatch | Sequence[ControlBatch]]
"""(base offset, leader epoch) -> the batches from that offset on."""


class EncodedControl:
    """Share state as a function encodes it, with a completion for the test."""

    size_bytes = 256
    offset_count = 1
    timestamp_ms = -1

    def __init__(self, encode: Encode) -> None:
        self.appended = Append()
        self._encode = encode
        self._base_offset = self._last_offset = -1

    def plan(self, group: AppendGroup) -> None:
        encoded = self._encode(group.next_offset, group.leader_epoch)
        self._base_offset = group.next_offset
        for control in (encoded,) if isinstance(encoded, ControlBatch) else encoded:
            group.add_control(control)
        self._last_offset = group.next_offset - 1
        group.appends.append(self)

    def written(self, log_start_offset: int) -> None:
        self.appended.complete(Appended(self._base_offset, self._last_offset, -1, log_start_offset))

    def failed(self, error: Exception) -> None:
        self.appended.fail(error)


def append_control(log: PartitionLog, encode: Encode, now_ms: int = NOW_MS) -> Append:
    """Appends the batches that `encode` makes for the base offset and the leader epoch."""
    pending = EncodedControl(encode)
    log.append(pending, now_ms)
    return pending.appended


def append_deltas(log: PartitionLog, count: int = 1, group_id: str = "group") -> Append:
    def encode(base_offset: int, leader_epoch: int) -> list[ControlBatch]:
        return [delta_batch(base_offset + number, leader_epoch, group_id) for number in range(count)]

    return append_control(log, encode)


def append_checkpoint(log: PartitionLog, group_id: str = "group", *, deleted: bool = False) -> Append:
    def encode(base_offset: int, leader_epoch: int) -> ControlBatch:
        return checkpoint_batch(base_offset, leader_epoch, group_id, deleted=deleted)

    return append_control(log, encode)


def headers_of(buffers: Sequence[Buffer]) -> list[BatchHeader]:
    return [header for _, header in iterate_headers(b"".join(buffers))]


def base_offsets_read(log: PartitionLog, offset: int = 0, bytes_max: int = 2**30) -> list[int]:
    """The records that a consumer sees up to the end of the log."""
    seen: list[int] = []
    while headers := headers_of(log.read(offset, bytes_max=bytes_max).buffers):
        seen += [header.base_offset for header in headers]
        offset = headers[-1].last_offset + 1
    return seen


def values_read(log: PartitionLog, offset: int = 0) -> list[tuple[int, bytes | None]]:
    """(offset, value) of everything from the batch at `offset` on, checksums verified."""
    values: list[tuple[int, bytes | None]] = []
    while buffers := log.read(offset, bytes_max=2**30).buffers:
        data = b"".join(buffers)
        for position, header in iterate_headers(data):
            values += [(record.offset, record.value) for record in iterate_records(data, position)]
            offset = header.last_offset + 1
    return values


def outcomes(appends: Sequence[Append]) -> list[tuple[int, int] | type[Exception]]:
    """(base offset, last offset) or the error's type of each append. All must be done."""
    assert all(appended.done for appended in appends)
    return [
        (appended.result().base_offset, appended.result().last_offset)
        if appended.error is None
        else type(appended.error)
        for appended in appends
    ]


def recorder(into: list[str], name: str) -> Callable[[object], None]:
    return lambda _: into.append(name)


async def offset_for_timestamp(log: PartitionLog, timestamp_ms: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record at or after the time."""
    return await log.offset_for_timestamp(timestamp_ms, StepwiseWork(MemoryFileSystem()))


async def max_timestamp(log: PartitionLog) -> tuple[int, int] | None:
    """(timestamp, offset) of the record with the largest timestamp."""
    return await log.max_timestamp(StepwiseWork(MemoryFileSystem()))
