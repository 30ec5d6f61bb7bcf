"""The records of a partition beside their states: reads the topic, and joins each record to its range."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncGenerator, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from barnabas.client.consume.topic_reader import FetchedRecords, TopicReader
from barnabas.client.errors import RecordsGoneError
from barnabas.client.inspect.record_range import RecordRange
from barnabas.client.record_content import Headers
from barnabas.client.share.acquired_records import read_acquired
from barnabas.protocol.identity import TopicIdPartition

_last_offset = attrgetter("last_offset")


class BrowsedRecord(NamedTuple):
    """A record, and its state for the group at the time of the last look."""

    offset: int
    timestamp_ms: int
    """-1 if the record cannot be read."""
    key: bytes | None
    value: bytes | None
    headers: Headers
    group: RecordRange
    """The state of the record and of its neighbours."""
    unreadable: str | None = None
    """The reason why the record cannot be read; it has no content then."""


async def browse(
    reader: TopicReader, partition: TopicIdPartition, ranges: Sequence[RecordRange]
) -> AsyncGenerator[BrowsedRecord]:
    """The records of ascending ranges. Records that were deleted meanwhile are left out.

    Raises the errors of `TopicReader.read`.
    """
    position = 0
    while ranges:
        spans = [
            (max(record_range.first_offset, position), record_range.last_offset) for record_range in ranges
        ]
        try:
            async for fetched in reader.read(partition, spans):
                for record in _read(fetched, ranges, max(position, spans[0][0])):
                    yield record
                position = fetched.next_offset
            return
        except RecordsGoneError as gone:
            if gone.log_start_offset <= position:
                raise
            position = gone.log_start_offset
        ranges = [record_range for record_range in ranges if record_range.last_offset >= position]


def _read(
    fetched: FetchedRecords, ranges: Sequence[RecordRange], first_offset: int
) -> Iterator[BrowsedRecord]:
    """The fetched records of the ranges from this offset on, ascending."""
    end_offset = fetched.next_offset
    wanted = [
        (max(record_range.first_offset, first_offset), min(record_range.last_offset, end_offset - 1), 0)
        for record_range in ranges[bisect_left(ranges, first_offset, key=_last_offset) :]
        if record_range.first_offset < end_offset
    ]
    found = read_acquired([fetched.records], wanted)
    records = [
        BrowsedRecord(*delivered.record, group=_range_of(ranges, delivered.record.offset))
        for delivered in found.records
    ]
    for batch in found.unreadable:
        records += [
            BrowsedRecord(offset, -1, None, None, (), _range_of(ranges, offset), batch.reason)
            for offset in batch.offsets
        ]
    return iter(sorted(records, key=attrgetter("offset")))


def _range_of(ranges: Sequence[RecordRange], offset: int) -> RecordRange:
    return ranges[bisect_left(ranges, offset, key=_last_offset)]
