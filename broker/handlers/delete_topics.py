"""DeleteTopics (key 20, versions 1 to 6; KIP-4, KIP-516): deletes topics with their records and settings.

- `ByName` is versions 1 to 5. `ById` is version 6, where a name or an id stands for each topic.
- All topics are looked up before any is deleted. A topic that the request names twice, by name or by id, is
  an error each time.
- With delete.topic.enable=false every topic is an error.
- timeout_ms is not used: the response waits for the append.
- From version 5 on a quota can refuse the request (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import UUID

from kio.schema.delete_topics.v5.request import DeleteTopicsRequest as DeleteTopicsRequestByName
from kio.schema.delete_topics.v5.response import DeletableTopicResult as DeletableTopicResultByName
from kio.schema.delete_topics.v5.response import DeleteTopicsResponse as DeleteTopicsResponseByName
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest as DeleteTopicsRequestById
from kio.schema.delete_topics.v6.response import DeletableTopicResult as DeletableTopicResultById
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse as DeleteTopicsResponseById

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.network.replies import respond_to_each
from barnabas.broker.quotas.mutations import MutationCharge
from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import TopicName, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.coordinator.metadata.controller import Controller

_TELLS_DISABLED_FROM = 3
_REFUSED_BY_QUOTA_FROM = 5
_BY_ID_FROM = 6


class Parts(NamedTuple):
    config: BrokerConfig
    metadata: Controller
    quotas: ClientQuotas


class _Asked(NamedTuple):
    """A topic of the request."""

    name: str | None
    topic_id: UUID | None


class _Result(NamedTuple):
    name: str | None
    topic_id: UUID | None
    error: ApiError | None


def handle_delete_topics(
    parts: Parts, context: RequestContext, request: DeleteTopicsRequestByName | DeleteTopicsRequestById
) -> Reply:
    if context.api_version < _BY_ID_FROM:
        names = cast("DeleteTopicsRequestByName", request).topic_names
        return _delete(parts, context, [_Asked(name, None) for name in names], _by_name)
    topics = cast("DeleteTopicsRequestById", request).topics
    return _delete(parts, context, [_Asked(topic.name, topic.topic_id) for topic in topics], _by_id)


def _by_name(results: Iterable[_Result]) -> DeleteTopicsResponseByName:
    return DeleteTopicsResponseByName(
        throttle_time=milliseconds(0),
        responses=tuple(
            DeletableTopicResultByName(
                name=TopicName(result.name or ""),
                **error_fields(result.error),
            )
            for result in results
        ),
    )


def _by_id(results: Iterable[_Result]) -> DeleteTopicsResponseById:
    return DeleteTopicsResponseById(
        throttle_time=milliseconds(0),
        responses=tuple(
            DeletableTopicResultById(
                name=None if result.name is None else TopicName(result.name),
                topic_id=result.topic_id,
                **error_fields(result.error),
            )
            for result in results
        ),
    )


def _delete(
    parts: Parts,
    context: RequestContext,
    asked: Sequence[_Asked],
    encode: Callable[[Iterable[_Result]], DeleteTopicsResponseByName | DeleteTopicsResponseById],
) -> Reply:
    if not parts.config.flag("delete.topic.enable"):
        told = context.api_version >= _TELLS_DISABLED_FROM
        disabled = ApiError(ErrorCode.topic_deletion_disabled if told else ErrorCode.invalid_request)
        return encode(_Result(*topic, disabled) for topic in asked)
    refused, deletable = _sort_out(parts.metadata.image, asked)

    def respond(
        errors: Sequence[ApiError | None],
    ) -> DeleteTopicsResponseByName | DeleteTopicsResponseById:
        results = [_Result(*topic, error) for topic, error in zip(deletable, errors, strict=True)]
        return replace(encode([*refused, *results]), throttle_time=milliseconds(charge.throttle_ms))

    strict = context.api_version >= _REFUSED_BY_QUOTA_FROM
    charge = MutationCharge(parts.quotas, context.client_id, strict=strict)
    reply = parts.metadata.delete_topics([topic_id for _, topic_id in deletable], charge=charge)
    return respond_to_each(reply, len(deletable), respond)


def _sort_out(image: MetadataImage, asked: Sequence[_Asked]) -> tuple[list[_Result], list[tuple[str, UUID]]]:
    """The topics that cannot be deleted, with their errors, and the (name, id) of the others."""
    seen = Counter(asked)
    found = {topic: _look_up(image, topic) for topic in seen}
    times_found = Counter(topic for topic in found.values() if isinstance(topic, tuple))
    refused: list[_Result] = []
    deletable: list[tuple[str, UUID]] = []
    for topic, result in found.items():
        if seen[topic] > 1:
            kind = "id" if topic.name is None else "name"
            refused.append(_Result(*topic, ApiError(ErrorCode.invalid_request, f"Duplicate topic {kind}.")))
        elif isinstance(result, ApiError):
            refused.append(_Result(*topic, result))
        elif times_found[result] == 1:
            deletable.append(result)
        elif topic.name is not None:
            message = "The provided topic name maps to an ID that was already supplied."
            refused.append(_Result(*result, ApiError(ErrorCode.invalid_request, message)))
    return refused, deletable


def _look_up(image: MetadataImage, asked: _Asked) -> tuple[str, UUID] | ApiError:
    name, topic_id = asked
    if name is not None and topic_id is not None:
        return ApiError(ErrorCode.invalid_request, "You may not specify both topic name and topic id.")
    if topic_id is not None:
        topic = image.topics_by_id.get(topic_id)
        unknown = ApiError(ErrorCode.unknown_topic_id, "This server does not host this topic ID.")
    elif name is not None:
        topic = image.topics_by_name.get(name)
        unknown = ApiError(
            ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition."
        )
    else:
        return ApiError(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
    return unknown if topic is None else (topic.name, topic.topic_id)
