"""The wait of one Fetch request, and its response.

The response is within `max_bytes` and the broker's `ResponseBudget`, except that the first partition with
records returns at least one batch of any size. An incremental request of a session gets only the partitions
with changes, any other request gets all. As in Kafka, partitions that don't exist come last, and those with
unknown topic ids come first among them.

Thousands of partitions are looked up, read and answered in several turns. A small request needs one turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from barnabas.broker.fetch.partition_fetch import available_bytes, is_up_to_date, look_up, missing, read
from barnabas.broker.fetch.range_fetch import (
    LEFT_OUT_BYTES_MAX,
    LOOK_BYTES,
    LookLimit,
    Searches,
    available_in_range,
    read_in_range,
)
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.sessions.fetch_sessions import (
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    WantedPartition,
    next_epoch,
    wanted_partitions,
)
from barnabas.protocol.encode.fetch import (
    ENDPOINTS_VERSION,
    LOG_START_VERSION,
    TOPIC_ID_VERSION,
    FetchPartitionResult,
    FetchTopicResult,
    encode_fetch_response,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.varint import Buffer
from barnabas.runtime.reserving_operation import ReservingOperation
from barnabas.runtime.response_budget import RESPONSE_BYTES_MAX, EncodedBody
from barnabas.runtime.turns import PARTITIONS_AT_ONCE_MAX, SMALL_READ_BYTES, Turns, in_turns, some_at_a_time
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.broker.sessions.fetch_sessions import FetchSessionCache
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.coordinator.metadata.partition_logs import PartitionLogs
    from barnabas.protocol.decode.fetch import FetchBody
    from barnabas.runtime.clock import Clock
    from barnabas.runtime.long_work import LongWork
    from barnabas.runtime.purgatory import Purgatory
    from barnabas.runtime.response_budget import ResponseBudget

_FENCED: Final = ErrorCode.fenced_leader_epoch.value
_NO_ID: Final = UUID(int=0)
_NOT_LEADER: Final = ErrorCode.not_leader_or_follower.value
_STORAGE_ERROR: Final = ErrorCode.kafka_storage_error.value

_STEPS_PER_PARTITION: Final = 3
"""The steps of a turn that one partition uses."""
_STEPS_PER_READ: Final = 40
"""The further steps that a partition with records uses."""

_Results = list[tuple[WantedPartition, FetchPartitionResult]]


class FetchParts(Protocol):
    """The handler's parts that the operation uses."""

    @property
    def clock(self) -> Clock: ...
    @property
    def metadata(self) -> Controller: ...
    @property
    def response_budget(self) -> ResponseBudget: ...
    @property
    def quotas(self) -> ClientQuotas: ...
    @property
    def node_id(self) -> int: ...
    @property
    def purgatory(self) -> Purgatory: ...
    @property
    def logs(self) -> PartitionLogs: ...
    @property
    def long_work(self) -> LongWork: ...
    @property
    def fetch_sessions(self) -> FetchSessionCache: ...


class FetchOperation(ReservingOperation):
    """The wait of a fetch; also the future of its response."""

    _missing: Sequence[WantedPartition] = ()
    """The partitions that did not exist when the request arrived."""
    _topics_revision: int = -1
    _has_unfound: bool = False
    _answering: asyncio.Future[None] | None = None
    """A reference, because the loop does not keep its tasks alive."""

    def __init__(
        self,
        parts: FetchParts,
        context: RequestContext,
        request: FetchBody,
        session: FetchSession | None,
    ) -> None:
        """`session` is the session of an incremental request: the partitions are the session's. Without one
        they are those in the request.
        """
        super().__init__(parts.response_budget)
        self._parts = parts
        self._context = context
        self._request = request
        self._session = session
        self._partitions: Sequence[WantedPartition] = ()
        self._searches: Searches = {}

    def start(self) -> Reply:
        """The response at once if the request need not wait; else this operation."""
        session, named = self._session, self._request.topics
        named_count = 0
        for _, partitions in named:
            named_count += len(partitions)
        if session is None and named_count > PARTITIONS_AT_ONCE_MAX:
            self.begin_when(self._find_in_turns(), self._wait)
            return self
        self._partitions = wanted_partitions(named) if session is None else list(session.partitions.values())
        closed = self._look_up(self._partitions)
        self._set_missing_aside()
        opening = self._parts.logs.open_all(closed) if closed else None
        if opening is None:
            self._wait()
        else:
            self.begin_when(opening, self._wait_when_open)
        return self

    def _wait_when_open(self) -> None:
        self._look_up(self._partitions)
        self._wait()

    async def _find_in_turns(self) -> None:
        """Finds thousands of partitions, and opens the logs that are not open."""
        parts, turns = self._parts, Turns()
        self._partitions = await parts.long_work.run(wanted_partitions, self._request.topics)
        closed = await self._look_up_in_turns(turns)
        await self._set_missing_aside_in_turns(turns)
        opening = parts.logs.open_all(closed) if closed else None
        if opening is not None:
            await opening
            await self._look_up_in_turns(turns)

    async def _look_up_in_turns(self, turns: Turns) -> list[tuple[Topic, int]]:
        closed: list[tuple[Topic, int]] = []
        revision = self._parts.metadata.image.topics_revision
        for some in some_at_a_time(self._partitions):
            closed += self._look_up(some)
            await turns.took(_STEPS_PER_PARTITION * len(some))
        self._topics_revision = revision  # the first topics may have changed since their look-up
        return closed

    def _set_missing_aside(self) -> None:
        if self._has_unfound:
            never_known, missing, self._partitions = _classify(self._partitions)
            self._missing = [*never_known, *missing]

    async def _set_missing_aside_in_turns(self, turns: Turns) -> None:
        classified: tuple[list[WantedPartition], ...] = [], [], []
        for some in some_at_a_time(self._partitions):
            for all_of_kind, some_of_kind in zip(classified, _classify(some), strict=True):
                all_of_kind.extend(some_of_kind)
            await turns.took(_STEPS_PER_PARTITION * len(some))
        never_known, missing, self._partitions = classified
        self._missing = [*never_known, *missing]

    def _wait(self) -> None:
        max_wait_ms = self._request.max_wait_ms
        if max_wait_ms <= 0 or not self._partitions:
            self.on_expire()
        elif not self.try_complete():
            deadline_ms = self._parts.clock.monotonic_ms() + max_wait_ms
            keys = [
                (partition.topic.topic_id.int, partition.asked.partition)
                for partition in self._partitions
                if partition.topic
            ]
            self._parts.purgatory.watch(self, keys, deadline_ms)

    def try_complete(self) -> bool:
        """See `DelayedOperation`."""
        if not self._parts.response_budget.bytes_max() or not self._has_enough():
            return False
        self.on_expire()
        return True

    def on_expire(self) -> None:
        """See `DelayedOperation`."""
        answering = in_turns(self._answer_in_turns())
        if answering is not None:
            self._answering = asyncio.ensure_future(answering)
            self._answering.add_done_callback(self._answered)

    def _answered(self, answering: asyncio.Future[None]) -> None:
        """Handles the end of the task: a failure is a bug, and a cancellation means that the loop ends."""
        if answering.cancelled():
            self.withdraw()
            return
        try:
            answering.result()
        except Exception as error:
            if not self.done:
                self.fail(error)

    async def _answer_in_turns(self) -> None:
        turns, session = Turns(), self._session
        if self._is_out_of_turn():
            self._refuse()
            return
        results, record_bytes = await self._read(turns)
        throttle_ms = self._throttle_ms(record_bytes)
        if throttle_ms:
            self.give_back()
            session_id = NO_SESSION if session is None else session.session_id
            self._answer(self._encode(ErrorCode.none, session_id, []), throttle_ms=throttle_ms)
            return
        for some in some_at_a_time(self._missing):
            results += [(partition, missing(partition)) for partition in some]
            await turns.took(_STEPS_PER_PARTITION * len(some))
        if self.done:
            return  # withdrawn between two turns
        if self._is_out_of_turn():
            self._refuse()
            return
        if session is not None:
            results = _changed_results(session, results)
        session_id = NO_SESSION
        if session is not None or self._request.session_epoch == INITIAL_EPOCH:
            for some_results in some_at_a_time(results):
                for partition, result in some_results:
                    partition.note_sent(result)
                if session is None:
                    await turns.took(len(some_results))
            session_id = self._open_session(results) if session is None else session.session_id
        long_work = self._parts.long_work
        body = await long_work.run_if(turns.passed, self._encode, ErrorCode.none, session_id, results)
        self._answer(body)

    def _is_out_of_turn(self) -> bool:
        """Whether the session has advanced without this request."""
        session = self._session
        return session is not None and session.epoch != next_epoch(self._request.session_epoch)

    def _refuse(self) -> None:
        self.give_back()
        session_id = NO_SESSION if self._session is None else self._session.session_id
        self._answer(self._encode(ErrorCode.invalid_fetch_session_epoch, session_id, []))

    def _throttle_ms(self, record_bytes: int) -> int:
        """The throttle time for that many bytes. If the client must wait, its session is not changed."""
        quotas = self._parts.quotas
        return quotas.fetched(self._context.client_id or "", record_bytes) if quotas.active else 0

    def _bytes_max(self) -> int:
        """The most bytes of records in the response, by the request and the client's quota."""
        quotas, bytes_max = self._parts.quotas, self._request.max_bytes
        quota_bytes = quotas.fetch_bytes_max(self._context.client_id or "") if quotas.active else None
        return bytes_max if quota_bytes is None else min(bytes_max, quota_bytes)

    def _look_up(self, partitions: Sequence[WantedPartition]) -> list[tuple[Topic, int]]:
        """Find the partitions' topics and logs; returns the partitions whose logs are not open."""
        parts, image = self._parts, self._parts.metadata.image
        revision = self._topics_revision = image.topics_revision
        closed: list[tuple[Topic, int]] = []
        for partition in partitions:
            if partition.topics_revision != revision:
                look_up(image, partition)
            if partition.topic is None:
                self._has_unfound = True
            elif partition.log is None or partition.log.state.offline is not None:
                partition.log = parts.logs.get(partition.topic, partition.asked.partition)
                if partition.log is None:
                    closed.append((partition.topic, partition.asked.partition))
        return closed

    def _look_up_changes(self) -> None:
        """Topics may be created and deleted while the request waits."""
        if self._topics_revision != self._parts.metadata.image.topics_revision:
            self._look_up(self._partitions)

    def _has_enough(self) -> bool:
        """Whether the requested bytes are available, or an error that must be reported at once."""
        self._look_up_changes()
        request, available = self._request, 0
        enough = min(request.min_bytes, self._bytes_max(), RESPONSE_BYTES_MAX)
        if enough <= 0:
            return True
        limit: LookLimit | None = None
        for partition in self._partitions:
            if is_up_to_date(partition, request.isolation_level):
                continue
            try:
                if partition.asked.hash_range is None:
                    available += available_bytes(partition, request.isolation_level, enough=enough)
                else:
                    limit = limit or LookLimit(LOOK_BYTES)
                    available += available_in_range(
                        partition, self._searches, request.isolation_level, enough=enough, limit=limit
                    )
            except (ApiError, StorageError):
                return True
            if available >= enough:
                return True
        return False

    async def _read(self, turns: Turns) -> tuple[_Results, int]:
        """The results of the partitions that may have changes, and the bytes of their records."""
        self._look_up_changes()
        isolation_level = self._request.isolation_level
        budget = self._parts.response_budget
        budget_bytes = budget.bytes_max()
        bytes_left, read_bytes = min(self._bytes_max(), budget_bytes), 0
        at_least_one = budget_bytes > 0
        results: _Results = []
        limit: LookLimit | None = None
        for some in some_at_a_time(self._partitions):
            if turns.passed:
                self._look_up(some)  # other work has run since the last look-up
            steps = _STEPS_PER_PARTITION * len(some)
            for partition in some:
                if is_up_to_date(partition, isolation_level):
                    continue
                if budget.read_turns.are_over:
                    await budget.read_turns.wait(turns)
                    if self.done:
                        return results, read_bytes
                    self._look_up(some)
                    bytes_left = min(bytes_left, budget.bytes_max())
                    at_least_one &= bytes_left > 0
                partition_bytes_max = min(partition.asked.partition_max_bytes, bytes_left)
                if partition.asked.hash_range is None:
                    result = read(partition, isolation_level, partition_bytes_max, at_least_one=at_least_one)
                else:
                    limit = limit or LookLimit(LEFT_OUT_BYTES_MAX)
                    result = await read_in_range(
                        partition,
                        self._searches,
                        isolation_level,
                        partition_bytes_max,
                        at_least_one=at_least_one,
                        limit=limit,
                        turns=turns,
                    )
                if result.records:
                    record_bytes = sum(map(len, result.records))
                    self.reserve(record_bytes)
                    if record_bytes > SMALL_READ_BYTES:
                        budget.read_turns.read(record_bytes)
                    bytes_left -= record_bytes
                    read_bytes += record_bytes
                    at_least_one = False
                    steps += _STEPS_PER_READ
                results.append((partition, result))
            await turns.took(steps)
        return results, read_bytes

    def _open_session(self, results: _Results) -> int:
        """The id of a new session; NO_SESSION if there is no room for one."""
        return self._parts.fetch_sessions.open(
            [partition for partition, _ in results],
            by_id=self._context.api_version >= TOPIC_ID_VERSION,
            now_ms=self._parts.clock.monotonic_ms(),
        )

    def _answer(self, body: list[Buffer], *, throttle_ms: int = 0) -> None:
        if not self.done:
            self.hand_over(EncodedBody(body, throttle_ms=throttle_ms))

    def _encode(self, error_code: ErrorCode, session_id: int, results: _Results) -> list[Buffer]:
        topics: list[FetchTopicResult] = []
        endpoints: list[NodeEndpoint] = []
        reference: str | UUID | None = None
        partitions: list[FetchPartitionResult] = []
        for partition, result in results:
            if partition.key[0] is not reference and partition.key[0] != reference:
                reference, partitions = partition.key[0], []
                topics.append(_topic(partition, partitions))
            partitions.append(self._explained(partition, result, endpoints) if result.error_code else result)
        return encode_fetch_response(
            self._context.api_version, error_code.value, session_id, topics, node_endpoints=endpoints
        )

    def _explained(
        self, partition: WantedPartition, result: FetchPartitionResult, endpoints: list[NodeEndpoint]
    ) -> FetchPartitionResult:
        """An error in the form of the client's version; for an old leader epoch with the current leader
        (KIP-951).
        """
        version = self._context.api_version
        if result.error_code == _STORAGE_ERROR and version <= LOG_START_VERSION:
            return result._replace(error_code=_NOT_LEADER)
        if result.error_code != _FENCED or version < ENDPOINTS_VERSION or partition.log is None:
            return result
        node_id, listener = self._parts.node_id, self._context.listener
        if not endpoints:
            endpoints.append(NodeEndpoint(node_id, listener.advertised_host, listener.advertised_port))
        return result._replace(current_leader=(node_id, partition.log.leader_epoch))


def _topic(partition: WantedPartition, partitions: Sequence[FetchPartitionResult]) -> FetchTopicResult:
    """The topic by name or id, as in the request."""
    reference = partition.key[0]
    if isinstance(reference, str):
        return FetchTopicResult(reference, _NO_ID, partitions)
    return FetchTopicResult("", reference, partitions)


def _classify(
    partitions: Sequence[WantedPartition],
) -> tuple[list[WantedPartition], list[WantedPartition], list[WantedPartition]]:
    """The partitions with unknown topic ids, the others that don't exist, and those that exist."""
    never_known: list[WantedPartition] = []
    others: list[WantedPartition] = []
    existing: list[WantedPartition] = []
    for partition in partitions:
        if not partition.is_missing:
            existing.append(partition)
        elif partition.error_code is ErrorCode.unknown_topic_id:
            never_known.append(partition)
        else:
            others.append(partition)
    return never_known, others, existing


def _changed_results(session: FetchSession, results: _Results) -> _Results:
    """The results that a client in a session does not know yet."""
    changed = [(partition, result) for partition, result in results if partition.has_changes(result)]
    session.move_to_end([partition for partition, result in changed if partition.advances_position(result)])
    return changed
