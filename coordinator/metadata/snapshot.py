"""Snapshots of the metadata: files that replace all records below an offset (KIP-630).

A file is named `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint` and lies beside the log's segments. It
holds record batches with offsets of their own from 0 on: a control batch with the header, the records of the
image, a control batch with the footer. The format is Apache Kafka's, so that its dump tool reads the files. A
file without its footer, or with a wrong checksum anywhere, is not valid. This module knows names and bytes;
`metadata_log.py` decides when to write and delete. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from barnabas.protocol.metadata_records import (
    MetadataControlRecord,
    MetadataRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    decode_metadata_control,
    decode_metadata_record,
    encode_metadata_control,
    encode_metadata_record,
)
from barnabas.protocol.record_batch import CONTROL_FLAG, build_batch, iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import RecordFormatError

SNAPSHOT_SUFFIX = ".checkpoint"

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)
_RECORDS_PER_BATCH = 1000


class SnapshotId(NamedTuple):
    """The records that a snapshot replaces: those below `end_offset`, the last of them written in `epoch`."""

    end_offset: int
    epoch: int

    @property
    def age(self) -> tuple[int, int]:
        """Orders snapshots by the time when they were taken: a later epoch may begin at an earlier offset
        than the lost records.
        """
        return self.epoch, self.end_offset

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SNAPSHOT_SUFFIX}"


BOOTSTRAP_ID = SnapshotId(0, 0)
"""Kafka's `StorageTool` leaves a snapshot with this name for the first start; followers never get it."""


def parse_snapshot_name(name: str) -> SnapshotId | None:
    """The id of the snapshot in the file called `name`; None if the file is not a snapshot."""
    match = _NAME.fullmatch(name)
    return None if match is None else SnapshotId(int(match[1]), int(match[2]))


def encode_snapshot(snapshot_id: SnapshotId, records: Iterable[MetadataRecord], now_ms: int) -> bytes:
    """The bytes of the file. `now_ms` is the time of the last record that it replaces."""
    values = [encode_metadata_record(record) for record in records]
    header = SnapshotHeaderRecord(last_contained_log_timestamp_ms=now_ms)
    parts = [_control_batch(0, snapshot_id.epoch, now_ms, header)]
    for start in range(0, len(values), _RECORDS_PER_BATCH):
        batch: Sequence[tuple[None, bytes]] = [
            (None, value) for value in values[start : start + _RECORDS_PER_BATCH]
        ]
        parts.append(build_batch(1 + start, batch, leader_epoch=snapshot_id.epoch, timestamp_ms=now_ms))
    parts.append(_control_batch(1 + len(values), snapshot_id.epoch, now_ms, SnapshotFooterRecord()))
    return b"".join(parts)


def _control_batch(offset: int, epoch: int, now_ms: int, record: MetadataControlRecord) -> bytes:
    key_value = encode_metadata_control(record)
    return build_batch(offset, [key_value], leader_epoch=epoch, timestamp_ms=now_ms, attributes=CONTROL_FLAG)


def decode_snapshot(data: bytes) -> list[MetadataRecord]:
    """The records in the file; raises `RecordFormatError` if it is incomplete or damaged."""
    controls: list[MetadataControlRecord | None] = []
    records: list[MetadataRecord] = []
    end_position = 0
    for position, header in iterate_headers(data):
        end_position = position + header.size_bytes
        for record in iterate_records(data, position):
            if header.is_control:
                controls.append(decode_metadata_control(record.key, record.value))
            else:
                records.append(_decode_value(record.value))
    if end_position != len(data):
        raise RecordFormatError(f"A snapshot of {len(data)} bytes holds whole batches up to {end_position}.")
    _check_frame(controls)
    return records


def last_contained_timestamp_ms(data: bytes) -> int:
    """The time (wall, ms) of the last record that a snapshot replaces; `data` is its beginning, with the
    whole header. Raises `RecordFormatError`.
    """
    for record in iterate_records(data, 0):
        header = decode_metadata_control(record.key, record.value)
        if isinstance(header, SnapshotHeaderRecord):
            return header.last_contained_log_timestamp_ms
    raise RecordFormatError("A snapshot does not start with its header.")


def _check_frame(controls: Sequence[MetadataControlRecord | None]) -> None:
    whole = (
        len(controls) >= 2
        and isinstance(controls[0], SnapshotHeaderRecord)
        and isinstance(controls[-1], SnapshotFooterRecord)
    )
    if not whole:
        raise RecordFormatError("A snapshot does not start with its header and end with its footer.")


class LogBatch(NamedTuple):
    """The records of one batch of the log; `timestamp_ms` (wall) is the newest record's."""

    next_offset: int
    leader_epoch: int
    timestamp_ms: int
    records: list[MetadataRecord]


def decode_log(data: bytes, from_offset: int) -> Iterator[LogBatch]:
    """Each whole batch in `data`, without the records below `from_offset`.

    A control batch has no records, but advances the offset too. Raises `RecordFormatError`.
    """
    for position, header in iterate_headers(data):
        records: list[MetadataRecord] = []
        if not header.is_control:
            batch = iterate_records(data, position)
            records = [_decode_value(record.value) for record in batch if record.offset >= from_offset]
        yield LogBatch(header.last_offset + 1, header.leader_epoch, header.max_timestamp_ms, records)


def _decode_value(value: bytes | None) -> MetadataRecord:
    if value is None:
        raise RecordFormatError("A metadata record without a value.")
    return decode_metadata_record(value)
