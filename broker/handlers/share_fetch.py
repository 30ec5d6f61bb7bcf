"""ShareFetch (key 78, versions 1 and 2; KIP-932, KIP-1206, KIP-1222): acknowledge, then acquire and fetch.

Checked in Kafka's order: group, member id, the fields of a renewing request, the session. Then
acknowledgements take effect at once, and the fetch waits in the purgatory for records
(`leader/share_fetch_operation.py`). Partition errors, acknowledgement errors and records of one partition
are independent of each other.

Otherwise than Kafka 4.3.1: an unknown topic id is the error of its partitions alone, and an unknown acquire
mode is refused before the session's epoch is used up. A request may ask for offsets without the records'
bytes (`without_records`), for a client that acquires in one place and reads in another.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.broker.leader.acknowledgements import (
    SUCCESS,
    Acknowledgements,
    acknowledge,
    has_acknowledgements,
)
from barnabas.broker.leader.share_fetch_operation import (
    NO_RECORDS,
    PartitionFetch,
    ShareFetchOperation,
    ShareFetchSpec,
)
from barnabas.broker.network.dispatch import EncodedBody, Reply, RequestContext, Response
from barnabas.broker.purgatory import DelayedOperation
from barnabas.broker.share.limits import AcquireMode
from barnabas.broker.share.session import INITIAL_SHARE_SESSION_EPOCH, ShareSession, ShareSessionKey
from barnabas.broker.share.session_cache import SessionRequest
from barnabas.broker.share_version import require_share_groups, share_groups_enabled
from barnabas.coordinator.share_group.heartbeat import MEMBER_ID_LENGTH_MAX
from barnabas.protocol.encode.share_fetch import (
    ShareFetchPartitionResult,
    ShareFetchTopicResult,
    encode_share_fetch_response,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.messages.share_fetch import ShareFetchBody

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_ACQUIRE_MODES = {mode.value: mode for mode in AcquireMode}


def handle_share_fetch(broker: Broker, context: RequestContext, request: ShareFetchBody) -> Reply:
    try:
        require_share_groups(broker.metadata.image)
        check_caller(request.group_id, request.member_id)
        _check_renewal(request)
        _check_acquire_mode(request)
        found = _find_session(broker, context, request)
    except ApiError as error:
        refusal = _refuse(context.api_version, error)
        if error.code is ErrorCode.share_session_limit_reached:
            return _refuse_later(broker, refusal, request.max_wait_ms)
        return refusal
    return _Fetch(broker, context, request, found).start()


def check_caller(group_id: str | None, member_id: str | None) -> None:
    """The checks that ShareFetch and ShareAcknowledge begin with."""
    if group_id is None:
        raise ApiError(ErrorCode.invalid_request, "The request names no group.")
    if not member_id or len(member_id) > MEMBER_ID_LENGTH_MAX:
        raise ApiError(
            ErrorCode.invalid_request, f"The member id must have 1 to {MEMBER_ID_LENGTH_MAX} characters."
        )


def _check_renewal(request: ShareFetchBody) -> None:
    """A renewing request fetches nothing, and says so (KIP-1222)."""
    if not request.is_renew_ack:
        return
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


def _find_session(broker: Broker, context: RequestContext, request: ShareFetchBody) -> SessionRequest:
    return broker.share_sessions.fetch(
        ShareSessionKey(request.group_id or "", request.member_id or ""),
        request.share_session_epoch,
        added=[
            TopicIdPartition(topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        ],
        forgotten=[
            TopicIdPartition(topic_id, index)
            for topic_id, indexes in request.forgotten_topics
            for index in indexes
        ],
        has_acknowledgements=request.share_session_epoch == INITIAL_SHARE_SESSION_EPOCH
        and has_acknowledgements(request.topics),
        connection_id=context.connection_id,
    )


def _refuse(version: int, error: ApiError) -> EncodedBody:
    return EncodedBody(encode_share_fetch_response(version, error.code.value, error.message, 0, ()))


class _LateRefusal(DelayedOperation[Response]):
    """A refusal that nothing but its deadline ends, so that the client doesn't ask again at once."""

    def __init__(self, refusal: EncodedBody) -> None:
        super().__init__()
        self._refusal = refusal

    def try_complete(self) -> bool:
        """See `DelayedOperation`."""
        return False

    def on_expire(self) -> None:
        """See `DelayedOperation`."""
        self.set_result(self._refusal)


def _refuse_later(broker: Broker, refusal: EncodedBody, wait_ms: int) -> Reply:
    if wait_ms <= 0:
        return refusal
    operation = _LateRefusal(refusal)
    broker.purgatory.watch(operation, (), broker.clock.monotonic_ms() + wait_ms)
    return operation


class _Fetch:
    """One request that has found its session."""

    def __init__(
        self, broker: Broker, context: RequestContext, request: ShareFetchBody, found: SessionRequest
    ) -> None:
        self._broker = broker
        self._version = context.api_version
        self._client_id = context.client_id or ""
        self._request = request
        self._session = found.session
        self._is_final = found.is_final
        self._partitions = found.partitions
        self._acknowledgements = acknowledge(
            broker.share_partitions,
            broker.fetch_source.why_not_led,
            request.group_id or "",
            request.member_id or "",
            request.topics,
            version=context.api_version,
            is_renew_ack=request.is_renew_ack,
        )

    def start(self) -> Reply:
        """The reply: at once without a fetch, else when the fetch ends."""
        request = self._request
        if self._is_final:
            # Whether or not anybody is left to be answered by then.
            self._acknowledgements.when_complete(lambda: self._broker.end_share_session(self._session))
        fetches_nothing = (
            self._is_final or request.is_renew_ack or not request.max_records or not request.max_bytes
        )
        operation = self._operation([] if fetches_nothing else self._partitions)
        if fetches_nothing:
            operation.on_expire()
            return operation.result() if operation.done() else operation
        self._count_request()
        opening = self._broker.open_share_logs(self._partitions)
        if opening is not None:
            operation.begin_when(opening, partial(self._wait, operation))
        else:
            self._wait(operation)
        return operation.result() if operation.done() else operation

    def _count_request(self) -> None:
        topic_ids = {one.topic_id for one in self._partitions}
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
        return ShareFetchOperation(
            self._broker.fetch_source,
            spec,
            partitions,
            self._acknowledgements,
            self._encode,
            self._broker.response_budget,
        )

    def _bytes_max(self) -> int:
        """What the request asks for, within the client's quota; what is fetched isn't charged to that, as in
        Kafka.
        """
        quota_bytes = self._broker.quotas.fetch_bytes_max(self._client_id)
        return self._request.max_bytes if quota_bytes is None else min(self._request.max_bytes, quota_bytes)

    def _wait(self, operation: ShareFetchOperation) -> None:
        """Complete the operation, or have it watched."""
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

    def _encode(self, fetched: dict[TopicIdPartition, PartitionFetch]) -> EncodedBody:
        if not share_groups_enabled(self._broker.metadata.image):
            return _refuse(self._version, ApiError(ErrorCode.unsupported_version))
        limits = self._broker.group_configs.limits_of(self._request.group_id or "")
        if self._request.without_records:
            fetched = {one: _without_records(got) for one, got in fetched.items()}
        topics = _topic_results(self._session, self._partitions, fetched, self._acknowledgements)
        body = encode_share_fetch_response(self._version, 0, None, limits.lock_duration_ms, topics)
        record_bytes = sum([one.handout.size_bytes for one in fetched.values()])
        return EncodedBody(body, self._broker.response_budget.take(record_bytes))


def _without_records(got: PartitionFetch) -> PartitionFetch:
    return got._replace(handout=got.handout._replace(buffers=[], size_bytes=0))


def _topic_results(
    session: ShareSession,
    partitions: list[TopicIdPartition],
    fetched: dict[TopicIdPartition, PartitionFetch],
    acknowledgements: Acknowledgements,
) -> list[ShareFetchTopicResult]:
    """The partitions with something to say, by topic."""
    by_topic: dict[UUID, list[ShareFetchPartitionResult]] = {}
    acknowledged = dict(acknowledgements.results)
    for one in partitions:
        got = fetched.get(one, NO_RECORDS)
        named = session.must_answer(
            one, has_records=bool(got.handout.acquired), has_error=got.error_code != 0
        )
        result = acknowledged.pop(one, None)
        if named or result is not None:
            by_topic.setdefault(one.topic_id, []).append(_partition_result(one, got, result or SUCCESS))
    for one, result in acknowledged.items():
        by_topic.setdefault(one.topic_id, []).append(_partition_result(one, NO_RECORDS, result))
    return [ShareFetchTopicResult(topic_id, results) for topic_id, results in by_topic.items()]


def _partition_result(
    partition: TopicIdPartition, got: PartitionFetch, acknowledged: tuple[int, str | None]
) -> ShareFetchPartitionResult:
    return ShareFetchPartitionResult(
        partition.partition,
        got.error_code,
        got.error_message,
        *acknowledged,
        got.handout.buffers,
        got.handout.acquired,
    )
