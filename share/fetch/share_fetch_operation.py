"""A share fetch that waits for records (KIP-932, "Fetching"): the share groups' entry in the purgatory.

It completes when records of `min_bytes` can be acquired, when a partition has an error, or at its deadline
with the available records. It acquires records only at the moment of the answer, so a waiting member holds
none. The answer also has the results of the acknowledgements in the request.

`_look` decides whether to answer. If not, a look follows when the cause of the wait may have ended:

    a log is being opened                          when it is open (`FetchSource`, `begin_when`)
    the group's state is being loaded or reset     `SharePartitions.wake_fetches`
    the start offset is being recorded             `SharePartitionLeader._announce`
    no new records, or too few                     `Broker._log_moved`
    locked records, a full window, the order       `SharePartitionLeader._announce`, when records are released
                                                   or the start offset moves
    records that are not due yet                   `SharePartitionLeader.expire`
    a log that went offline                        `Broker._log_replaced`
    acknowledgements that are being written        their `Completion`, even after the deadline
    no memory for responses, a `LateError`         the next of these events; at the latest the deadline

A further request on the same connection (`hurry`), a fenced leader, a deleted topic and disabled share groups
end the wait as well. A changed setting counts from the next look on. `partition.inspection` computes the
causes that `barnabas inspect` shows as WAITS FOR.

A look at thousands of partitions is split into turns. Each partition is looked at again in the turn in which
its records are acquired.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import TopicIdPartition
from barnabas.runtime.completion import Completion
from barnabas.runtime.reserving_operation import ReservingOperation
from barnabas.runtime.response_budget import EncodedBody, ResponseBudget
from barnabas.runtime.turns import Turns, in_turns, some_at_a_time
from barnabas.share.fetch.fetch_source import FetchSource, LateError, NoShareState
from barnabas.share.leader.acknowledgements import Results, error_result
from barnabas.share.leader.handout import NOTHING, Handout
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.acquisition import AcquirePlan, Demand
from barnabas.share.partition.limits import NO_TIMING, AcquireMode
from barnabas.share.sessions.session import ShareSession
from barnabas.storage.errors import StorageError


class ShareFetchSpec(NamedTuple):
    """The demand of a request, over all its partitions."""

    group_id: str
    member_id: str
    min_bytes: int
    max_bytes: int
    records_max: int
    batch_size: int
    acquire_mode: AcquireMode


class PartitionFetch(NamedTuple):
    """The result of a fetch from one partition."""

    handout: Handout
    error_code: int
    error_message: str | None


NO_RECORDS = PartitionFetch(NOTHING, 0, None)


_Planned = tuple[TopicIdPartition, SharePartitionLeader, AcquirePlan, int]
"""The last field is the exclusive end of the readable records."""

Encode = Callable[[dict[TopicIdPartition, PartitionFetch]], EncodedBody | Awaitable[EncodedBody]]
"""Builds the response from the partitions' results; partitions without records or error are left out."""

FEW_RECORDS_MAX = 16
"""A fetch for up to this many records is also content with one partition whose records may turn out to wait
for their keys, or until they are due.
"""

_STEPS_PER_PARTITION = 3
"""The part of a turn that a look at one partition costs."""
_STEPS_PER_HANDOUT = 40
"""The part of a turn that one partition costs if records are acquired."""


class ShareFetchInputs(NamedTuple):
    """The demand of a request, and the parts that serve it."""

    source: FetchSource
    spec: ShareFetchSpec
    partitions: Sequence[TopicIdPartition]
    """In the order in which they are served."""
    acknowledged: Completion[Results]
    encode: Encode
    response_budget: ResponseBudget | None = None
    """The broker's; None if there are no other connections to share with."""
    session: ShareSession | None = None
    """None if the member has none."""


class _Look:
    """One look at the partitions: the demand by the settings at its beginning, and the results so far."""

    __slots__ = (
        "demand",
        "errors",
        "failed_topics",
        "has_begun_all",
        "has_looked_at_all",
        "is_refused",
        "late_errors",
        "more_may_follow",
        "planned",
    )

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.planned: list[_Planned] = []
        """The partitions from which records could be acquired now."""
        self.errors: dict[TopicIdPartition, PartitionFetch] = {}
        self.late_errors: dict[TopicIdPartition, PartitionFetch] = {}
        """Temporary errors, which do not end the wait."""
        self.failed_topics: set[UUID] = set()
        self.has_begun_all = True
        """Whether it has found a leader with a start offset for each partition so far."""
        self.has_looked_at_all = True
        """False if one partition has all the records, so that it did not look at the others."""
        self.more_may_follow = False
        """Whether a partition gave nothing, but may give records immediately; see `Handout`."""
        self.is_refused = False
        """Whether share groups are disabled. Then the handler refuses the request as a whole."""

    @property
    def acquirable_count(self) -> int | None:
        """The number of partitions with records; None if not all were looked at."""
        return len(self.planned) if self.has_looked_at_all else None

    def note_error(self, partition: TopicIdPartition, error: Exception, *, is_late: bool = False) -> None:
        errors = self.late_errors if is_late else self.errors
        errors[partition] = PartitionFetch(NOTHING, *error_result(error))
        self.failed_topics.add(partition.topic_id)


class ShareFetchOperation(ReservingOperation):
    """One request's wait, and the future of its response.

    Its states, the events that end them, and the effects:

        idle        try_complete                    a look begins; most looks end in the same turn
        looking     the look ends                   answered, or idle again if there is not enough
                    try_complete                    woken, because the look may have missed a change
        woken       the look ends                   answered, or another look begins
        answered    acknowledgements are recorded   the answer is encoded, then the operation is done

    It is looking while `_looking` is set, and woken while `_is_woken` is, too. The end of the wait
    (`on_expire`) is a `try_complete` after which a look answers in any case.
    """

    def __init__(self, inputs: ShareFetchInputs) -> None:
        super().__init__(inputs.response_budget or ResponseBudget())
        self._source = inputs.source
        self._spec = inputs.spec
        self._partitions = inputs.partitions
        self._acknowledged = inputs.acknowledged
        self._encode = inputs.encode
        self._session = inputs.session
        self._began_ms = inputs.source.now_ms()
        self._is_wait_over = False
        """Whether the next look answers in any case: the deadline has passed, or `hurry` was called."""
        self._has_looked = False
        self._without_state: set[TopicIdPartition] = set()
        """The partitions in which the group had no share state at the first look."""
        self._looking: asyncio.Future[bool] | None = None
        """A look that takes several turns."""
        self._is_woken = False
        """Whether something has changed since that look began."""
        self._encoding: asyncio.Future[EncodedBody] | None = None
        """Kept, since the loop itself doesn't keep its tasks alive."""

    def try_complete(self) -> bool:
        """See `DelayedOperation`."""
        if self._looking is not None:
            self._is_woken = True
            return False
        looking = in_turns(self._look())
        if isinstance(looking, bool):
            return looking
        self._looking = asyncio.ensure_future(looking)
        self._looking.add_done_callback(self._end_of_look)
        return False

    def expire(self, now_ms: int) -> None:
        """See `Expirable`."""
        self._source.counts.expired_fetches.add()
        super().expire(now_ms)

    def on_expire(self) -> None:
        """See `DelayedOperation`."""
        self._is_wait_over = True
        self.try_complete()

    def _end_of_look(self, looking: asyncio.Future[bool]) -> None:
        """A look in several turns has ended. If it has not answered, it may have missed a change."""
        self._looking = None
        is_over = self.done
        if not is_over and not looking.cancelled():
            is_woken, self._is_woken = self._is_woken, False
            try:
                is_over = looking.result() or (is_woken and self.try_complete())
            except Exception as error:
                # A callback has no caller that could handle the error, and the client must not wait for ever.
                is_over = True
                self.fail(error)
        if is_over and self.purgatory is not None:
            self.purgatory.forget(self)

    async def _look(self) -> bool:
        """Answers if there are enough bytes, or if the wait is over; returns whether it did."""
        turns, stops_early = Turns(), self._may_stop_early
        look = await self._plan(turns, stops_early=stops_early)
        self._has_looked = True
        has_enough = self._available_bytes(look) >= max(self._spec.min_bytes, 1)
        if self.done or not (has_enough or self._must_answer(look)):
            return False
        fetched = await self._acquire(look, turns)
        if stops_early and not fetched:
            more_may_follow = look.more_may_follow
            look = await self._plan(turns, stops_early=False)
            look.more_may_follow = more_may_follow
            fetched = await self._acquire(look, turns)
        if not (fetched or look.more_may_follow or self._must_answer(look)):
            return False
        self._answer(look, fetched, look.acquirable_count)
        return True

    def _must_answer(self, look: _Look) -> bool:
        """Whether the answer is sent even without records."""
        return bool(look.errors) or look.is_refused or self._is_wait_over

    @property
    def _may_stop_early(self) -> bool:
        """Whether one partition is enough that has all the records that the request asks for. The group must
        have begun everywhere: with the policy `latest` it would miss records in the other partitions.
        """
        session = self._session
        has_choice = len(self._partitions) > 1 and self._spec.min_bytes <= 1
        return has_choice and session is not None and session.has_begun_all

    def _begin_look(self) -> _Look:
        spec, session = self._spec, self._session
        config = self._source.config_of(spec.group_id)
        limits = config.limits
        if session is not None and session.lock_duration_ms is not None:
            limits = limits._replace(lock_duration_ms=session.lock_duration_ms)
        mode = AcquireMode.RECORD_LIMIT if config.forces_record_limit else spec.acquire_mode
        return _Look(
            Demand(
                spec.member_id,
                spec.records_max,
                spec.max_bytes,
                spec.batch_size,
                mode,
                limits,
                self._source.now_ms(),
                read_committed=config.read_committed,
            )
        )

    async def _plan(self, turns: Turns, *, stops_early: bool) -> _Look:
        """Plans the acquisition of records from all partitions, or with `stops_early` from those up to the
        first one that has all records.
        """
        look = self._begin_look()
        if not self._source.serves_share_groups:
            look.is_refused = True
            return look
        for some in some_at_a_time(self._partitions):
            for partition in some:
                planned = self._plan_one(look, partition)
                if planned is not None:
                    look.planned.append(planned)
                    if stops_early and self._has_all(look, planned):
                        look.has_looked_at_all = False
                        return look
            await turns.took(_STEPS_PER_PARTITION * len(some))
        if self._session is not None and look.has_begun_all:
            self._session.note_begun(self._partitions)
        return look

    def _plan_one(self, look: _Look, partition: TopicIdPartition) -> _Planned | None:
        """The plan for this partition; None if no record can be acquired now. An error is kept for the
        response.
        """
        spec = self._spec
        try:
            leader = self._source.leader_for_fetch(spec.group_id, partition)
        except NoShareState as error:
            look.has_begun_all = False
            if not self._has_lost(partition):
                self._without_state.add(partition)
                look.note_error(partition, error, is_late=True)
            return None
        except (ApiError, StorageError) as error:
            look.note_error(partition, error, is_late=isinstance(error, LateError | StorageError))
            look.has_begun_all = False
            return None
        if leader is None:
            look.has_begun_all = False
            return None
        plan = leader.core.plan(look.demand)
        upper_offset = leader.upper_offset(read_committed=look.demand.read_committed)
        if plan.reads and plan.reads[0].first_offset < upper_offset:
            return partition, leader, plan, upper_offset
        return None

    def _has_lost(self, partition: TopicIdPartition) -> bool:
        """Whether the group had share state in the partition before: the group, or its offsets, were deleted.

        As in Kafka, the session gets no error then, and no records.
        """
        had_state = self._has_looked and partition not in self._without_state
        return had_state or (self._session is not None and self._session.was_answered(partition))

    def _has_all(self, look: _Look, planned: _Planned) -> bool:
        """Whether the partition has all the records that the request asks for, unless some turn out to be
        aborted or malformed.
        """
        _, leader, plan, upper_offset = planned
        records_max, limits = look.demand.records_max, look.demand.limits
        is_certain = not limits.is_ordered and limits.timing is NO_TIMING
        if records_max > FEW_RECORDS_MAX and not is_certain:
            return False
        return leader.core.planned_count(plan, upper_offset) >= records_max

    def _available_bytes(self, look: _Look) -> int:
        """Bytes that wait, as far as `min_bytes` asks; notes the partitions that cannot be read."""
        if self._spec.min_bytes <= 1:
            return len(look.planned)
        total_bytes = 0
        for partition, leader, plan, upper_offset in look.planned:
            try:
                total_bytes += leader.log.available_bytes(
                    plan.reads[0].first_offset, upper_offset=upper_offset, enough=self._spec.min_bytes
                )
            except (ApiError, StorageError) as error:
                look.note_error(partition, error)
        return total_bytes

    async def _acquire(self, look: _Look, turns: Turns) -> dict[TopicIdPartition, PartitionFetch]:
        fetched: dict[TopicIdPartition, PartitionFetch] = {}
        demand, budget = look.demand, self._response_budget
        bytes_max = min(self._spec.max_bytes, budget.bytes_max())
        for first_planned in look.planned:
            if budget.read_turns.are_over:
                await budget.read_turns.wait(turns)
                bytes_max = min(bytes_max, budget.bytes_max())
            if not bytes_max:
                break
            # Others have had their turn since it was planned.
            planned = self._plan_one(look, first_planned[0]) if turns.passed else first_planned
            if demand.records_max <= 0 or self.done:
                break
            if planned is None:
                continue
            partition, leader, plan, upper_offset = planned
            if demand.records_max != self._spec.records_max:
                plan = leader.core.plan(demand)
            demand.bytes_max = max(bytes_max // len(look.planned), 1)
            try:
                handout = leader.acquire(plan, demand, upper_offset)
            except (ApiError, StorageError) as error:
                look.note_error(partition, error)
                continue
            look.more_may_follow |= handout.more_may_follow
            budget.read_turns.read(handout.size_bytes)
            if handout.acquired:
                self.reserve(handout.size_bytes)
                fetched[partition] = PartitionFetch(handout, 0, None)
                demand.records_max -= handout.record_count
            await turns.took(_STEPS_PER_HANDOUT)
        return fetched

    def _answer(
        self, look: _Look, fetched: dict[TopicIdPartition, PartitionFetch], acquirable_count: int | None
    ) -> None:
        """Decides the answer; it is given when the acknowledgements are recorded. `acquirable_count` is that
        of `_Look`.
        """
        if self._partitions:
            self._count(look, acquirable_count)
        answer = look.late_errors | fetched | look.errors
        self._acknowledged.when_done(lambda _: self._set(answer))

    def _count(self, look: _Look, acquirable_count: int | None) -> None:
        counts = self._source.counts
        of_group = counts.by_group.get(self._spec.group_id)
        if of_group is not None:
            if acquirable_count is not None:
                of_group.fetched_percent.observe(100 * acquirable_count // len(self._partitions))
            of_group.acquire_ms.observe(self._source.now_ms() - self._began_ms)
        for of_topic in counts.of_topics(look.failed_topics):
            of_topic.failed_fetches.add()

    def _set(self, fetched: dict[TopicIdPartition, PartitionFetch]) -> None:
        if self.done:
            return
        try:
            encoded = self._encode(fetched)
            if isinstance(encoded, EncodedBody):
                self.hand_over(encoded)
            else:
                self._encoding = asyncio.ensure_future(encoded)
                self._encoding.add_done_callback(self._encoded)
        except Exception as error:
            # This is a listener of the acknowledgements: only the answer can tell of a defect.
            self.fail(error)

    def _encoded(self, encoding: asyncio.Future[EncodedBody]) -> None:
        if self.done or encoding.cancelled():
            return
        try:
            self.hand_over(encoding.result())
        except Exception as error:
            self.fail(error)
