"""Metadata (key 3, versions 0 to 13; KIP-430, KIP-516, KIP-700): the brokers, the topics and their leaders.

- `WithCluster` is versions up to 10, the last one with the operations that are authorized on the cluster. All
  operations are authorized, because there is no authorizer.
- Null asks for all topics, and in version 0 so does an empty array.
- A topic that does not exist is created if the request and auto.create.topics.enable allow it. Kafka starts
  to create it and responds UNKNOWN_TOPIC_OR_PARTITION. Here the response waits for the append and has the
  topic.
- A topic with an id is looked up by the id only. A topic with neither name nor id is an error of its own; in
  Kafka the whole request fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import UUID

from kio.schema.metadata.v10.request import MetadataRequest as MetadataRequestWithCluster
from kio.schema.metadata.v10.response import MetadataResponse as MetadataResponseWithCluster
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

from barnabas.broker.network.replies import encoded_at_length
from barnabas.broker.quotas.mutations import MutationCharge
from barnabas.coordinator.metadata.image import Topic
from barnabas.coordinator.metadata.topic_names import invalid_topic_name, is_internal
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import BrokerId, TopicName, i32, milliseconds
from barnabas.runtime.turns import Turns, in_turns, some_at_a_time

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.internal_topics.internal_topics import InternalTopics
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.broker.network.handler import Response as AnyResponse
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.runtime.long_work import LongWork

    Request = MetadataRequest | MetadataRequestWithCluster
    Response = MetadataResponse | MetadataResponseWithCluster

TOPIC_OPERATIONS = i32(0b1101_1111_1000)
"""Read, write, create, delete, alter, describe, and describe and alter configs, as bits (KIP-430)."""
CLUSTER_OPERATIONS = i32(0b1_1111_1010_0000)
"""Create, alter, describe, cluster action, describe and alter configs, idempotent write."""
OPERATIONS_NOT_ASKED = i32(-(2**31))
TOPICS_AT_ONCE_MAX = 1_000
"""Names beyond this number are looked up in turns."""
_STEPS_PER_TOPIC = 4
"""The steps of a turn for one topic without its partitions."""


class Parts(NamedTuple):
    config: BrokerConfig
    metadata: Controller
    quotas: ClientQuotas
    cluster_id: str
    node_id: int
    internal_topics: InternalTopics
    long_work: LongWork


def handle_metadata(parts: Parts, context: RequestContext, request: Request) -> Reply:
    # In version 10 the topics have another class with the same fields.
    asked = cast("tuple[MetadataRequestTopic, ...] | None", request.topics)
    if asked is None or (context.api_version == 0 and not asked):
        return in_turns(_answer_all(parts, context, request))
    if request.allow_auto_topic_creation and parts.config.flag("auto.create.topics.enable"):
        if len(asked) > TOPICS_AT_ONCE_MAX:
            return _create_some_then_answer(parts, context, request, asked)
        missing = _creatable(parts.metadata.image, asked)
        if missing:
            return _create_then_answer(parts, context, request, asked, missing)
    return in_turns(_answer(parts, context, request, asked))


def _creatable(image: MetadataImage, asked: Sequence[MetadataRequestTopic]) -> list[str]:
    """The topics to create before the response, each once."""
    names = dict.fromkeys(topic.name for topic in asked if topic.name is not None and topic.topic_id is None)
    existing = image.topics_by_name
    return [name for name in names if name not in existing and invalid_topic_name(name) is None]


async def _answer_all(parts: Parts, context: RequestContext, request: Request) -> AnyResponse:
    turns, topics = Turns(), list[MetadataResponseTopic]()
    for topic in tuple(parts.metadata.image.topics_by_name.values()):
        topics.append(_found(topic, request))
        await turns.took(_STEPS_PER_TOPIC + len(topic.partitions))
    response = _response(parts, context, request, topics)
    return await encoded_at_length(parts.long_work, turns, context, response)


async def _create_some_then_answer(
    parts: Parts, context: RequestContext, request: Request, asked: Sequence[MetadataRequestTopic]
) -> Response:
    """Looks up many names in turns, then creates the topics that do not exist."""
    turns, missing = Turns(), dict[str, None]()
    for some in some_at_a_time(asked):
        missing.update(dict.fromkeys(_creatable(parts.metadata.image, some)))
        await turns.took(_STEPS_PER_TOPIC * len(some))
    return await _create_then_answer(parts, context, request, asked, list(missing))


async def _create_then_answer(
    parts: Parts,
    context: RequestContext,
    request: Request,
    asked: Sequence[MetadataRequestTopic],
    names: Sequence[str],
) -> Response:
    charge = MutationCharge(parts.quotas, context.client_id, strict=False)
    new_topics = [parts.internal_topics.auto_created(name) for name in names]
    # A topic that was not created is unknown in the response, and the client asks again.
    with contextlib.suppress(ApiError):
        parts.metadata.check_partition_count(new_topics)
        for some in some_at_a_time(new_topics):
            await parts.metadata.create_topics(some, charge=charge)
    response = await _answer(parts, context, request, asked)
    return replace(response, throttle_time=milliseconds(charge.throttle_ms))


async def _answer(
    parts: Parts, context: RequestContext, request: Request, asked: Sequence[MetadataRequestTopic]
) -> Response:
    unique = dict.fromkeys((topic.name, topic.topic_id) for topic in asked)
    turns, topics = Turns(), list[MetadataResponseTopic]()
    for name, topic_id in unique:
        topics.append(_one_topic(parts.metadata.image, request, name, topic_id))
        await turns.took(1)
    return _response(parts, context, request, topics)


def _one_topic(
    image: MetadataImage, request: Request, name: TopicName | None, topic_id: UUID | None
) -> MetadataResponseTopic:
    if topic_id is not None:
        topic = image.topics_by_id.get(topic_id)
        return _found(topic, request) if topic else _missing(ErrorCode.unknown_topic_id, None, topic_id)
    if name is None:
        return _missing(ErrorCode.invalid_request, TopicName(""), None)
    operations = _topic_operations(request)
    if invalid_topic_name(name) is not None:
        return _missing(ErrorCode.invalid_topic_exception, name, None, operations)
    topic = image.topics_by_name.get(name)
    if topic is None:
        return _missing(ErrorCode.unknown_topic_or_partition, name, None, operations)
    return _found(topic, request)


def _topic_operations(request: Request) -> i32:
    return TOPIC_OPERATIONS if request.include_topic_authorized_operations else OPERATIONS_NOT_ASKED


def _missing(
    error_code: ErrorCode,
    name: TopicName | None,
    topic_id: UUID | None,
    operations: i32 = OPERATIONS_NOT_ASKED,
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
        partitions=(),
        topic_authorized_operations=operations,
    )


def _found(topic: Topic, request: Request) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(topic.name),
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(
            MetadataResponsePartition(
                error_code=ErrorCode.none,
                partition_index=i32(partition.index),
                leader_id=BrokerId(partition.leader),
                leader_epoch=i32(partition.leader_epoch),
                replica_nodes=tuple(map(BrokerId, partition.replicas)),
                isr_nodes=tuple(map(BrokerId, partition.isr)),
                offline_replicas=(),
            )
            for partition in topic.partitions
        ),
        topic_authorized_operations=_topic_operations(request),
    )


def _with_name(topic: MetadataResponseTopic) -> MetadataResponseTopic:
    return topic if topic.name is not None else replace(topic, name=TopicName(""))


def _response(
    parts: Parts,
    context: RequestContext,
    request: Request,
    topics: Sequence[MetadataResponseTopic],
) -> Response:
    node_id = BrokerId(parts.node_id)
    this_broker = MetadataResponseBroker(
        node_id=node_id,
        host=context.listener.advertised_host,
        port=i32(context.listener.advertised_port),
    )
    if isinstance(request, MetadataRequestWithCluster):
        asked = request.include_cluster_authorized_operations
        return MetadataResponseWithCluster(
            throttle_time=milliseconds(0),
            brokers=(this_broker,),  # type: ignore[arg-type]  # another class with the same fields
            cluster_id=parts.cluster_id,
            controller_id=node_id,
            topics=tuple(map(_with_name, topics)),  # type: ignore[arg-type]
            cluster_authorized_operations=CLUSTER_OPERATIONS if asked else OPERATIONS_NOT_ASKED,
        )
    return MetadataResponse(
        throttle_time=milliseconds(0),
        brokers=(this_broker,),
        cluster_id=parts.cluster_id,
        controller_id=node_id,
        topics=tuple(topics),
        error_code=ErrorCode.none,
    )
