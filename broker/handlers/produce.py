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

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
from barnabas.broker.network.handler import NO_RESPONSE, Reply, RequestContext, Response
from barnabas.broker.network.replies import settle
from barnabas.broker.produce.preparation import Preparation, ProducedPartition, ProducedTopic
from barnabas.broker.produce.produce_order import ProduceOrder, Turn
from barnabas.broker.produce.produced_records import Prepared
from barnabas.broker.produce.transactional_produce import (
    add_produced_partitions,
    check_produced,
    writes_of_produce,
)
from barnabas.broker.produce.transactional_writes import TransactionalWrites
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.protocol.decode.produce import ProduceBody
from barnabas.protocol.encode.produce import (
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)
from barnabas.protocol.errors import ApiError, ErrorCode, FrameError, without_frames
from barnabas.protocol.identity import TopicNamePartition
from barnabas.protocol.record_validation import RecordsRejected
from barnabas.protocol.tuples import maker
from barnabas.runtime.clock import Clock
from barnabas.runtime.completion import AllDone, Completion
from barnabas.runtime.response_budget import EncodedBody
from barnabas.storage.errors import StorageError
from barnabas.storage.log.appended import Append

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import MetadataImage, Topic
    from barnabas.protocol.identity import Place
    from barnabas.storage.log.partition_log import PartitionLog

_ACKS: Final = (-1, 0, 1)
_NO_ID: Final = UUID(int=0)
_NO_ERROR: Final = ErrorCode.none.value
_ZSTD_VERSION_MIN: Final = 7
_new_topic, _new_answer = maker(ProducedTopic), maker(EncodedBody)
_new_topic_result, _new_result = maker(ProduceTopicResult), maker(ProducePartitionResult)


class Parts(NamedTuple):
    clock: Clock
    metadata: Controller
    effective_config: EffectiveConfig
    logs: PartitionLogs
    produce_order: ProduceOrder
    preparation: Preparation
    transactions: TransactionStateTopic


def handle_produce(parts: Parts, context: RequestContext, request: ProduceBody) -> Reply:
    topics, closed = _find(parts.metadata.image, parts.logs.by_place, request)
    now_ms = parts.clock.wall_ms()
    is_transactional = request.transactional_id is not None
    is_prepared = parts.preparation.begin(
        topics,
        now_ms=now_ms,
        zstd_allowed=context.api_version >= _ZSTD_VERSION_MIN,
        transactional_allowed=is_transactional,
    )
    order, connection_id = parts.produce_order, context.connection_id
    if is_prepared and not closed and not is_transactional and connection_id not in order.waiting:
        return _append(context, request, topics, now_ms)
    opening = parts.logs.open_all(closed) if closed else None
    return _append_in_turn(parts, context, request, topics, opening, order.turn(connection_id))


def _find(
    image: MetadataImage, logs: Mapping[Place, PartitionLog], request: ProduceBody
) -> tuple[list[ProducedTopic], list[tuple[Topic, int]]]:
    """The topics of a request, and the partitions whose logs are not open."""
    topics: list[ProducedTopic] = []
    closed: list[tuple[Topic, int]] = []
    for name, topic_id, partitions in request.topics:
        produced: list[ProducedPartition] = []
        if topic_id is not None:
            found = image.topics_by_number.get(topic_id.int)
        else:
            found = image.topics_by_name.get(name or "")
        if found is not None:
            number = found.topic_id.int
            for index, records in partitions:
                log = logs.get((number, index))
                if log is None or log.state.offline is not None:
                    log = None
                    closed.append((found, index))
                produced.append(ProducedPartition(index, records, log))
            topics.append(_new_topic((found.name, found.topic_id, found, produced)))
            continue
        code = ErrorCode.unknown_topic_or_partition if topic_id is None else ErrorCode.unknown_topic_id
        for index, _ in partitions:
            partition = ProducedPartition(index, None, None)
            partition.progress = ApiError(code)
            produced.append(partition)
        topics.append(ProducedTopic(name or "", topic_id or _NO_ID, None, produced))
    return topics, closed


async def _append_in_turn(
    parts: Parts,
    context: RequestContext,
    request: ProduceBody,
    topics: Sequence[ProducedTopic],
    opening: Awaitable[None] | None,
    turn: Turn,
) -> Response:
    async with turn:
        if opening is not None:
            await opening
        await parts.preparation.finish(topics)
        writes = refusal = None
        if request.transactional_id is not None:
            writes = writes_of_produce(
                parts.transactions.coordinator,
                parts.effective_config,
                context.api_version,
                request.transactional_id,
            )
            try:
                await add_produced_partitions(writes, topics)
            except ApiError as error:
                refusal = without_frames(error)
        _find_logs_again(parts.logs, topics)
        reply = _append(context, request, topics, parts.clock.wall_ms(), writes, refusal)
    return await settle(reply)


def _find_logs_again(logs: PartitionLogs, topics: Iterable[ProducedTopic]) -> None:
    """The logs that are open now, after a wait."""
    for topic in topics:
        if topic.found is not None:
            for partition in topic.partitions:
                partition.log = logs.get(topic.found, partition.index)


def _append(
    context: RequestContext,
    request: ProduceBody,
    topics: Sequence[ProducedTopic],
    now_ms: int,
    writes: TransactionalWrites | None = None,
    refusal: ApiError | None = None,
) -> Reply:
    """Begins the appends. `now_ms` is wall time; `refusal` is an error of the whole request."""
    if request.acks not in _ACKS:
        message = f"acks must be -1, 0 or 1, not {request.acks}."
        refusal = refusal or ApiError(ErrorCode.invalid_required_acks, message)
    pending: list[Append] = []
    for topic in topics:
        for partition in topic.partitions:
            outcome = _begin_append(topic.found, partition, now_ms, writes, refusal)
            if isinstance(outcome, Completion) and not outcome.done:
                pending.append(outcome)
            partition.progress = outcome
            partition.records = None
    if not pending:
        return _answer(context.api_version, request.acks, topics)
    # No coroutine: the next Produce of the client begins at once, and its records are written together.
    version, acks = context.api_version, request.acks
    return AllDone(pending).then(lambda _: _answer(version, acks, topics))


def _begin_append(
    topic: Topic | None,
    partition: ProducedPartition,
    now_ms: int,
    writes: TransactionalWrites | None,
    refusal: ApiError | None,
) -> Append | ApiError | StorageError:
    if topic is not None:
        if not 0 <= partition.index < len(topic.partitions):
            return ApiError(ErrorCode.unknown_topic_or_partition)
        if refusal is not None:
            return refusal
    prepared, log = partition.progress, partition.log
    if isinstance(prepared, ApiError):
        return prepared
    assert isinstance(prepared, Prepared), "its turn comes when it is finished"
    if log is None:
        return ApiError(ErrorCode.kafka_storage_error)
    records, batches = prepared
    header = batches[0].header
    try:
        if writes is None or not header.is_transactional:
            return log.append_produced(records, batches, now_ms)
        check_produced(writes, header, TopicNamePartition(*log.topic_partition))
        return log.append_produced(
            records, batches, now_ms, is_verified=True, from_zero=writes.ability.leaves_adding
        )
    except (ApiError, StorageError) as error:
        return without_frames(error)


def _answer(version: int, acks: int, topics: Sequence[ProducedTopic]) -> Response:
    if acks == 0:
        _raise_first_error(topics)
        return NO_RESPONSE
    results: list[ProduceTopicResult] = []
    for name, topic_id, _, partitions in topics:
        of_partitions: list[ProducePartitionResult] = []
        for partition in partitions:
            append = partition.progress
            if isinstance(append, Completion) and append.value is not None:
                base_offset, _, time_ms, log_start_offset = append.value
                result = _new_result(
                    (partition.index, _NO_ERROR, base_offset, time_ms, log_start_offset, (), None, None)
                )
            else:
                result = _refusal(partition)
            of_partitions.append(result)
        results.append(_new_topic_result((name, topic_id, of_partitions)))
    return _new_answer((encode_produce_response(version, results), 0, 0))


def _raise_first_error(topics: Sequence[ProducedTopic]) -> None:
    for name, topic_id, _, partitions in topics:
        for partition in partitions:
            progress = partition.progress
            error = progress.error if isinstance(progress, Completion) else progress
            if error is not None:
                place = f"{name or topic_id}-{partition.index}"
                raise FrameError(f"Nothing was appended to {place} with acks=0: {error}")


def _refusal(partition: ProducedPartition) -> ProducePartitionResult:
    append = partition.progress
    error = append.error if isinstance(append, Completion) else append
    code = error.code if isinstance(error, ApiError | StorageError) else ErrorCode.unknown_server_error
    message = error.message if isinstance(error, ApiError) else None
    record_errors = error.record_errors if isinstance(error, RecordsRejected) else ()
    return ProducePartitionResult(
        partition.index, code.value, -1, record_errors=record_errors, error_message=message
    )
