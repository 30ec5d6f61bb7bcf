"""`barnabas consume`: prints the records of topics, as a member of a consumer group or without a group.

Without a group the records up to the present ends of the partitions are printed partition by partition; to
follow a topic, all partitions are then read at the same time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.cli.record_streams.record_output import RecordOutput
from barnabas.cli.target import NotFoundError, Target
from barnabas.client.admin.connection import AdminConnection
from barnabas.client.admin.group_positions import Bounds
from barnabas.client.cluster.topics import EARLIEST, LATEST, Isolation, Topic
from barnabas.client.consume.consumer import Consumer
from barnabas.client.consume.consumer_options import AutoOffsetReset
from barnabas.client.consume.topic_reader import ReadSettings, TopicReader
from barnabas.client.consume.topic_records import BytesRecord, read_records
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.identity import TopicIdPartition

QUEUED_MAX: Final = 1_000
"""The most records of a followed topic that wait to be printed."""
FOLLOW_MS: Final = 1 << 40
"""How long a reader waits for records that do not exist yet: longer than any process runs."""
FOLLOW_BACKOFF_MS: Final = 50

_OFFSET_MAX: Final = (1 << 63) - 2


class Start(NamedTuple):
    """The first record of each partition. One field is set."""

    at: int | None = None
    """`EARLIEST`, `LATEST`, or a time in ms since 1970."""
    offset: int | None = None
    last_count: int | None = None
    """This many records before the end."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """The records to print; None lets every record pass."""

    key: bytes | None = None
    pattern: re.Pattern[bytes] | None = None
    """A part of the value must match."""
    until_ms: int | None = None
    """Exclusive."""

    def matches(self, record: BytesRecord) -> bool:
        return (
            (self.key is None or record.key == self.key)
            and (self.pattern is None or self.pattern.search(record.value or b"") is not None)
            and (self.until_ms is None or record.timestamp_ms < self.until_ms)
        )


class Until(NamedTuple):
    """The end of the output; None is never."""

    record_count: int | None
    """After this many printed records."""
    idle_seconds: float | None
    """After this time without a new record."""


async def consume(
    target: Target,
    output: RecordOutput,
    partitions: Sequence[tuple[str, int | None]],
    start: Start,
    kept: Filter,
    until: Until,
    isolation: Isolation,
    *,
    follows: bool,
) -> int:
    """Print the records of topics or partitions without a group; returns the number of printed records.

    Raises `ConsumerError`, and `NotFoundError` for a partition that does not exist.
    """
    async with target.administer() as admin:
        bounds = await _bounds(admin, partitions, start, isolation)
        source = _present_records(admin, bounds, isolation)
        count = await _print(source, output, kept, until._replace(idle_seconds=None))
        if not follows or count == until.record_count:
            return count
        left = None if until.record_count is None else until.record_count - count
        ends = {partition: bound.end_offset for partition, bound in bounds.items()}
        source = _followed_records(admin, ends, isolation)
        return count + await _print(source, output, kept, until._replace(record_count=left), is_live=True)


async def consume_in_group(
    target: Target,
    output: RecordOutput,
    group_id: str,
    topics: Sequence[str],
    reset: AutoOffsetReset,
    kept: Filter,
    until: Until,
    isolation: Isolation,
) -> int:
    """Print the records that this member of the group gets; returns the number of printed records.

    The offsets of printed records are committed, also of those that the filter leaves out. Raises
    `ConsumerError`.
    """
    consumer = Consumer(
        target.bootstrap,
        group=group_id,
        topics=topics,
        auto_offset_reset=reset,
        isolation_level="read_committed" if isolation is Isolation.READ_COMMITTED else "read_uncommitted",
        **target.options,
    )
    async with consumer:
        return await _print(_group_records(consumer), output, kept, until, is_live=True)


async def _print(
    records: AsyncGenerator[BytesRecord],
    output: RecordOutput,
    kept: Filter,
    until: Until,
    *,
    is_live: bool = False,
) -> int:
    """Print until the end; returns the number of printed records. Live output reaches its reader at once."""
    count = 0
    async with aclosing(records):
        while count != until.record_count:
            try:
                async with asyncio.timeout(until.idle_seconds):
                    record = await anext(records)
            except (StopAsyncIteration, TimeoutError):
                break
            if kept.matches(record):
                output.write(record)
                count += 1
                if is_live:
                    output.printer.flush()
    output.printer.flush()
    return count


async def _group_records(
    consumer: Consumer[bytes | None, bytes | None],
) -> AsyncGenerator[BytesRecord]:
    async for record in consumer:
        yield record


async def _bounds(
    admin: AdminConnection,
    partitions: Sequence[tuple[str, int | None]],
    start: Start,
    isolation: Isolation,
) -> dict[TopicIdPartition, Bounds]:
    """By partition, the offsets to read first: from the start to the present end."""
    wanted = _wanted(await admin.topics.find([topic for topic, _ in partitions]), partitions)
    begins = await admin.topics.offsets(wanted, EARLIEST)
    ends = await admin.topics.offsets(wanted, LATEST, isolation)
    at = await admin.topics.offsets(wanted, start.at, isolation) if start.at is not None else {}
    bounds: dict[TopicIdPartition, Bounds] = {}
    for partition in wanted:
        begin, end = begins[partition] or 0, ends[partition] or 0
        first = at.get(partition)
        if start.offset is not None:
            first = start.offset
        elif start.last_count is not None:
            first = end - start.last_count
        bounds[partition] = Bounds(min(max(end if first is None else first, begin), end), end)
    return bounds


def _wanted(topics: Sequence[Topic], partitions: Sequence[tuple[str, int | None]]) -> list[TopicIdPartition]:
    """Raises `NotFoundError`."""
    wanted: list[TopicIdPartition] = []
    for topic, (name, index) in zip(topics, partitions, strict=True):
        if index is None:
            wanted += topic.partitions
        elif index < topic.partition_count:
            wanted.append(TopicIdPartition(topic.topic_id, index))
        else:
            raise NotFoundError(
                f"{name} has no partition {index}; its last one is {topic.partition_count - 1}"
            )
    return list(dict.fromkeys(wanted))


async def _present_records(
    admin: AdminConnection, bounds: Mapping[TopicIdPartition, Bounds], isolation: Isolation
) -> AsyncGenerator[BytesRecord]:
    """The records inside the bounds, partition by partition."""
    reader = TopicReader(admin.cluster, ReadSettings(isolation=isolation, retries=admin.retries))
    try:
        for partition, (first_offset, end_offset) in bounds.items():
            if first_offset == end_offset:
                continue
            async with aclosing(_records(admin, reader, partition, first_offset, end_offset - 1)) as records:
                async for record in records:
                    yield record
    finally:
        reader.close()


async def _followed_records(
    admin: AdminConnection, positions: Mapping[TopicIdPartition, int], isolation: Isolation
) -> AsyncGenerator[BytesRecord]:
    """The records from these positions on, as they arrive, for ever.

    Raises the first error of a partition, after the records that arrived before it.
    """
    retries = Retries(backoff_ms=FOLLOW_BACKOFF_MS, backoff_max_ms=FOLLOW_BACKOFF_MS, give_up_ms=FOLLOW_MS)
    reader = TopicReader(admin.cluster, ReadSettings(isolation=isolation, retries=retries))
    arrived: asyncio.Queue[BytesRecord | Exception] = asyncio.Queue(QUEUED_MAX)

    async def follow(partition: TopicIdPartition, position: int) -> None:
        try:
            async with aclosing(_records(admin, reader, partition, position, _OFFSET_MAX)) as records:
                async for record in records:
                    await arrived.put(record)
        except Exception as error:
            await arrived.put(error)

    # A TaskGroup would raise a group of exceptions in place of a partition's error and of GeneratorExit.
    tasks = [asyncio.create_task(follow(partition, position)) for partition, position in positions.items()]
    try:
        while True:
            item = await arrived.get()
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            reader.close()


def _records(
    admin: AdminConnection,
    reader: TopicReader,
    partition: TopicIdPartition,
    first_offset: int,
    last_offset: int,
) -> AsyncGenerator[BytesRecord]:
    """The records of the range, both ends inclusive. Raises the errors of `read_records`."""
    topic = admin.cluster.view.topic_name(partition.topic_id)
    assert topic is not None, "the topic was found by its name"
    name = TopicPartition(topic, partition.partition)
    return read_records(reader, name, partition, [(first_offset, last_offset)])
