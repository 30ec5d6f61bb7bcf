"""Topics by name, and the offsets at which their partitions begin, end, or reach a time.

    topics = Topics(cluster)
    (orders,) = await topics.find(["orders"])
    ends = await topics.offsets(orders.partitions, LATEST)

Temporary errors are retried for `Retries.give_up_ms`, then raised. ListOffsets identifies a topic by name,
not by id. A caller that must recognise a topic that was deleted and created again compares the ids before or
after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v11.response import ListOffsetsResponse
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse, MetadataResponseTopic

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.leaders import Leaders
from barnabas.client.errors import (
    BrokerUnavailableError,
    TopicGoneError,
    UnknownTopicError,
    broker_error,
)
from barnabas.client.network.connection import Connection
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.client.consumer_apis import LIST_OFFSETS, METADATA
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import BrokerId, TopicName, i8, i32, i64, milliseconds

LATEST: Final = -1
"""The end of the log; for committed records, the start of the first open transaction."""
EARLIEST: Final = -2
"""The start of the log."""

TOPIC_GONE_MS: Final = 5_000
"""How long an unknown topic id may be one that a broker has not learned of yet."""
UNKNOWN_TOPIC_MS: Final = 1_000
"""The same for a name, which is more often misspelt than new."""
REMOTE_TIMEOUT_MS: Final = 30_000
"""How long a broker may search for an offset in remote storage (KIP-1075)."""

_CONSUMER: Final = BrokerId(-1)


class Isolation(IntEnum):
    """The records to read (KIP-98): all, or only those outside open and aborted transactions."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class Topic(NamedTuple):
    """A topic with the partitions from 0 to `partition_count`, exclusive."""

    name: str
    topic_id: UUID
    partition_count: int

    @property
    def partitions(self) -> list[TopicIdPartition]:
        return [TopicIdPartition(self.topic_id, index) for index in range(self.partition_count)]


class Topics:
    """Requests about the topics of one cluster. Call `close` once; the cluster stays open."""

    def __init__(self, cluster: Cluster, retries: Retries | None = None) -> None:
        self._cluster = cluster
        self._retries = retries or Retries()
        self._leaders = Leaders(cluster)
        self._names: dict[UUID, str] = {}

    def close(self) -> None:
        self._leaders.close()

    async def find(self, names: Collection[str]) -> list[Topic]:
        """The topics with these names, in the order of the names.

        Raises `UnknownTopicError`, `BrokerError` (such as no right to see a topic) and
        `BrokerUnavailableError`.
        """
        asked = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in names)
        found = {topic.name: topic for topic in await self._described(asked)}
        return [found[name] for name in names]

    async def find_all(self) -> list[Topic]:
        """All topics that the user may see, sorted by name, without the broker's internal ones."""
        return sorted(await self._described(None))

    async def offsets(
        self,
        partitions: Collection[TopicIdPartition],
        at: int | Mapping[TopicIdPartition, int],
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> dict[TopicIdPartition, int | None]:
        """By partition, the offset `at` `EARLIEST`, `LATEST` or a time in ms since 1970, for all or for each.

        At a time: the offset of the first record that is not older, None if there is none. The topics must
        have been found before. Raises `TopicGoneError`, `BrokerError` and `BrokerUnavailableError`.
        """
        wanted = {partition: at if isinstance(at, int) else at[partition] for partition in partitions}
        offsets: dict[TopicIdPartition, int | None] = {}
        patience = self._retries.patience()
        while wanted:
            try:
                await self._ask_offsets(wanted, isolation, offsets)
            except TopicGoneError as error:
                await patience.pause(error, give_up_ms=TOPIC_GONE_MS)
            except BrokerUnavailableError as error:
                await patience.pause(error)
            wanted = {partition: when for partition, when in wanted.items() if partition not in offsets}
        return offsets

    async def _described(self, asked: tuple[MetadataRequestTopic, ...] | None) -> list[Topic]:
        request = MetadataRequest(
            topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        patience = self._retries.patience()
        while True:
            try:
                response = await self._cluster.ask(METADATA, request)
                return self._take_topics(response, is_named=asked is not None)
            except UnknownTopicError as error:
                await patience.pause(error, give_up_ms=UNKNOWN_TOPIC_MS)
            except BrokerUnavailableError as error:
                await patience.pause(error)

    def _take_topics(self, response: MetadataResponse, *, is_named: bool) -> list[Topic]:
        """The topics of a response; internal ones only if they were asked for by name."""
        unknown = [str(topic.name) for topic in response.topics if topic.error_code in _UNKNOWN]
        if unknown:
            raise UnknownTopicError(unknown)
        topics = [_topic(topic) for topic in response.topics if is_named or not topic.is_internal]
        self._names.update((topic.topic_id, topic.name) for topic in topics)
        self._cluster.view.apply(response, self._names)
        return topics

    async def _ask_offsets(
        self,
        wanted: Mapping[TopicIdPartition, int],
        isolation: Isolation,
        offsets: dict[TopicIdPartition, int | None],
    ) -> None:
        """Ask each leader once, and store their answers."""
        by_leader: dict[Connection, list[TopicIdPartition]] = {}
        for partition in wanted:
            by_leader.setdefault(await self._leaders.connection(partition), []).append(partition)
        for connection, partitions in by_leader.items():
            request = self._offsets_request(
                {partition: wanted[partition] for partition in partitions}, isolation
            )
            try:
                response = await connection.ask(LIST_OFFSETS, request)
            except BrokerUnavailableError:
                for partition in partitions:
                    self._leaders.mark_stale(partition)
                raise
            self._take_offsets(response, partitions, offsets)

    def _offsets_request(
        self, wanted: Mapping[TopicIdPartition, int], isolation: Isolation
    ) -> ListOffsetsRequest:
        by_topic: dict[UUID, list[ListOffsetsPartition]] = {}
        for partition, when in wanted.items():
            by_topic.setdefault(partition.topic_id, []).append(
                ListOffsetsPartition(partition_index=i32(partition.partition), timestamp=i64(when))
            )
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=i8(isolation),
            topics=tuple(
                ListOffsetsTopic(name=TopicName(self._names[topic_id]), partitions=tuple(of_topic))
                for topic_id, of_topic in by_topic.items()
            ),
            timeout=milliseconds(REMOTE_TIMEOUT_MS),
        )

    def _take_offsets(
        self,
        response: ListOffsetsResponse,
        asked: Sequence[TopicIdPartition],
        offsets: dict[TopicIdPartition, int | None],
    ) -> None:
        by_name = {(self._names[partition.topic_id], partition.partition): partition for partition in asked}
        refused: list[ErrorCode] = []
        for topic in response.topics:
            for answer in topic.partitions:
                partition = by_name[topic.name, answer.partition_index]
                if answer.error_code is ErrorCode.none:
                    offsets[partition] = answer.offset if answer.offset >= 0 else None
                    continue
                if not answer.error_code.retriable:
                    raise broker_error(
                        answer.error_code, f"the offsets of {topic.name}-{partition.partition}"
                    )
                refused.append(answer.error_code)
                self._leaders.mark_stale(partition)
        if refused:
            raise BrokerUnavailableError(f"The offsets are unavailable at the moment: {_named(refused)}.")


_UNKNOWN: Final = frozenset({ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception})


def _topic(described: MetadataResponseTopic) -> Topic:
    code = described.error_code
    if code is not ErrorCode.none and code.retriable:
        raise BrokerUnavailableError(f"The topic {described.name} cannot be read at the moment: {code.name}.")
    if code is not ErrorCode.none or described.name is None or described.topic_id is None:
        raise broker_error(code, f"the topic {described.name}")
    return Topic(described.name, described.topic_id, len(described.partitions))


def _named(codes: Iterable[ErrorCode]) -> str:
    return ", ".join(sorted({code.name for code in codes}))
