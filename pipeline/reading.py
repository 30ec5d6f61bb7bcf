"""Reads records of given offsets from brokers as Arrow batches, on Spark's executors.

    wanted = [PartitionRanges("orders", TopicIdPartition(topic_id, 0), ((0, 999, 0),))]
    for batch in read_records(servers, wanted, ["key", "value", "offset"]): ...

Works without a running event loop, in any process or thread: a private loop fetches, and is kept with its
connections for the next read (`reader_cache`). It asks the broker for the next records before Spark gets the
last ones. Offsets without a record (markers, state of share groups, compacted records) are left out. Offsets
that the log doesn't hold any more raise `RecordsGoneError`, and deleted topics `TopicGoneError`; with
`on_gone` the caller gets the error as an argument instead, and reading goes on with the other records. A
batch that cannot be decoded raises `BatchError` after all records in front of it.

The sources choose the records to read; `decoding` decodes their batches.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from barnabas.client.cluster.topics import Isolation
from barnabas.client.consume.topic_reader import FetchedRecords, ReadSettings, TopicReader
from barnabas.client.errors import RecordsGoneError, TopicGoneError
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding import (
    BatchError,
    OffsetRange,
    RecordDecoder,
    decoded_columns,
    with_constants,
)
from barnabas.pipeline.decoding.bounds import OFFSET_MAX
from barnabas.pipeline.reader_cache import Access, cached_reader
from barnabas.pipeline.servers import Servers
from barnabas.protocol.aborted_transactions import AbortedTransactions
from barnabas.protocol.identity import TopicIdPartition

ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Decoded records are handed on once they have this size, or all have come."""

Gone = RecordsGoneError | TopicGoneError


class PartitionRanges(NamedTuple):
    """The offsets to read of one partition. Can be pickled."""

    topic: str
    """The name that the column `topic` shows; the partition is found by its id."""
    partition: TopicIdPartition
    ranges: tuple[OffsetRange, ...]
    """(first offset, last offset, delivery count), both ends inclusive; ascending and disjoint."""


def read_records(
    servers: Servers,
    wanted: Sequence[PartitionRanges],
    columns: Sequence[str],
    *,
    settings: ReadSettings | None = None,
    timestamps: tuple[int, int] | None = None,
    on_gone: Callable[[Gone], None] | None = None,
) -> Generator[RecordBatch]:
    """The records of these ranges with these columns, partition after partition, in their order in the log.

    `timestamps` leaves out records that are older than the first or newer than the second, in milliseconds.
    Raises the errors in the module's docstring, and `ConsumerError` for a cluster that cannot be read.
    """
    with cached_reader(Access(servers, settings or ReadSettings())) as reader:
        for ranges in wanted:
            # Closed while the loop is still there, also if the caller stops in the middle.
            with closing(reader.items(_fetch(reader.topics, ranges, on_gone))) as fetched:
                yield from _decode(fetched, ranges, columns, timestamps, reads_committed(settings))


def reads_committed(settings: ReadSettings | None) -> bool:
    """Whether records of aborted transactions are left out."""
    return settings is not None and settings.isolation is Isolation.READ_COMMITTED


class _Fetched(NamedTuple):
    """One response, and the offsets of it to decode."""

    answer: FetchedRecords
    ranges: Sequence[OffsetRange]


async def _fetch(
    reader: TopicReader, wanted: PartitionRanges, on_gone: Callable[[Gone], None] | None
) -> AsyncGenerator[_Fetched]:
    """The responses to the reader. With `on_gone` it steps over records that are gone.

    If the log begins inside a batch by now, the records in front of its start are gone as well.
    """
    ranges: Sequence[OffsetRange] = wanted.ranges
    while ranges:
        try:
            async for answer in reader.read(wanted.partition, [offset_range[:2] for offset_range in ranges]):
                yield _Fetched(answer, ranges)
                ranges = _clipped(ranges, answer.next_offset, OFFSET_MAX)
            return
        except (RecordsGoneError, TopicGoneError) as error:
            if on_gone is None:
                raise
            on_gone(error)
            if isinstance(error, TopicGoneError):
                return
            ranges = _clipped(ranges, error.log_start_offset, error.end_offset - 1)


def _clipped(ranges: Sequence[OffsetRange], first_offset: int, last_offset: int) -> list[OffsetRange]:
    """The parts of the ranges between two offsets, both inclusive."""
    return [
        (max(first, first_offset), min(last, last_offset), delivery_count)
        for first, last, delivery_count in ranges
        if last >= first_offset and first <= last_offset
    ]


def _decode(
    fetched: Iterator[_Fetched],
    wanted: PartitionRanges,
    columns: Sequence[str],
    timestamps: tuple[int, int] | None,
    committed: bool,
) -> Iterator[RecordBatch]:
    decoder = RecordDecoder(decoded_columns(columns))

    def taken() -> RecordBatch:
        return with_constants(decoder.take(), wanted.topic, wanted.partition.partition, columns)

    for (records, aborted, *_), ranges in fetched:
        transactions = AbortedTransactions.from_fetch(aborted) if committed else None
        position = 0
        while position < len(records):
            try:
                position = decoder.add(
                    records, position, ranges=ranges, aborted=transactions, timestamps=timestamps
                )
            except BatchError:
                if decoder.record_count:
                    yield taken()
                raise
            if decoder.size_bytes >= ANSWER_BYTES or position < len(records):
                yield taken()
    if decoder.record_count:
        yield taken()
