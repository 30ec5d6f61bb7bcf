"""ShareFetch (key 78, versions 1 and 2; KIP-932, KIP-1206, KIP-1222): acknowledges and fetches records.

The checks are in Kafka's order: the group, the member id, the fields of a renewal, the session. Then the
acknowledgements take effect immediately, and the fetch waits in the purgatory for records
(`share.fetch.share_fetch_operation`). In one partition the error, the error of the acknowledgement and the
records are independent of each other. Version 1 has no acquire mode (mode 0) and no renewal. The decoder of
requests is Barnabas's own.

Differences from Kafka 4.3.1: an unknown topic id is an error of its partitions only, and an unknown acquire
mode is an error before the session's epoch advances. A request may ask for offsets without the bytes of the
records (`without_records`), for a client that acquires in one process and reads in another. It may name the
duration of the member's locks, which the session keeps. A request that a client repeats after a lost
connection gets its first answer again (`share.fetch.kept_answers`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from barnabas.broker.handlers.common.share_request import ShareRequest, lock_duration_ms
from barnabas.broker.network.handler import Reply, RequestContext, Response
from barnabas.broker.network.large_request import LargeRequest
from barnabas.coordinator.metadata.share_version import share_groups_enabled
from barnabas.protocol.decode.acknowledgements import AckTopic
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.encode.share_fetch import (
    ShareFetchPartitionResult,
    ShareFetchTopicResult,
    encode_share_fetch_response,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.purgatory import DelayedOperation
from barnabas.runtime.response_budget import EncodedBody
from barnabas.runtime.turns import PARTITIONS_AT_ONCE_MAX, Turns, in_turns, some_at_a_time
from barnabas.share.fetch.kept_answers import Acquired, KeptAnswer
from barnabas.share.fetch.repeated_fetch_operation import RepeatedFetchOperation
from barnabas.share.fetch.share_fetch_operation import (
    NO_RECORDS,
    PartitionFetch,
    ShareFetchInputs,
    ShareFetchOperation,
    ShareFetchSpec,
)
from barnabas.share.leader.acknowledgements import (
    SUCCESS,
    Results,
    has_acknowledgements,
)
from barnabas.share.partition.limits import LOCK_DURATION_MIN_MS, AcquireMode
from barnabas.share.sessions.session import INITIAL_SHARE_SESSION_EPOCH, ShareSession, ShareSessionKey
from barnabas.share.sessions.session_cache import SessionRequest

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

_STEPS_PER_PARTITION = 3
"""The steps of a turn for one partition."""

_LOCK_DURATION_MAX = "group.share.max.record.lock.duration.ms"

_ACQUIRE_MODES = {mode.value: mode for mode in AcquireMode}


class _Named(NamedTuple):
    """The partitions that a request names."""

    added: Collection[TopicIdPartition]
    forgotten: Sequence[TopicIdPartition]
    acknowledged: Sequence[AckTopic]
    """The topics with acknowledgements, and possibly others."""


def handle_share_fetch(broker: Broker, context: RequestContext, request: ShareFetchBody) -> Reply:
    named_count = 0
    for topic in request.topics:
        named_count += len(topic.partitions)
    if named_count <= PARTITIONS_AT_ONCE_MAX:
        return _fetch(broker, context, request, _named(request))

    async def read() -> Sequence[_Named]:
        return [await broker.long_work.run(_many_named, request)]

    async def answer(_: Sequence[_Named], answers: Sequence[Response]) -> Response:
        return answers[0]

    return LargeRequest(read, lambda named: _fetch(broker, context, request, named), answer)


def _named(request: ShareFetchBody) -> _Named:
    added: list[TopicIdPartition] = []
    for topic_id, partitions in request.topics:
        for partition in partitions:
            added.append(TopicIdPartition(topic_id, partition.partition_index))  # noqa: PERF401  no more calls
    forgotten: list[TopicIdPartition] = []
    for topic_id, indexes in request.forgotten_topics:
        forgotten += [TopicIdPartition(topic_id, index) for index in indexes]
    return _Named(added, forgotten, request.topics)


def _many_named(request: ShareFetchBody) -> _Named:
    """The same with a dict, which the session adopts without a step for each partition."""
    added, forgotten, topics = _named(request)
    acknowledged = [
        AckTopic(
            topic.topic_id, [partition for partition in topic.partitions if partition.acknowledgement_batches]
        )
        for topic in topics
        if has_acknowledgements([topic])
    ]
    return _Named(dict.fromkeys(added, True), forgotten, acknowledged)


def _fetch(broker: Broker, context: RequestContext, request: ShareFetchBody, named: _Named) -> Reply:
    share_request = ShareRequest(broker, context, request, "share_fetch")
    try:
        share_request.check_caller()
        if request.is_renew_ack:
            _check_renewal(request)
        _check_acquire_mode(request)
        if request.lock_duration_ms is not None:
            _check_lock_duration(broker, request.lock_duration_ms)
        found = _find_session(broker, context, share_request.key, request, named)
    except ApiError as error:
        first_answer = share_request.find_first_answer(error)
        if first_answer is not None:
            found = _find_again(share_request, first_answer, request)
            return _Fetch(broker, context, request, found, first_answer).start()
        refusal = _refuse(context.api_version, error)
        if error.code is ErrorCode.share_session_limit_reached:
            return _refuse_later(broker, refusal, request.max_wait_ms)
        return refusal
    session = found.session
    if request.lock_duration_ms is not None:
        session.lock_duration_ms = request.lock_duration_ms
    if request.repeats_requests:
        session.repeats_requests = True
    if request.wants_runs:
        session.wants_runs = True
    acknowledged = share_request.acknowledge(named.acknowledged, session.lock_duration_ms)
    answer = share_request.finish(found, acknowledged)
    return _Fetch(broker, context, request, found, answer).start()


def _find_again(
    share_request: ShareRequest, first_answer: KeptAnswer, request: ShareFetchBody
) -> SessionRequest:
    """The session part of a repeated request. If its session still lives, the request may fetch; else the
    locks have ended with the session, and only the results are left.
    """
    session = first_answer.session
    if not share_request.take_over(session):
        return SessionRequest(session, [], is_final=True)
    return SessionRequest(session, session.partitions_in_turn(request.share_session_epoch), is_final=False)


def _check_renewal(request: ShareFetchBody) -> None:
    """The fetch fields of a renewal must be 0 (KIP-1222); raises `ApiError`."""
    fields = {
        "MaxBytes": request.max_bytes,
        "MinBytes": request.min_bytes,
        "MaxRecords": request.max_records,
        "MaxWaitMs": request.max_wait_ms,
    }
    wrong = [name for name, value in fields.items() if value]
    if wrong:
        raise ApiError(ErrorCode.invalid_request, f"{', '.join(wrong)} must be 0 in a renewing request.")


def _check_acquire_mode(request: ShareFetchBody) -> None:
    if request.share_acquire_mode not in _ACQUIRE_MODES:
        raise ApiError(ErrorCode.invalid_request, f"There is no acquire mode {request.share_acquire_mode}.")


def _check_lock_duration(broker: Broker, duration_ms: int) -> None:
    greatest_ms = broker.config.integer(_LOCK_DURATION_MAX)
    if not LOCK_DURATION_MIN_MS <= duration_ms <= greatest_ms:
        message = (
            f"The duration of locks is {duration_ms} ms. It must be from {LOCK_DURATION_MIN_MS} ms to "
            f"{greatest_ms} ms, the broker's {_LOCK_DURATION_MAX}."
        )
        raise ApiError(ErrorCode.invalid_request, message)


def _find_session(
    broker: Broker, context: RequestContext, key: ShareSessionKey, request: ShareFetchBody, named: _Named
) -> SessionRequest:
    return broker.share_sessions.fetch(
        key,
        request.share_session_epoch,
        added=named.added,
        forgotten=named.forgotten,
        has_acknowledgements=request.share_session_epoch == INITIAL_SHARE_SESSION_EPOCH
        and has_acknowledgements(named.acknowledged),
        connection_id=context.connection_id,
    )


def _refuse(version: int, error: ApiError) -> EncodedBody:
    return EncodedBody(encode_share_fetch_response(version, error.code.value, error.message, 0, ()))


class _LateRefusal(DelayedOperation[Response]):
    """An error that is sent at its deadline, so that the client does not retry immediately."""

    def __init__(self, refusal: EncodedBody) -> None:
        super().__init__()
        self._refusal = refusal

    def try_complete(self) -> bool:
        """See `DelayedOperation`."""
        return False

    def on_expire(self) -> None:
        """See `DelayedOperation`."""
        self.complete(self._refusal)


def _refuse_later(broker: Broker, refusal: EncodedBody, wait_ms: int) -> Reply:
    if wait_ms <= 0:
        return refusal
    operation = _LateRefusal(refusal)
    broker.purgatory.watch(operation, (), broker.clock.monotonic_ms() + wait_ms)
    return operation


class _Fetch:
    """A request with its session."""

    def __init__(
        self,
        broker: Broker,
        context: RequestContext,
        request: ShareFetchBody,
        found: SessionRequest,
        answer: KeptAnswer,
    ) -> None:
        """`answer` has the results, and the ranges that an earlier, equal request has acquired."""
        self._broker = broker
        self._version = context.api_version
        self._client_id = context.client_id or ""
        self._request = request
        self._session = found.session
        self._is_final = found.is_final
        self._partitions = found.partitions
        self._answer = answer

    def start(self) -> Reply:
        """The operation of the fetch; if nothing is fetched, it waits for the acknowledgements only."""
        request = self._request
        fetches_nothing = (
            self._is_final or request.is_renew_ack or not request.max_records or not request.max_bytes
        )
        operation = self._operation([] if fetches_nothing else self._partitions)
        if fetches_nothing:
            operation.on_expire()
            return operation
        if len(self._partitions) > PARTITIONS_AT_ONCE_MAX:
            operation.begin_when(self._open_logs_in_turns(), partial(self._wait, operation))
            return operation
        self._count_request(self._session.topic_ids)
        opening = self._broker.open_share_logs(self._partitions)
        if opening is not None:
            operation.begin_when(opening, partial(self._wait, operation))
        else:
            self._wait(operation)
        return operation

    async def _open_logs_in_turns(self) -> None:
        turns, topic_ids = Turns(), set[UUID]()
        for some in some_at_a_time(self._partitions):
            topic_ids.update([partition.topic_id for partition in some])
            opening = self._broker.open_share_logs(some)
            if opening is not None:
                await opening
            await turns.took(_STEPS_PER_PARTITION * len(some))
        self._count_request(topic_ids)

    def _count_request(self, topic_ids: Collection[UUID]) -> None:
        for counts in self._broker.share_partitions.counts.of_topics(topic_ids):
            counts.fetches.add()

    def _operation(self, partitions: list[TopicIdPartition]) -> ShareFetchOperation:
        request = self._request
        spec = ShareFetchSpec(
            request.group_id or "",
            request.member_id or "",
            request.min_bytes,
            self._bytes_max(),
            request.max_records,
            request.batch_size,
            _ACQUIRE_MODES[request.share_acquire_mode],
        )
        answer, broker = self._answer, self._broker
        inputs = ShareFetchInputs(
            broker.fetch_source,
            spec,
            partitions,
            answer.results,
            self._encode,
            broker.response_budget,
            self._session,
        )
        if partitions and answer.acquired:
            return RepeatedFetchOperation(inputs, answer.acquired)
        return ShareFetchOperation(inputs)

    def _bytes_max(self) -> int:
        """The bytes that the request asks for, limited by the client's quota.

        The fetched bytes are not charged to the quota, as in Kafka.
        """
        quota_bytes = self._broker.quotas.fetch_bytes_max(self._client_id)
        return self._request.max_bytes if quota_bytes is None else min(self._request.max_bytes, quota_bytes)

    def _wait(self, operation: ShareFetchOperation) -> None:
        """Completes the operation, or lets the purgatory watch it."""
        if operation.try_complete():
            return
        max_wait_ms = self._request.max_wait_ms
        if max_wait_ms > 0 and not operation.hurried:
            deadline_ms = self._broker.clock.monotonic_ms() + max_wait_ms
            self._broker.purgatory.watch(operation, self._keys(), deadline_ms)
        else:
            operation.on_expire()

    def _keys(self) -> Iterable[object]:
        group_id = self._request.group_id or ""
        for partition in self._partitions:
            yield partition
            yield SharePartitionKey(group_id, *partition)

    def _encode(
        self, fetched: dict[TopicIdPartition, PartitionFetch]
    ) -> EncodedBody | Awaitable[EncodedBody]:
        return in_turns(self._encode_in_turns(fetched))

    async def _encode_in_turns(self, fetched: dict[TopicIdPartition, PartitionFetch]) -> EncodedBody:
        if not share_groups_enabled(self._broker.metadata.image):
            return _refuse(self._version, ApiError(ErrorCode.unsupported_version))
        if fetched and self._answer.is_kept:
            self._note_acquired(fetched)
        lock_ms = lock_duration_ms(self._broker, self._session)
        if self._request.without_records:
            fetched = {partition: _without_records(got) for partition, got in fetched.items()}
        turns = Turns()
        topics = await _topic_results(
            turns, self._session, self._partitions, fetched, self._answer.results.result()
        )
        arguments = self._version, 0, None, lock_ms, topics
        if turns.passed:
            return EncodedBody(await self._broker.long_work.run(encode_share_fetch_response, *arguments))
        return EncodedBody(encode_share_fetch_response(*arguments))

    def _note_acquired(self, fetched: dict[TopicIdPartition, PartitionFetch]) -> None:
        acquired: dict[TopicIdPartition, Acquired] = {}
        range_count = 0
        for partition, (handout, _, _) in fetched.items():
            if handout.acquired:
                acquired[partition] = handout.acquired
                range_count += len(handout.acquired)
        self._broker.kept_answers.note_acquired(self._answer, acquired, range_count)


def _without_records(got: PartitionFetch) -> PartitionFetch:
    return got._replace(handout=got.handout._replace(buffers=[], size_bytes=0))


async def _topic_results(
    turns: Turns,
    session: ShareSession,
    partitions: list[TopicIdPartition],
    fetched: dict[TopicIdPartition, PartitionFetch],
    results: Results,
) -> list[ShareFetchTopicResult]:
    """The partitions with a result, by topic."""
    by_topic: dict[UUID, list[ShareFetchPartitionResult]] = {}
    acknowledged = dict(results)
    for some in some_at_a_time(partitions if session.owes_answers else list(fetched)):
        for partition in some:
            got = fetched.get(partition, NO_RECORDS)
            named = session.must_answer(
                partition, has_records=bool(got.handout.acquired), has_error=got.error_code != 0
            )
            result = acknowledged.pop(partition, None)
            if named or result is not None:
                partition_result = _partition_result(session, partition, got, result or SUCCESS)
                by_topic.setdefault(partition.topic_id, []).append(partition_result)
        await turns.took(_STEPS_PER_PARTITION * len(some))
    for partition, result in acknowledged.items():
        partition_result = _partition_result(session, partition, NO_RECORDS, result)
        by_topic.setdefault(partition.topic_id, []).append(partition_result)
    return [ShareFetchTopicResult(topic_id, results) for topic_id, results in by_topic.items()]


def _partition_result(
    session: ShareSession,
    partition: TopicIdPartition,
    got: PartitionFetch,
    acknowledged: tuple[int, str | None],
) -> ShareFetchPartitionResult:
    return ShareFetchPartitionResult(
        partition.partition,
        got.error_code,
        got.error_message,
        *acknowledged,
        got.handout.buffers,
        got.handout.acquired,
        runs=got.handout.runs if session.wants_runs else None,
    )
