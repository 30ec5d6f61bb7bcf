"""The connections of a command, and reads of whole records from any topic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from typing import Final, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import EARLIEST, LATEST, Isolation, Topic, Topics
from barnabas.client.consume.topic_reader import ReadSettings, TopicReader
from barnabas.client.consume.topic_records import read_records
from barnabas.client.network.address import Address
from barnabas.client.network.security import Security
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.records import Record

CLIENT_ID: Final = "barnabas-dlq"
GIVE_UP_MS: Final = 10_000
"""How long temporary errors are retried; the broker may still be starting."""
REQUEST_TIMEOUT_MS: Final = 10_000


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
        return [Bounds(starts[partition] or 0, ends[partition] or 0) for partition in topic.partitions]

    async def read(
        self, topic: Topic, partition: int, ranges: Sequence[tuple[int, int]], isolation: Isolation
    ) -> AsyncGenerator[Record]:
        """The records of a partition in these ranges, and perhaps some between two of them.

        A range is its first and its last offset. Raises the errors of `read_records`.
        """
        place, name = TopicIdPartition(topic.topic_id, partition), TopicPartition(topic.name, partition)
        async with aclosing(read_records(self._readers[isolation], name, place, ranges)) as records:
            async for record in records:
                yield Record(record.offset, record.timestamp_ms, record.key, record.value, record.headers)


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
