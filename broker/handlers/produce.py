"""Produce (key 0, versions 3 to 13; KIP-98, KIP-516, KIP-890): appends the batches of a producer unchanged.

- Topics have names up to version 12 and ids in version 13. The decoder of requests is Barnabas's own.
- Each partition has its own error. The topic, the partition and the batch with all its records are checked
  before the append (`preparation`); the log checks the producer's sequence.
- `acks=1` and `acks=all` are the same with one node: the bytes are in the file, and with `log.flush=always`
  on the disk. `acks=0` has no response, and an error closes the connection, as in Kafka, because the client
  has no other way to notice it.
- Clients cannot write to the broker's own topics.
- A transactional batch needs a transactional id, and its partition must be part of the transaction
  (`transactional_produce`). From version 12 on the write adds the partition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from barnabas.broker.network.handler import NO_RESPONSE, Reply, RequestContext, Response
from barnabas.broker.network.replies import settle
from barnabas.broker.produce.preparation import FoundTopic, Preparing, ProducedTopic
from barnabas.broker.produce.produce_order import Turn
from barnabas.broker.produce.produced_records import Prepared
from barnabas.broker.produce.transactional_produce import (
    add_produced_partitions,
    check_produced,
    writes_of_produce,
)
from barnabas.broker.produce.transactional_writes import TransactionalWrites
from barnabas.protocol.decode.produce import ProduceBody, ProduceTopic
from barnabas.protocol.encode.produce import (
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)
from barnabas.protocol.errors import ApiError, ErrorCode, FrameError, without_frames
from barnabas.protocol.identity import TopicNamePartition
from barnabas.protocol.record_validation import RecordsRejected
from barnabas.runtime.completion import AllDone, Completion
from barnabas.runtime.response_budget import EncodedBody
from barnabas.storage.errors import StorageError
from barnabas.storage.log.appended import Append

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.storage.log.partition_log import PartitionLog

_ACKS = (-1, 0, 1)
_NO_ID = UUID(int=0)
_NO_ERROR = ErrorCode.none.value
_ZSTD_VERSION_MIN = 7


class _PartitionAppend(NamedTuple):
    """One partition of a request: the append, or the error that prevents it."""

    partition_index: int
    outcome: Append | ApiError | StorageError


_TopicAppends = tuple[str, UUID, list[_PartitionAppend]]


def handle_produce(broker: Broker, context: RequestContext, request: ProduceBody) -> Reply:
    topics = [_find(broker, topic) for topic in request.topics]
    closed = [
        (found, partition.partition_index)
        for topic, found, logs in topics
        if found is not None and None in logs
        for partition, log in zip(topic.partitions, logs, strict=True)
        if log is None
    ]
    opening = broker.logs.open_all(closed) if closed else None
    produced, is_finished = broker.preparation.begin(
        topics,
        zstd_allowed=context.api_version >= _ZSTD_VERSION_MIN,
        transactional_allowed=request.transactional_id is not None,
    )
    order = broker.produce_order
    waits = opening is not None or request.transactional_id is not None or not is_finished
    if not waits and not order.is_held_up(context.connection_id):
        return _produce(broker, context, request, produced)
    return _produce_in_turn(broker, context, request, produced, opening, order.turn(context.connection_id))


async def _produce_in_turn(
    broker: Broker,
    context: RequestContext,
    request: ProduceBody,
    topics: Sequence[ProducedTopic],
    opening: Awaitable[None] | None,
    turn: Turn,
) -> Response:
    async with turn:
        if opening is not None:
            await opening
        await broker.preparation.finish(topics)
        if request.transactional_id is None:
            reply = _produce(broker, context, request, _with_logs(broker, topics))
        else:
            reply = await _produce_in_transaction(broker, context, request, request.transactional_id, topics)
    return await settle(reply)


async def _produce_in_transaction(
    broker: Broker,
    context: RequestContext,
    request: ProduceBody,
    transactional_id: str,
    topics: Sequence[ProducedTopic],
) -> Reply:
    """Adds the partitions to the transaction, then begins the appends."""
    writes = writes_of_produce(
        broker.transactions.coordinator, broker.effective_config, context.api_version, transactional_id
    )
    refusal = None
    try:
        await add_produced_partitions(writes, [(topic.topic, topic.found) for topic in topics])
    except ApiError as error:
        refusal = without_frames(error)
    return _produce(broker, context, request, _with_logs(broker, topics), writes, refusal)


def _produce(
    broker: Broker,
    context: RequestContext,
    request: ProduceBody,
    topics: Sequence[ProducedTopic],
    writes: TransactionalWrites | None = None,
    refusal: ApiError | None = None,
) -> Reply:
    refusal = refusal or _refuse_request(request)
    appends = [_append_topic(broker, topic, refusal, writes) for topic in topics]
    answer = _answer_nothing if request.acks == 0 else partial(_encode, context.api_version)
    pending = _open_appends(appends)
    if not pending:
        return answer(appends)
    # No coroutine: the next Produce of the client begins at once, and its records are written together.
    return AllDone(pending).then(lambda _: answer(appends))


def _refuse_request(request: ProduceBody) -> ApiError | None:
    if request.acks not in _ACKS:
        return ApiError(ErrorCode.invalid_required_acks, f"acks must be -1, 0 or 1, not {request.acks}.")
    return None


def _find(broker: Broker, topic: ProduceTopic) -> FoundTopic:
    if topic.topic_id is not None:
        found = broker.metadata.image.topics_by_id.get(topic.topic_id)
    else:
        found = broker.metadata.image.topics_by_name.get(topic.name or "")
    return FoundTopic(topic, found, _logs(broker, topic, found))


def _logs(broker: Broker, topic: ProduceTopic, found: Topic | None) -> list[PartitionLog | None]:
    """The logs of the partitions; None for one that is not open or does not serve."""
    if found is None:
        return [None] * len(topic.partitions)
    return [broker.logs.get(found, partition.partition_index) for partition in topic.partitions]


def _with_logs(broker: Broker, topics: Iterable[ProducedTopic]) -> list[ProducedTopic]:
    """The topics with the logs that are open now, after a wait."""
    return [topic._replace(logs=_logs(broker, topic.topic, topic.found)) for topic in topics]


def _append_topic(
    broker: Broker,
    produced: ProducedTopic,
    refusal: ApiError | None,
    writes: TransactionalWrites | None,
) -> _TopicAppends:
    topic, found, prepared, logs = produced
    if found is None:
        refusal = ApiError(
            ErrorCode.unknown_topic_or_partition if topic.topic_id is None else ErrorCode.unknown_topic_id
        )
    name = topic.name if found is None else found.name
    topic_id = topic.topic_id if found is None else found.topic_id
    partitions = [
        _append(broker, found, partition.partition_index, preparing, log, refusal, writes)
        for partition, preparing, log in zip(topic.partitions, prepared, logs, strict=True)
    ]
    return name or "", topic_id or _NO_ID, partitions


def _append(
    broker: Broker,
    topic: Topic | None,
    index: int,
    prepared: Preparing,
    log: PartitionLog | None,
    refusal: ApiError | None,
    writes: TransactionalWrites | None,
) -> _PartitionAppend:
    if topic is not None and not 0 <= index < len(topic.partitions):
        return _PartitionAppend(index, ApiError(ErrorCode.unknown_topic_or_partition))
    if refusal is not None or topic is None:
        return _PartitionAppend(index, refusal or ApiError(ErrorCode.unknown_topic_or_partition))
    if isinstance(prepared, ApiError):
        return _PartitionAppend(index, prepared)
    assert isinstance(prepared, Prepared), "its turn comes when it is finished"
    if log is None:
        return _PartitionAppend(index, ApiError(ErrorCode.kafka_storage_error))
    try:
        return _PartitionAppend(index, _append_prepared(broker, log, prepared, writes))
    except (ApiError, StorageError) as error:
        return _PartitionAppend(index, without_frames(error))


def _append_prepared(
    broker: Broker, log: PartitionLog, prepared: Prepared, writes: TransactionalWrites | None
) -> Append:
    records, batches = prepared
    now_ms, header = broker.clock.wall_ms(), batches[0].header
    if writes is None or not header.is_transactional:
        return log.append_produced(records, batches, now_ms)
    check_produced(writes, header, TopicNamePartition(*log.topic_partition))
    return log.append_produced(
        records, batches, now_ms, is_verified=True, from_zero=writes.ability.leaves_adding
    )


def _open_appends(appends: Sequence[_TopicAppends]) -> list[Append]:
    pending: list[Append] = []
    for _, _, partitions in appends:
        for _, outcome in partitions:
            if isinstance(outcome, Completion) and not outcome.done:
                pending.append(outcome)
    return pending


def _answer_nothing(appends: Sequence[_TopicAppends]) -> Response:
    for name, topic_id, partitions in appends:
        for index, outcome in partitions:
            error = outcome.error if isinstance(outcome, Completion) else outcome
            if error is not None:
                raise FrameError(f"Nothing was appended to {name or topic_id}-{index} with acks=0: {error}")
    return NO_RESPONSE


def _encode(version: int, appends: Sequence[_TopicAppends]) -> EncodedBody:
    topics = [
        ProduceTopicResult(name, topic_id, [_result(partition) for partition in partitions])
        for name, topic_id, partitions in appends
    ]
    return EncodedBody(encode_produce_response(version, topics))


def _result(append: _PartitionAppend) -> ProducePartitionResult:
    outcome = append.outcome
    if not isinstance(outcome, Completion):
        return _error_result(append.partition_index, outcome)
    if outcome.error is not None:
        return _error_result(append.partition_index, outcome.error)
    base_offset, _, log_append_time_ms, log_start_offset = outcome.result()
    return ProducePartitionResult(
        append.partition_index, _NO_ERROR, base_offset, log_append_time_ms, log_start_offset
    )


def _error_result(index: int, error: Exception) -> ProducePartitionResult:
    code = error.code if isinstance(error, ApiError | StorageError) else ErrorCode.unknown_server_error
    message = error.message if isinstance(error, ApiError) else None
    record_errors = error.record_errors if isinstance(error, RecordsRejected) else ()
    return ProducePartitionResult(index, code.value, -1, record_errors=record_errors, error_message=message)
