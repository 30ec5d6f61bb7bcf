"""CreateTopics (key 19, versions 2 to 7; KIP-4, KIP-464, KIP-525): creates topics.

- The controller decides on each topic. A name that the request has twice is INVALID_REQUEST.
- One of the broker's own topics gets the settings that it needs.
- From version 5 on the response has the settings and the size of each new topic.
- timeout_ms is not used: the response waits for the append.
- From version 6 on a quota can refuse the request (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)

from barnabas.broker.config.effective import ConfigEntry
from barnabas.broker.network.replies import respond_when_done
from barnabas.broker.quotas.mutations import MutationCharge
from barnabas.coordinator.metadata.topic_decisions import NewTopic, TopicCreation
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import TopicName, i8, i16, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.broker.internal_topics.internal_topics import InternalTopics
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.coordinator.metadata.controller import Controller

_REFUSED_BY_QUOTA_FROM = 6


class Parts(NamedTuple):
    metadata: Controller
    effective_config: EffectiveConfig
    quotas: ClientQuotas
    internal_topics: InternalTopics


def handle_create_topics(parts: Parts, context: RequestContext, request: CreateTopicsRequest) -> Reply:
    seen = Counter(topic.name for topic in request.topics)
    new_topics = [
        _new_topic(parts.internal_topics, topic) for topic in request.topics if seen[topic.name] == 1
    ]
    configs = {topic.name: topic.configs for topic in new_topics}
    duplicate = ApiError(ErrorCode.invalid_request, "Duplicate topic name.")
    refused = [_refused(name, duplicate) for name, count in seen.items() if count > 1]

    def respond(creations: Sequence[TopicCreation]) -> CreateTopicsResponse:
        results = [
            _result(parts.effective_config, creation, configs[creation.name]) for creation in creations
        ]
        return CreateTopicsResponse(
            throttle_time=milliseconds(charge.throttle_ms), topics=(*results, *refused)
        )

    def refuse(error: ApiError) -> CreateTopicsResponse:
        return respond([TopicCreation(topic.name, error=error) for topic in new_topics])

    strict = context.api_version >= _REFUSED_BY_QUOTA_FROM
    charge = MutationCharge(parts.quotas, context.client_id, strict=strict)
    reply = parts.metadata.create_topics(new_topics, validate_only=request.validate_only, charge=charge)
    return respond_when_done(reply, respond, refuse)


def _new_topic(internal_topics: InternalTopics, topic: CreatableTopic) -> NewTopic:
    asked = NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )
    return internal_topics.completed(asked)


def _result(
    config: EffectiveConfig, creation: TopicCreation, configs: Mapping[str, str | None]
) -> CreatableTopicResult:
    if creation.error is not None:
        return _refused(creation.name, creation.error)
    own = {name: value for name, value in configs.items() if value is not None}
    return CreatableTopicResult(
        name=TopicName(creation.name),
        topic_id=creation.topic_id,
        error_code=ErrorCode.none,
        error_message=None,
        num_partitions=i32(creation.partition_count),
        replication_factor=i16(creation.replication_factor),
        configs=tuple(_config(entry) for entry in config.new_topic_entries(own)),
    )


def _config(entry: ConfigEntry) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=entry.setting.name,
        value=entry.value,
        read_only=False,
        config_source=i8(entry.source),
        is_sensitive=False,
    )


def _refused(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=TopicName(name),
        topic_id=None,
        error_code=error.code,
        error_message=error.message,
        configs=(),
    )
