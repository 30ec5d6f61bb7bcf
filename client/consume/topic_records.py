"""The records of ranges of one partition, decoded, for a client that reads without a group."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from barnabas.client.cluster.topics import Isolation
from barnabas.client.consume.consumer_record import ConsumerRecord
from barnabas.client.consume.fetched_slice import FetchedSlice
from barnabas.client.consume.topic_reader import FetchedRecords, TopicReader
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.identity import TopicIdPartition

_RECORDS_AT_ONCE: Final = 1_000

BytesRecord = ConsumerRecord[bytes | None, bytes | None]


async def read_records(
    reader: TopicReader, name: TopicPartition, partition: TopicIdPartition, ranges: Sequence[tuple[int, int]]
) -> AsyncGenerator[BytesRecord]:
    """The records of a partition in these ranges, and perhaps some between two of them; `name` is in errors.

    A range is its first and its last offset. Raises `UnreadableRecordError`, and the errors of
    `TopicReader.read`, such as `RecordsGoneError`.
    """
    first_offset, last_offset = ranges[0][0], ranges[-1][1]
    async with aclosing(reader.read(partition, ranges)) as answers:
        async for answer in answers:
            for record in _records(name, answer, reader.isolation):
                if first_offset <= record.offset <= last_offset:
                    yield record


def _records(name: TopicPartition, answer: FetchedRecords, isolation: Isolation) -> list[BytesRecord]:
    """All records of an answer. Raises `UnreadableRecordError`."""
    aborted = answer.aborted if isolation is Isolation.READ_COMMITTED else None
    fetched = FetchedSlice[bytes | None, bytes | None](name, answer.records, aborted, None)
    records: list[BytesRecord] = []
    while not fetched.is_exhausted:
        taken, _ = fetched.take(0, _RECORDS_AT_ONCE)
        records += taken
    return records
