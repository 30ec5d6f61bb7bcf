"""The connections of a command, and reads of whole records from any topic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from typing import Final, NamedTuple

from barnabas.client.address import Address
from barnabas.client.cluster import Cluster
from barnabas.client.consume.fetched_slice import FetchedSlice
from barnabas.client.security import Security
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.topic_reader import FetchedRecords, ReadSettings, TopicReader
from barnabas.client.topics import EARLIEST, LATEST, Isolation, Retries, Topic, Topics
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.records import Record

CLIENT_ID: Final = "barnabas-dlq"
GIVE_UP_MS: Final = 10_000
"""How long temporary errors are retried; the broker may still be starting."""
REQUEST_TIMEOUT_MS: Final = 10_000

_RECORDS_AT_ONCE: Final = 1_000


class Bounds(NamedTuple):
    """The start (inclusive) and the end (exclusive) of a partition's log."""

    start_offset: int
    end_offset: int


class Session:
    """Requests to one cluster, and readers of its topics."""

    def __init__(self, cluster: Cluster, retries: Retries) -> None:
        self.cluster = cluster
        self.topics = Topics(cluster, retries)
        self.retries = retries
        self._readers = {
            isolation: TopicReader(cluster, ReadSettings(isolation=isolation, retries=retries))
            for isolation in Isolation
        }

    def close(self) -> None:
        """The cluster stays open."""
        for reader in self._readers.values():
            reader.close()
        self.topics.close()

    async def bounds(self, topic: Topic, isolation: Isolation) -> list[Bounds]:
        """By partition, the bounds of the records to read."""
        starts = await self.topics.offsets(topic.partitions, EARLIEST)
        ends = await self.topics.offsets(topic.partitions, LATEST, isolation)
        return [Bounds(starts[one] or 0, ends[one] or 0) for one in topic.partitions]

    async def read(
        self, topic: Topic, partition: int, ranges: Sequence[tuple[int, int]], isolation: Isolation
    ) -> AsyncGenerator[Record]:
        """The records of a partition in these ranges, and perhaps some between two of them.

        A range is its first and its last offset. Raises `RecordsGoneError`, `UnreadableRecordError` and the
        other errors of `TopicReader.read`.
        """
        first_offset, last_offset = ranges[0][0], ranges[-1][1]
        place, name = TopicIdPartition(topic.topic_id, partition), TopicPartition(topic.name, partition)
        async with aclosing(self._readers[isolation].read(place, ranges)) as answers:
            async for answer in answers:
                for record in _records(name, answer, isolation):
                    if first_offset <= record.offset <= last_offset:
                        yield record


def _records(name: TopicPartition, answer: FetchedRecords, isolation: Isolation) -> list[Record]:
    """All records of an answer. Raises `UnreadableRecordError`."""
    aborted = answer.aborted if isolation is Isolation.READ_COMMITTED else None
    fetched = FetchedSlice[bytes | None, bytes | None](name, answer.records, aborted, None)
    records: list[Record] = []
    while not fetched.is_exhausted:
        taken, _ = fetched.take(0, _RECORDS_AT_ONCE)
        records += [Record(one.offset, one.timestamp_ms, one.key, one.value, one.headers) for one in taken]
    return records


@asynccontextmanager
async def connected(addresses: Sequence[Address], security: Security) -> AsyncGenerator[Session]:
    """A session with these brokers; its requests raise `ConsumerError`."""
    cluster = Cluster(
        addresses, client_id=CLIENT_ID, request_timeout_ms=REQUEST_TIMEOUT_MS, security=security
    )
    try:
        with closing(cluster), closing(Session(cluster, Retries(give_up_ms=GIVE_UP_MS))) as session:
            yield session
    finally:
        await asyncio.sleep(0)  # the connections' transports close in the loop's next round
