"""Produce (key 0, versions 3 to 13): batches as the producer built them, appended as they came.

Every partition answers for itself. What is checked before the log sees it: the topic, the partition, the
batches (`validate_produced`); the log checks the producer's sequence. `acks=1` and `acks=all` mean the same
on one node: the bytes are in the file, and on the disk with `log.flush=always`. With `acks=0` nothing is
answered, and an error closes the connection, as in Kafka: it is the one way to tell such a client to look
again. The broker's own topics take nothing from clients.

Transactions aren't served: a transactional id is refused for every partition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from barnabas.broker.dispatch import NO_RESPONSE, EncodedBody, Reply, RequestContext, Response
from barnabas.broker.replies import settle
from barnabas.protocol.encode.produce import (
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)
from barnabas.protocol.errors import ApiError, ErrorCode, FrameError
from barnabas.protocol.messages.produce import ProduceBody, ProducePartition, ProduceTopic
from barnabas.protocol.record_batch import validate_produced
from barnabas.protocol.record_keys import RecordsRejected, check_keys
from barnabas.storage.append import Append
from barnabas.storage.errors import StorageError
from barnabas.storage.log_config import LogConfig, TimestampType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.storage.log import PartitionLog

_ACKS = (-1, 0, 1)
_NO_ID = UUID(int=0)
_ZSTD_VERSION_MIN = 7


class _PartitionAppend(NamedTuple):
    """One partition's part of a request: an append under way, or why there is none."""

    partition_index: int
    outcome: Append | ApiError | StorageError


_TopicAppends = tuple[str, UUID, list[_PartitionAppend]]


def handle_produce(broker: Broker, context: RequestContext, request: ProduceBody) -> Reply:
    topics = [(topic, _find_topic(broker, topic)) for topic in request.topics]
    opening = broker.open_logs(
        [
            (found, one.partition_index)
            for topic, found in topics
            if found is not None
            for one in topic.partitions
        ]
    )
    if opening is not None:
        return _produce_when_open(broker, context, request, topics, opening)
    return _produce(broker, context, request, topics)


async def _produce_when_open(
    broker: Broker,
    context: RequestContext,
    request: ProduceBody,
    topics: list[tuple[ProduceTopic, Topic | None]],
    opening: Awaitable[None],
) -> Response:
    await opening
    return await settle(_produce(broker, context, request, topics))


def _produce(
    broker: Broker,
    context: RequestContext,
    request: ProduceBody,
    topics: list[tuple[ProduceTopic, Topic | None]],
) -> Reply:
    refusal = _refuse_request(request)
    appends = [_append_topic(broker, context, topic, found, refusal) for topic, found in topics]
    answer = _answer_nothing if request.acks == 0 else partial(_encode, context.api_version)
    if all(_is_done(one.outcome) for _, _, partitions in appends for one in partitions):
        return answer(appends)
    return _answer_when_done(appends, answer)


def _refuse_request(request: ProduceBody) -> ApiError | None:
    if request.acks not in _ACKS:
        return ApiError(ErrorCode.invalid_required_acks, f"acks must be -1, 0 or 1, not {request.acks}.")
    if request.transactional_id is not None:
        return ApiError(ErrorCode.transactional_id_authorization_failed, "Transactions are not supported.")
    return None


def _find_topic(broker: Broker, topic: ProduceTopic) -> Topic | None:
    if topic.topic_id is not None:
        return broker.metadata.image.topics_by_id.get(topic.topic_id)
    return broker.metadata.image.topics_by_name.get(topic.name or "")


def _append_topic(
    broker: Broker,
    context: RequestContext,
    topic: ProduceTopic,
    found: Topic | None,
    refusal: ApiError | None,
) -> _TopicAppends:
    if refusal is None and found is None:
        refusal = ApiError(
            ErrorCode.unknown_topic_or_partition if topic.topic_id is None else ErrorCode.unknown_topic_id
        )
    name = topic.name if found is None else found.name
    topic_id = topic.topic_id if found is None else found.topic_id
    partitions = [
        _PartitionAppend(
            one.partition_index,
            _append(broker, context, found, one) if refusal is None and found else refusal or _unknown(),
        )
        for one in topic.partitions
    ]
    return name or "", topic_id or _NO_ID, partitions


def _unknown() -> ApiError:
    return ApiError(ErrorCode.unknown_topic_or_partition)


def _append(
    broker: Broker, context: RequestContext, topic: Topic, partition: ProducePartition
) -> Append | ApiError | StorageError:
    if not 0 <= partition.partition_index < len(topic.partitions):
        return _unknown()
    if topic.is_internal:
        return ApiError(ErrorCode.invalid_topic_exception, f"{topic.name} is the broker's own.")
    log = broker.open_log(topic, partition.partition_index)
    if log is None:
        return ApiError(ErrorCode.kafka_storage_error)
    try:
        return _append_validated(broker, context, log, partition)
    except (ApiError, StorageError) as error:
        return error


def _append_validated(
    broker: Broker, context: RequestContext, log: PartitionLog, partition: ProducePartition
) -> Append:
    if partition.records is None:
        raise ApiError(ErrorCode.invalid_record, "A partition of the request has no records.")
    config, now_ms = log.config, broker.clock.wall_ms()
    batches = validate_produced(
        partition.records,
        message_bytes_max=config.max_message_bytes,
        zstd_allowed=context.api_version >= _ZSTD_VERSION_MIN,
        timestamp_ms_max=_timestamp_ms_max(config, now_ms),
    )
    if config.compact_enabled:
        check_keys(partition.records, batches)
    return log.append_produced(partition.records, batches, now_ms)


def _timestamp_ms_max(config: LogConfig, now_ms: int) -> int | None:
    """The latest timestamp that a producer may give (message.timestamp.after.max.ms); None if its timestamps
    don't count.
    """
    if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
        return None
    return now_ms + config.message_timestamp_after_max_ms


def _is_done(outcome: Append | ApiError | StorageError) -> bool:
    return not isinstance(outcome, Append) or outcome.done


async def _answer_when_done(
    appends: Sequence[_TopicAppends], answer: Callable[[Sequence[_TopicAppends]], Response]
) -> Response:
    for _, _, partitions in appends:
        for one in partitions:
            if isinstance(one.outcome, Append):
                with suppress(ApiError, StorageError):
                    await one.outcome
    return answer(appends)


def _answer_nothing(appends: Sequence[_TopicAppends]) -> Response:
    for name, topic_id, partitions in appends:
        for index, outcome in partitions:
            error = outcome.error if isinstance(outcome, Append) else outcome
            if error is not None:
                raise FrameError(f"Nothing was appended to {name or topic_id}-{index} with acks=0: {error}")
    return NO_RESPONSE


def _encode(version: int, appends: Sequence[_TopicAppends]) -> EncodedBody:
    topics = [
        ProduceTopicResult(name, topic_id, [_result(one) for one in partitions])
        for name, topic_id, partitions in appends
    ]
    return EncodedBody(encode_produce_response(version, topics))


def _result(append: _PartitionAppend) -> ProducePartitionResult:
    outcome = append.outcome
    if not isinstance(outcome, Append):
        return _error_result(append.partition_index, outcome)
    if outcome.error is not None:
        return _error_result(append.partition_index, outcome.error)
    return ProducePartitionResult(
        append.partition_index,
        ErrorCode.none.value,
        outcome.base_offset,
        outcome.log_append_time_ms,
        outcome.log_start_offset,
    )


def _error_result(index: int, error: Exception) -> ProducePartitionResult:
    code = error.code if isinstance(error, ApiError | StorageError) else ErrorCode.unknown_server_error
    message = error.message if isinstance(error, ApiError) else None
    record_errors = error.record_errors if isinstance(error, RecordsRejected) else ()
    return ProducePartitionResult(index, code.value, -1, record_errors=record_errors, error_message=message)
