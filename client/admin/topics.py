"""Topics: their partitions with leaders and replicas; create them, add partitions, delete them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponseTopic

from barnabas.client.admin.connection import AdminConnection, check_code
from barnabas.client.errors import UnknownTopicError
from barnabas.protocol.client.admin_apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from barnabas.protocol.client.consumer_apis import METADATA
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName, i16, i32, milliseconds

BROKERS_DEFAULT: Final = -1
"""As a number of partitions or replicas: the default of the broker."""

_TIMEOUT_MS: Final = 30_000
"""How long a broker may wait until a change is complete."""
_UNKNOWN: Final = frozenset({ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception})


class PartitionDescription(NamedTuple):
    """A partition and the node ids of its brokers."""

    partition: int
    leader: int
    """-1 if there is none at the moment."""
    leader_epoch: int
    replicas: Sequence[int]
    in_sync_replicas: Sequence[int]


class TopicDescription(NamedTuple):
    """A topic with its partitions, ascending."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: Sequence[PartitionDescription]


async def describe_topics(
    connection: AdminConnection, names: Collection[str] | None = None
) -> list[TopicDescription]:
    """These topics, or all that the user may see, sorted by name.

    Raises `UnknownTopicError`, `BrokerError` and `BrokerUnavailableError`.
    """
    asked = None
    if names is not None:
        asked = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in names)
    request = MetadataRequest(
        topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )

    async def step() -> list[TopicDescription]:
        response = await connection.cluster.ask(METADATA, request)
        unknown = [str(topic.name) for topic in response.topics if topic.error_code in _UNKNOWN]
        if unknown:
            raise UnknownTopicError(unknown)
        return sorted(map(_described, response.topics))

    return await connection.with_retries(step)


async def create_topic(
    connection: AdminConnection,
    name: str,
    *,
    partition_count: int = BROKERS_DEFAULT,
    replication_factor: int = BROKERS_DEFAULT,
    settings: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> int:
    """Create the topic, or only check that it could be created; returns its number of partitions.

    Raises `BrokerError`, such as TOPIC_ALREADY_EXISTS and INVALID_CONFIG, and `BrokerUnavailableError`.
    """
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partition_count),
        replication_factor=i16(replication_factor),
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=setting, value=value) for setting, value in (settings or {}).items()
        ),
    )
    request = CreateTopicsRequest(
        topics=(topic,), timeout=milliseconds(_TIMEOUT_MS), validate_only=validate_only
    )

    async def step() -> int:
        (result,) = (await connection.cluster.ask(CREATE_TOPICS, request)).topics
        check_code(result.error_code, result.error_message)
        return result.num_partitions

    return await connection.with_retries(step)


async def add_partitions(connection: AdminConnection, name: str, partition_count: int) -> None:
    """Give the topic this number of partitions in all.

    Raises `BrokerError`: INVALID_PARTITIONS if it has as many already, UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = CreatePartitionsTopic(name=TopicName(name), count=i32(partition_count), assignments=None)
    request = CreatePartitionsRequest(topics=(topic,), timeout=milliseconds(_TIMEOUT_MS), validate_only=False)

    async def step() -> None:
        (result,) = (await connection.cluster.ask(CREATE_PARTITIONS, request)).results
        if result.error_code in _UNKNOWN:
            raise UnknownTopicError([name])
        check_code(result.error_code, result.error_message)

    await connection.with_retries(step)


async def delete_topic(connection: AdminConnection, name: str) -> None:
    """Delete the topic with its records. Raises `UnknownTopicError` and `BrokerError`."""
    topic = DeleteTopicState(name=TopicName(name), topic_id=None)
    request = DeleteTopicsRequest(topics=(topic,), timeout=milliseconds(_TIMEOUT_MS))

    async def step() -> None:
        (result,) = (await connection.cluster.ask(DELETE_TOPICS, request)).responses
        if result.error_code in _UNKNOWN:
            raise UnknownTopicError([name])
        check_code(result.error_code, result.error_message)

    await connection.with_retries(step)


def _described(topic: MetadataResponseTopic) -> TopicDescription:
    check_code(topic.error_code, f"the topic {topic.name}")
    assert topic.name is not None
    assert topic.topic_id is not None
    partitions = sorted(
        PartitionDescription(
            partition.partition_index,
            partition.leader_id,
            partition.leader_epoch,
            partition.replica_nodes,
            partition.isr_nodes,
        )
        for partition in topic.partitions
    )
    return TopicDescription(topic.name, topic.topic_id, topic.is_internal, partitions)
