"""`/api/v1/topics`: the topics, and their partitions with their offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from barnabas.broker.http.api.pages import Page, PageQuery, next_keys, number_in
from barnabas.broker.http.routes import Call, Operation, with_body, with_query, without_parameters
from barnabas.coordinator.metadata.topic_decisions import DEFAULT, NewTopic
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.coordinator.metadata.image import Topic

log = get_logger("http")

_TAG = "topics"
_PATH = "/api/v1/topics"
TOPIC_PATH = f"{_PATH}/{{topic}}"


class TopicEntry(Struct, kw_only=True):
    """A topic."""

    name: str
    topic_id: str
    partition_count: int
    is_internal: bool


class TopicPage(Page, kw_only=True):
    """Topics in the order of their names."""

    topics: Sequence[TopicEntry]


class PartitionEntry(Struct, kw_only=True):
    """A partition. Its offsets are null, and `error` has the reason, if its log cannot be used."""

    partition: int
    log_start_offset: int | None = None
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    error: str | None = None


class PartitionPage(Page, kw_only=True):
    """Partitions of a topic, ascending."""

    partitions: Sequence[PartitionEntry]


class TopicRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A topic to create."""

    name: str
    partition_count: Annotated[int, Meta(ge=1)] | None = None
    """None: the broker's num.partitions."""
    settings: dict[str, str] = field(default_factory=dict[str, str])
    """Settings of the topic, by Kafka's names."""


class TopicRoutes:
    """The operations on topics."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def operations(self) -> Sequence[Operation]:
        return (*self._reads(), *self._changes())

    def _reads(self) -> Sequence[Operation]:
        return (
            Operation(
                path=_PATH,
                handler=with_query(PageQuery, self._list),
                name="listTopics",
                summary="All topics",
                tag=_TAG,
                answer=TopicPage,
            ),
            Operation(
                path=TOPIC_PATH,
                handler=without_parameters(self._show),
                name="getTopic",
                summary="One topic",
                tag=_TAG,
                answer=TopicEntry,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
            Operation(
                path=f"{TOPIC_PATH}/partitions",
                handler=with_query(PageQuery, self._partitions),
                name="listPartitions",
                summary="The partitions of a topic with their offsets",
                tag=_TAG,
                answer=PartitionPage,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
        )

    def _changes(self) -> Sequence[Operation]:
        return (
            Operation(
                method="POST",
                path=_PATH,
                handler=with_body(TopicRequest, self._create),
                name="createTopic",
                summary="Create a topic",
                tag=_TAG,
                answer=TopicEntry,
                status=HTTPStatus.CREATED,
                failures=(HTTPStatus.CONFLICT,),
            ),
            Operation(
                method="DELETE",
                path=TOPIC_PATH,
                handler=without_parameters(self._delete),
                name="deleteTopic",
                summary="Delete a topic with its records",
                tag=_TAG,
                status=HTTPStatus.NO_CONTENT,
                failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
            ),
        )

    async def _list(self, call: Call, query: PageQuery) -> TopicPage:
        topics = self._broker.metadata.image.topics_by_name
        names, has_more = next_keys(topics, query.cursor or None, query.limit)
        return TopicPage(
            topics=[_entry(topics[name]) for name in names], next_cursor=names[-1] if has_more else None
        )

    async def _show(self, call: Call) -> TopicEntry:
        return _entry(find_topic(self._broker, call.path))

    async def _partitions(self, call: Call, query: PageQuery) -> PartitionPage:
        topic = find_topic(self._broker, call.path)
        after = number_in(query.cursor)
        indexes, has_more = next_keys(range(len(topic.partitions)), after, query.limit)
        opening = self._broker.logs.open_all((topic, index) for index in indexes)
        if opening is not None:
            await opening
        return PartitionPage(
            partitions=[await self._partition(topic, index) for index in indexes],
            next_cursor=str(indexes[-1]) if has_more else None,
        )

    async def _partition(self, topic: Topic, index: int) -> PartitionEntry:
        try:
            opened = await self._broker.logs.open(topic, index)
        except StorageError as error:
            return PartitionEntry(partition=index, error=str(error))
        return PartitionEntry(
            partition=index,
            log_start_offset=opened.log_start_offset,
            high_watermark=opened.high_watermark,
            last_stable_offset=opened.last_stable_offset,
        )

    async def _create(self, call: Call, asked: TopicRequest) -> TopicEntry:
        partition_count = DEFAULT if asked.partition_count is None else asked.partition_count
        new_topic = NewTopic(asked.name, partition_count, configs=dict(asked.settings))
        completed = self._broker.internal_topics.completed(new_topic)
        [created] = await self._broker.metadata.create_topics([completed])
        if created.error is not None:
            raise without_frames(created.error)
        log.info("a client of HTTP creates a topic", topic=asked.name, client=call.client)
        return _entry(self._broker.metadata.image.topics_by_name[asked.name])

    async def _delete(self, call: Call) -> None:
        topic = find_topic(self._broker, call.path)
        if not self._broker.config.flag("delete.topic.enable"):
            raise ApiError(ErrorCode.topic_deletion_disabled, "delete.topic.enable=false forbids it.")
        [error] = await self._broker.metadata.delete_topics([topic.topic_id])
        if error is not None:
            raise without_frames(error)
        log.info("a client of HTTP deletes a topic", topic=topic.name, client=call.client)


def find_topic(broker: Broker, path: Mapping[str, str]) -> Topic:
    """The topic that the path names. Raises ApiError."""
    topic = broker.metadata.image.topics_by_name.get(path["topic"])
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition, f"There is no topic {path['topic']}.")
    return topic


def _entry(topic: Topic) -> TopicEntry:
    return TopicEntry(
        name=topic.name,
        topic_id=str(topic.topic_id),
        partition_count=len(topic.partitions),
        is_internal=topic.is_internal,
    )
