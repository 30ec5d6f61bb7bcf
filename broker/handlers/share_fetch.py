"""ShareFetch (key 78, versions 1 and 2; KIP-932, KIP-1206, KIP-1222): acknowledges and fetches records.

The checks are in Kafka's order: the group, the member id, the fields of a renewal, the session. Then the
acknowledgements take effect, and the records are acquired that are there (`share.fetch.share_fetch`). If
there are none, or the acknowledgements are still being written, the fetch waits in the purgatory
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

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.group_config import GroupConfigs
from barnabas.broker.handlers.common.share_request import (
    checked_key,
    find_first_answer,
    finish,
    lock_duration_ms,
    take_over,
)
from barnabas.broker.network.handler import Reply, RequestContext, Response
from barnabas.broker.network.large_request import LargeRequest
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.coordinator.metadata.share_version import share_groups_enabled
from barnabas.protocol.decode.acknowledgements import AckTopic
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.encode.share_fetch import (
    ShareFetchPartitionResult,
    ShareFetchTopicResult,
    encode_share_fetch_response,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer
from barnabas.runtime.clock import Clock
from barnabas.runtime.completion import Completion
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.purgatory import DelayedOperation, Purgatory
from barnabas.runtime.response_budget import EncodedBody, ResponseBudget
from barnabas.runtime.turns import (
    PARTITIONS_AT_ONCE_MAX,
    PARTITIONS_PER_TURN,
    Turns,
    some_at_a_time,
)
from barnabas.share.fetch.fetch_source import FetchSource
from barnabas.share.fetch.kept_answers import Acquired, KeptAnswer, KeptAnswers
from barnabas.share.fetch.share_fetch import ACQUIRE_MODES, Look, ShareFetch
from barnabas.share.fetch.share_fetch_operation import ShareFetchOperation
from barnabas.share.fetch.share_group_config import ShareGroupConfig
from barnabas.share.leader.handout import NOTHING, Handout
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.partition.limits import LOCK_DURATION_MIN_MS
from barnabas.share.sessions.acknowledgements import SUCCESS, Acknowledgements, Results, has_acknowledgements
from barnabas.share.sessions.session import (
    FINAL_SHARE_SESSION_EPOCH,
    INITIAL_SHARE_SESSION_EPOCH,
    SessionPartition,
    SessionPartitions,
    ShareSession,
    named_partitions,
)
from barnabas.share.sessions.session_cache import ShareSessionCache

_API: Final = "share_fetch"

_STEPS_PER_PARTITION: Final = 3
"""The steps of a turn for one partition."""

_LOCK_DURATION_MAX: Final = "group.share.max.record.lock.duration.ms"

_NOTHING_NAMED: Final[SessionPartitions] = {}
_NONE_ACQUIRED: Final[Mapping[SessionPartition, Acquired]] = {}

_NO_OTHER_LEADER: Final = 0, 0
_new_body, _new_row = maker(EncodedBody), maker(ShareFetchPartitionResult)
_new_topic = maker(ShareFetchTopicResult)

_Topics: TypeAlias = dict[int, ShareFetchTopicResult]
"""The results of partitions by topic, the key being the topic's id as a number."""


class Parts(NamedTuple):
    config: BrokerConfig
    clock: Clock
    metadata: Controller
    response_budget: ResponseBudget
    quotas: ClientQuotas
    group_configs: GroupConfigs
    purgatory: Purgatory
    logs: PartitionLogs
    long_work: LongWork
    share_sessions: ShareSessionCache
    kept_answers: KeptAnswers
    share_partitions: SharePartitions
    fetch_source: FetchSource
    acknowledgements: Acknowledgements
    end_share_session: Callable[[ShareSession], None]


class _Named(NamedTuple):
    """What a large request names, collected in a thread."""

    partitions: SessionPartitions
    acknowledged: Sequence[AckTopic]
    """Without the partitions that have no acknowledgement."""


def handle_share_fetch(
    parts: Parts, context: RequestContext, request: ShareFetchBody, named: _Named | None = None
) -> Reply:
    if named is None:
        named_count = 0
        for _, partitions in request.topics:
            named_count += len(partitions)
        if named_count > PARTITIONS_AT_ONCE_MAX:
            return _large(parts, context, request)
    try:
        session = _admit(parts, context, request, named)
    except ApiError as error:
        return _repeat(parts, context, request, error) or _refuse_in_time(parts, context, request, error)
    config, epoch = parts.group_configs.of(session.key.group_id), request.share_session_epoch
    acknowledged = parts.acknowledgements.take(
        session,
        request.topics if named is None else named.acknowledged,
        config.limits,
        context.started_ms,
        version=context.api_version,
        is_renew_ack=request.is_renew_ack,
    )
    kept = None
    if session.repeats_requests or epoch <= INITIAL_SHARE_SESSION_EPOCH:
        kept = finish(parts.kept_answers, parts.end_share_session, session, request, _API, acknowledged)
    in_turn = [] if epoch == FINAL_SHARE_SESSION_EPOCH else session.partitions_in_turn(epoch)
    answer = _Answer(parts, context, request, session, in_turn, acknowledged, kept)
    return answer.give(config, context.started_ms, _NONE_ACQUIRED)


def _large(parts: Parts, context: RequestContext, request: ShareFetchBody) -> Reply:
    async def read() -> Sequence[_Named]:
        return [await parts.long_work.run(_many_named, request)]

    async def answer(_: Sequence[_Named], answers: Sequence[Response]) -> Response:
        return answers[0]

    def handle(named: _Named) -> Reply:
        now = context._replace(started_ms=parts.clock.monotonic_ms())
        return handle_share_fetch(parts, now, request, named)

    return LargeRequest(read, handle, answer)


def _many_named(request: ShareFetchBody) -> _Named:
    acknowledged = [
        AckTopic(
            topic.topic_id, [partition for partition in topic.partitions if partition.acknowledgement_batches]
        )
        for topic in request.topics
        if has_acknowledgements([topic])
    ]
    return _Named(named_partitions(request.group_id or "", request.topics, _NOTHING_NAMED), acknowledged)


def _repeat(parts: Parts, context: RequestContext, request: ShareFetchBody, error: ApiError) -> Reply | None:
    """The first answer again, to a request that is refused because the client repeats it. If its session
    still lives, the request may fetch; else the locks have ended with the session, and only the results are
    left.
    """
    first = find_first_answer(parts.kept_answers, parts.share_sessions, parts.clock, request, _API, error)
    if first is None:
        return None
    session, partitions = first.session, list[SessionPartition]()
    if take_over(parts.share_sessions, session, context.connection_id):
        partitions = session.partitions_in_turn(request.share_session_epoch)
    config, now_ms = parts.group_configs.of(session.key.group_id), parts.clock.monotonic_ms()
    answer = _Answer(parts, context, request, session, partitions, first.results, first)
    return answer.give(config, now_ms, first.acquired)


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


def _check_lock_duration(config: BrokerConfig, duration_ms: int) -> None:
    greatest_ms = config.integer(_LOCK_DURATION_MAX)
    if not LOCK_DURATION_MIN_MS <= duration_ms <= greatest_ms:
        message = (
            f"The duration of locks is {duration_ms} ms. It must be from {LOCK_DURATION_MIN_MS} ms to "
            f"{greatest_ms} ms, the broker's {_LOCK_DURATION_MAX}."
        )
        raise ApiError(ErrorCode.invalid_request, message)


def _admit(
    parts: Parts, context: RequestContext, request: ShareFetchBody, named: _Named | None
) -> ShareSession:
    """The session of the request: a new one, or the present one with what the request changes in it. Raises
    `ApiError` for a request that is not allowed, and the errors of the sessions.
    """
    key, epoch = checked_key(parts.metadata.image, request), request.share_session_epoch
    if request.is_renew_ack:
        _check_renewal(request)
    if request.share_acquire_mode not in ACQUIRE_MODES:
        raise ApiError(ErrorCode.invalid_request, f"There is no acquire mode {request.share_acquire_mode}.")
    if request.lock_duration_ms is not None:
        _check_lock_duration(parts.config, request.lock_duration_ms)
    if epoch == INITIAL_SHARE_SESSION_EPOCH:
        if has_acknowledgements(request.topics if named is None else named.acknowledged):
            raise ApiError(ErrorCode.invalid_request, "A new session has nothing to acknowledge.")
        partitions = (
            named_partitions(key.group_id, request.topics, _NOTHING_NAMED)
            if named is None
            else named.partitions
        )
        session = parts.share_sessions.open(key, partitions, context.connection_id)
    else:
        session = parts.share_sessions.advance(key, epoch)
        if epoch != FINAL_SHARE_SESSION_EPOCH:
            added = (
                named_partitions(key.group_id, request.topics, session.by_place)
                if named is None
                else named.partitions
            )
            if added or request.forgotten_topics:
                session.update(added, request.forgotten_topics)
    if request.lock_duration_ms is not None:
        session.lock_duration_ms = request.lock_duration_ms
    if request.repeats_requests:
        session.repeats_requests = True
    if request.wants_runs:
        session.wants_runs = True
    return session


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


def _refuse_in_time(parts: Parts, context: RequestContext, request: ShareFetchBody, error: ApiError) -> Reply:
    refusal = _refuse(context.api_version, error)
    if error.code is not ErrorCode.share_session_limit_reached or request.max_wait_ms <= 0:
        return refusal
    operation = _LateRefusal(refusal)
    parts.purgatory.watch(operation, (), parts.clock.monotonic_ms() + request.max_wait_ms)
    return operation


class _Answer:
    """The answer to one request, from its session and the results of its acknowledgements."""

    __slots__ = (
        "_acknowledged",
        "_context",
        "_kept",
        "_partitions",
        "_parts",
        "_request",
        "_session",
    )

    def __init__(
        self,
        parts: Parts,
        context: RequestContext,
        request: ShareFetchBody,
        session: ShareSession,
        partitions: list[SessionPartition],
        acknowledged: Completion[Results],
        kept: KeptAnswer | None,
    ) -> None:
        """`partitions` are those of the session in the order in which they are served; none if it ends.
        `kept` is the place of the answer among the kept ones, if it has one.
        """
        self._parts = parts
        self._context = context
        self._request = request
        self._session = session
        self._partitions = partitions
        self._acknowledged = acknowledged
        self._kept = kept

    def give(
        self, config: ShareGroupConfig, now_ms: int, acquired: Mapping[SessionPartition, Acquired]
    ) -> Reply:
        """Fetches, and answers: at once, if that is possible. `config` are the group's settings; `acquired`
        are the ranges that an earlier, equal request has acquired.
        """
        parts, request = self._parts, self._request
        fetches_nothing = request.is_renew_ack or not request.max_records or not request.max_bytes
        partitions = [] if fetches_nothing else self._partitions
        fits_in_turn = len(self._partitions) <= PARTITIONS_PER_TURN
        fetch = ShareFetch(
            parts.fetch_source,
            parts.response_budget,
            self._session,
            request,
            partitions,
            acquired,
            self._bytes_max() if parts.quotas.active else request.max_bytes,
            now_ms,
        )
        look = fetch.begin_look(config, now_ms)
        if partitions:
            if len(self._partitions) > PARTITIONS_AT_ONCE_MAX:
                return self._wait(fetch, self._open_logs_in_turns())
            topic_ids = self._session.topic_ids or self._session.find_topic_ids()
            for counts in parts.share_partitions.counts.of_topics(topic_ids):
                counts.fetches.value += 1
            absent = fetch.absent()
            opening = parts.logs.open_by_id(absent) if absent else None
            if opening is not None or not fits_in_turn or parts.response_budget.read_turns.are_over:
                return self._wait(fetch, opening)
            found = fetch.look(look)
            if found is None:
                return self._watch(self._operation(fetch))
            look = found
            fetch.count(look)
        if self._acknowledged.done and fits_in_turn:
            buffers = self._encode(look, config.limits.lock_duration_ms)
            return _new_body((buffers, parts.response_budget.take(look.read_bytes), 0))
        operation = self._operation(fetch)
        operation.answer(look)
        return operation

    async def _open_logs_in_turns(self) -> None:
        turns, topic_ids = Turns(), set[UUID]()
        for some in some_at_a_time(self._partitions):
            topic_ids.update([partition.key.topic_id for partition in some])
            opening = self._parts.logs.open_by_id([partition.partition for partition in some])
            if opening is not None:
                await opening
            await turns.took(_STEPS_PER_PARTITION * len(some))
        for counts in self._parts.share_partitions.counts.of_topics(topic_ids):
            counts.fetches.value += 1

    def _bytes_max(self) -> int:
        """The bytes that the request asks for, limited by the client's quota.

        The fetched bytes are not charged to the quota, as in Kafka.
        """
        quota_bytes = self._parts.quotas.fetch_bytes_max(self._context.client_id or "")
        return self._request.max_bytes if quota_bytes is None else min(self._request.max_bytes, quota_bytes)

    # If the answer must wait.

    def _operation(self, fetch: ShareFetch) -> ShareFetchOperation:
        parts = self._parts
        return ShareFetchOperation(
            parts.fetch_source, parts.response_budget, fetch, self._acknowledged, self._encode_later
        )

    def _wait(self, fetch: ShareFetch, opening: Awaitable[None] | None) -> Reply:
        """The first look follows when the logs are open."""
        operation = self._operation(fetch)
        if opening is None:
            self._look(operation)
        else:
            operation.begin_when(opening, partial(self._look, operation))
        return operation

    def _look(self, operation: ShareFetchOperation) -> None:
        if not operation.try_complete():
            self._watch(operation)

    def _watch(self, operation: ShareFetchOperation) -> Reply:
        """Looks again when a partition changes, and for the last time at the end of the wait."""
        if self._request.max_wait_ms <= 0:
            operation.on_expire()
            return operation
        deadline_ms = self._parts.clock.monotonic_ms() + self._request.max_wait_ms
        self._parts.purgatory.watch(operation, self._wake_keys(), deadline_ms)
        return operation

    def _wake_keys(self) -> Iterable[object]:
        for partition in self._partitions:
            yield partition.place
            yield partition.key.place

    def _encode_later(self, look: Look) -> EncodedBody | Awaitable[EncodedBody]:
        """The answer after a wait, during which share groups may have been disabled."""
        if not share_groups_enabled(self._parts.metadata.image):
            return _refuse(self._context.api_version, ApiError(ErrorCode.unsupported_version))
        if len(self._partitions) > PARTITIONS_PER_TURN:
            return self._encode_in_turns(look)
        lock_ms = self._parts.group_configs.limits_of(self._session.key.group_id).lock_duration_ms
        return EncodedBody(self._encode(look, lock_ms))

    # The content of the answer.

    def _encode(self, look: Look, group_lock_ms: int) -> list[Buffer]:
        results = look.results() if look.errors or look.late_errors else look.handouts
        assert self._acknowledged.value is not None, "an answer follows the acknowledgements"
        acknowledged = self._acknowledged.value.copy()
        if self._kept is not None:
            self._note_acquired(self._kept, look)
        topics: _Topics = {}
        # Without answers that the session owes, only partitions with a result are named.
        named = self._partitions if self._session.owing_count else list(results)
        self._add_some(topics, named, results, acknowledged)
        if acknowledged:
            self._add_some(topics, list(acknowledged), None, acknowledged)
        lock_ms = self._session.lock_duration_ms or group_lock_ms
        return encode_share_fetch_response(self._context.api_version, 0, None, lock_ms, topics.values())

    async def _encode_in_turns(self, look: Look) -> EncodedBody:
        results, acknowledged = look.results(), self._acknowledged.result().copy()
        if self._kept is not None:
            self._note_acquired(self._kept, look)
        topics: _Topics = {}
        turns = Turns()
        for some in some_at_a_time(self._partitions if self._session.owing_count else list(results)):
            self._add_some(topics, some, results, acknowledged)
            await turns.took(_STEPS_PER_PARTITION * len(some))
        self._add_some(topics, list(acknowledged), None, acknowledged)
        lock_ms = lock_duration_ms(self._parts.group_configs, self._session)
        arguments = self._context.api_version, 0, None, lock_ms, list(topics.values())
        if turns.passed:
            return EncodedBody(await self._parts.long_work.run(encode_share_fetch_response, *arguments))
        return EncodedBody(encode_share_fetch_response(*arguments))

    def _note_acquired(self, kept: KeptAnswer, look: Look) -> None:
        """Keep what the member gets, in case the client repeats the request."""
        if kept.is_kept and look.handouts:
            acquired = {partition: handout.acquired for partition, handout in look.handouts.items()}
            self._parts.kept_answers.note_acquired(kept, acquired, sum(map(len, acquired.values())))

    def _add_some(
        self,
        topics: _Topics,
        some: Iterable[SessionPartition],
        results: Mapping[SessionPartition, Handout] | None,
        acknowledged: Results,
    ) -> None:
        """Add those of these partitions that the answer names, and remove their results from
        `acknowledged`. Without `results` it names them for their acknowledgements alone.
        """
        for partition in some:
            handout, is_named = NOTHING, False
            if results is not None:
                handout = results.get(partition, NOTHING)
                is_named = self._session.must_answer(
                    partition, has_records=bool(handout.acquired), has_error=handout.error_code != 0
                )
            result = acknowledged.pop(partition, None)
            if not is_named and result is None:
                continue
            row = _new_row(
                (
                    partition.key.partition,
                    handout.error_code,
                    handout.error_message,
                    *(result or SUCCESS),
                    () if self._request.without_records else handout.buffers,
                    handout.acquired,
                    *_NO_OTHER_LEADER,
                    handout.runs if self._session.wants_runs else None,
                )
            )
            topic = topics.get(partition.place[0])
            if topic is None:
                topics[partition.place[0]] = _new_topic((partition.key.topic_id, [row]))
            else:
                topic.partitions.append(row)
