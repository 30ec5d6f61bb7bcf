"""The contents of one partition of a fetch: acquired records, gaps and unreadable records (pure).

A fetch returns whole batches, but only the offsets that the response lists as acquired belong to this
consumer. Acquired offsets without a record are gaps: compaction, transaction markers, and control batches,
which are not for consumers. A batch that is corrupt, or that cannot be decompressed, makes its acquired
offsets unreadable. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.protocol.record_batch import BatchHeader, iterate_headers
from barnabas.protocol.records import Record, iterate_records
from barnabas.protocol.varint import Buffer, RecordFormatError

AcquiredRange = tuple[int, int, int]
"""First and last offset, both inclusive, and the delivery count."""


class DeliveredRecord(NamedTuple):
    record: Record
    delivery_count: int


class UnreadableBatch(NamedTuple):
    """Acquired offsets whose records cannot be read, and the reason."""

    offsets: list[int]
    reason: str


class AcquiredRecords(NamedTuple):
    """All acquired offsets, each in exactly one of the three lists; each list is ascending."""

    records: list[DeliveredRecord]
    gaps: list[int]
    unreadable: list[UnreadableBatch]


def read_acquired(buffers: Sequence[Buffer], ranges: Sequence[AcquiredRange]) -> AcquiredRecords:
    """Sort one partition's acquired offsets.

    `ranges` are ascending and disjoint; `buffers` hold whole batches.
    """
    counts = {
        offset: delivery_count
        for first_offset, last_offset, delivery_count in ranges
        for offset in range(first_offset, last_offset + 1)
    }
    records: list[DeliveredRecord] = []
    unreadable: list[UnreadableBatch] = []
    for buffer in buffers:
        _read_buffer(buffer, counts, records, unreadable)
    # The offsets left in `counts` were acquired, but the fetch returned no record for them.
    return AcquiredRecords(records, list(counts), unreadable)


def _read_buffer(
    buffer: Buffer,
    counts: dict[int, int],
    records: list[DeliveredRecord],
    unreadable: list[UnreadableBatch],
) -> None:
    """Removes the offsets that it finds from `counts`."""
    end = 0
    try:
        for position, header in iterate_headers(buffer):
            end = position + header.size_bytes
            if not header.is_control:
                _read_batch(buffer, position, header, counts, records, unreadable)
        if end < len(buffer):
            raise RecordFormatError(f"A batch is cut short at {len(buffer)}.")
    except RecordFormatError as error:
        # The start of the next batch is unknown: the offsets left may have been in the rest.
        unreadable.append(UnreadableBatch(list(counts), str(error)))
        counts.clear()


def _read_batch(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    counts: dict[int, int],
    records: list[DeliveredRecord],
    unreadable: list[UnreadableBatch],
) -> None:
    if not _holds_any(header, counts):
        return
    try:
        found = {acquired.record.offset: acquired for acquired in _acquired_of(buffer, position, counts)}
    except (RecordFormatError, ValueError) as error:
        offsets = [offset for offset in counts if header.base_offset <= offset <= header.last_offset]
        unreadable.append(UnreadableBatch(offsets, str(error)))
        for offset in offsets:
            del counts[offset]
        return
    for offset in found:
        del counts[offset]
    records += found.values()


def _acquired_of(buffer: Buffer, position: int, counts: dict[int, int]) -> Iterator[DeliveredRecord]:
    for record in iterate_records(buffer, position):
        delivery_count = counts.get(record.offset)
        if delivery_count is not None:
            yield DeliveredRecord(record, delivery_count)


def _holds_any(header: BatchHeader, counts: dict[int, int]) -> bool:
    """Whether the batch may hold an offset that is still missing; `counts` is in ascending order."""
    first_offset = next(iter(counts), None)
    return first_offset is not None and first_offset <= header.last_offset
