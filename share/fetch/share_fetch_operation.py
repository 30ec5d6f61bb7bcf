"""A share fetch that waits for records (KIP-932, "Fetching"): the share groups' entry in the purgatory.

It completes when records of `min_bytes` can be acquired, when a partition has an error, or at its deadline
with the available records. It acquires records only at the moment of the answer, so a waiting member holds
none. The answer also has the results of the acknowledgements in the request.

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
from barnabas.share.fetch.fetch_source import FetchSource, LateError
from barnabas.share.fetch.share_group_config import ShareGroupConfig
from barnabas.share.leader.acknowledgements import Results, error_result
from barnabas.share.leader.handout import NOTHING, FetchDemand, Handout
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.acquire_plan import AcquirePlan
from barnabas.share.partition.limits import NO_TIMING, AcquireMode, ShareLimits
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


class ShareFetchOperation(ReservingOperation):
    """One request's wait, and the future of its response."""

    def __init__(
        self,
        source: FetchSource,
        spec: ShareFetchSpec,
        partitions: Sequence[TopicIdPartition],
        acknowledged: Completion[Results],
        encode: Encode,
        response_budget: ResponseBudget | None = None,
        session: ShareSession | None = None,
    ) -> None:
        """`partitions` in the order in which they are served; `response_budget` is the broker's, and if it is
        None there are no other connections to share with; `session` is None if the member has none.
        """
        super().__init__(response_budget or ResponseBudget())
        self._source = source
        self._spec = spec
        self._partitions = partitions
        self._acknowledged = acknowledged
        self._encode = encode
        self._session = session
        self._config: ShareGroupConfig
        self._limits: ShareLimits
        self._acquire_mode: AcquireMode
        """The group's settings at this look, which may have changed since the last one; its limits and the
        mode as they hold for this request.
        """
        self._began_ms = source.now_ms()
        self._errors: dict[TopicIdPartition, PartitionFetch] = {}
        self._late_errors: dict[TopicIdPartition, PartitionFetch] = {}
        self._failed_topics: set[UUID] = set()
        self._more_may_follow = False
        """Whether a partition gave nothing, but may give records immediately; see `Handout`."""
        self._has_begun_all = False
        """Whether this look has found a leader with a start offset for each partition so far."""
        self._has_looked_at_all = True
        self._looking: asyncio.Future[bool] | None = None
        """A look that has not finished."""
        self._must_look_again = False
        self._has_expired = False
        self._encoding: asyncio.Future[EncodedBody] | None = None
        """Kept, since the loop itself doesn't keep its tasks alive."""

    def try_complete(self) -> bool:
        """See `DelayedOperation`."""
        if self._looking is not None:
            self._must_look_again = True
            return False
        looking = in_turns(self._look())
        if isinstance(looking, bool):
            return looking
        self._looking = asyncio.ensure_future(looking)
        self._looking.add_done_callback(self._looked)
        return False

    def expire(self, now_ms: int) -> None:
        """See `Expirable`."""
        self._source.counts.expired_fetches.add()
        super().expire(now_ms)

    def on_expire(self) -> None:
        """See `DelayedOperation`."""
        self._has_expired = True
        self.try_complete()

    def _looked(self, looking: asyncio.Future[bool]) -> None:
        """A look in several turns has ended."""
        self._looking = None
        is_over = self.done
        if not is_over and not looking.cancelled():
            try:
                is_over = looking.result() or self._look_again()
            except Exception as error:
                # A callback has no caller that could handle the error, and the client must not wait for ever.
                is_over = True
                self.fail(error)
        if is_over and self.purgatory is not None:
            self.purgatory.forget(self)

    def _look_again(self) -> bool:
        """Something has changed during the look, which may not have seen it."""
        must_look_again, self._must_look_again = self._must_look_again, False
        return must_look_again and self.try_complete()

    async def _look(self) -> bool:
        """Answers if there are enough bytes, or if the wait is over; returns whether it did."""
        turns, stops_early = Turns(), self._may_stop_early
        planned = await self._plan(turns, stops_early=stops_early)
        available_bytes = self._available_bytes(planned)
        has_enough = self._errors or available_bytes >= max(self._spec.min_bytes, 1)
        if self.done or not (has_enough or self._has_expired):
            return False
        fetched = await self._acquire(planned, turns)
        if stops_early and not fetched:
            planned = await self._plan(turns, stops_early=False)
            fetched = await self._acquire(planned, turns)
        if not (fetched or self._errors or self._more_may_follow or self._has_expired):
            return False
        self._answer(fetched, len(planned) if self._has_looked_at_all else None)
        return True

    @property
    def _may_stop_early(self) -> bool:
        """Whether one partition is enough that has all the records that the request asks for. The group must
        have begun everywhere: with the policy `latest` it would miss records in the other partitions.
        """
        session = self._session
        has_choice = len(self._partitions) > 1 and self._spec.min_bytes <= 1
        return has_choice and session is not None and session.has_begun_all

    async def _plan(self, turns: Turns, *, stops_early: bool) -> list[_Planned]:
        """The partitions from which records could be acquired now: all of them, or with `stops_early` those
        up to the first one that has all records.
        """
        planned: list[_Planned] = []
        self._errors, self._late_errors, self._failed_topics = {}, {}, set()
        self._has_begun_all = self._has_looked_at_all = True
        config = self._config = self._source.config_of(self._spec.group_id)
        self._limits = config.limits
        if self._session is not None and self._session.lock_duration_ms is not None:
            self._limits = config.limits._replace(lock_duration_ms=self._session.lock_duration_ms)
        forced = config.forces_record_limit
        self._acquire_mode = AcquireMode.RECORD_LIMIT if forced else self._spec.acquire_mode
        if not self._source.serves_share_groups:
            self._has_expired = True  # the handler refuses the request as a whole
            return planned
        for some in some_at_a_time(self._partitions):
            for partition in some:
                one = self._plan_one(partition)
                if one is not None:
                    planned.append(one)
                    if stops_early and self._has_all(one):
                        self._has_looked_at_all = False
                        return planned
            await turns.took(_STEPS_PER_PARTITION * len(some))
        if self._session is not None and self._has_begun_all:
            self._session.note_begun(self._partitions)
        return planned

    def _plan_one(self, partition: TopicIdPartition) -> _Planned | None:
        """The plan for this partition; None if no record can be acquired now. An error is kept for the
        response.
        """
        spec, config = self._spec, self._config
        try:
            leader = self._source.leader_for_fetch(spec.group_id, partition)
        except (ApiError, StorageError) as error:
            is_late = isinstance(error, LateError | StorageError)
            self._note_error(partition, error, self._late_errors if is_late else self._errors)
            self._has_begun_all = False
            return None
        if leader is None:
            self._has_begun_all = False
            return None
        plan = leader.core.plan_acquire(spec.records_max, self._limits, self._acquire_mode)
        upper_offset = leader.upper_offset(read_committed=config.read_committed)
        if plan.reads and plan.reads[0][0] < upper_offset:
            return partition, leader, plan, upper_offset
        return None

    def _has_all(self, planned: _Planned) -> bool:
        """Whether the partition has all the records that the request asks for, unless some turn out to be
        aborted or malformed.
        """
        _, leader, plan, upper_offset = planned
        records_max, limits = self._spec.records_max, self._limits
        is_certain = not limits.is_ordered and limits.timing is NO_TIMING
        if records_max > FEW_RECORDS_MAX and not is_certain:
            return False
        return leader.core.planned_count(plan, upper_offset) >= records_max

    def _note_error(
        self, partition: TopicIdPartition, error: Exception, errors: dict[TopicIdPartition, PartitionFetch]
    ) -> None:
        errors[partition] = PartitionFetch(NOTHING, *error_result(error))
        self._failed_topics.add(partition.topic_id)

    def _available_bytes(self, planned: Sequence[_Planned]) -> int:
        """Bytes that wait, as far as `min_bytes` asks; notes the partitions that cannot be read."""
        if self._spec.min_bytes <= 1:
            return len(planned)
        total_bytes = 0
        for partition, leader, plan, upper_offset in planned:
            try:
                total_bytes += leader.log.available_bytes(
                    plan.reads[0][0], upper_offset=upper_offset, enough=self._spec.min_bytes
                )
            except (ApiError, StorageError) as error:
                self._note_error(partition, error, self._errors)
        return total_bytes

    async def _acquire(
        self, planned: Sequence[_Planned], turns: Turns
    ) -> dict[TopicIdPartition, PartitionFetch]:
        fetched: dict[TopicIdPartition, PartitionFetch] = {}
        spec, limits = self._spec, self._limits
        records_left = spec.records_max
        bytes_max = min(spec.max_bytes, self._response_budget.bytes_max())
        if not bytes_max:
            return fetched
        for first_planned in planned:
            # Others have had their turn since it was planned.
            one = self._plan_one(first_planned[0]) if turns.passed else first_planned
            if records_left <= 0 or self.done:
                break
            if one is None:
                continue
            partition, leader, plan, upper_offset = one
            if records_left != spec.records_max:
                plan = leader.core.plan_acquire(records_left, limits, self._acquire_mode)
            demand = FetchDemand(
                spec.member_id,
                records_left,
                spec.batch_size,
                max(bytes_max // len(planned), 1),
                self._acquire_mode,
                limits,
                upper_offset,
                self._config.read_committed,
            )
            try:
                handout = leader.acquire(plan, demand)
            except (ApiError, StorageError) as error:
                self._note_error(partition, error, self._errors)
                continue
            self._more_may_follow |= handout.more_may_follow
            if handout.acquired:
                self.reserve(handout.size_bytes)
                fetched[partition] = PartitionFetch(handout, 0, None)
                records_left -= handout.record_count
            await turns.took(_STEPS_PER_HANDOUT)
        return fetched

    def _answer(self, fetched: dict[TopicIdPartition, PartitionFetch], acquirable_count: int | None) -> None:
        """`acquirable_count` is the number of partitions with records; None if not all were looked at."""
        if self._partitions:
            self._count(acquirable_count)
        answer = self._late_errors | fetched | self._errors
        self._acknowledged.when_done(lambda _: self._set(answer))

    def _count(self, acquirable_count: int | None) -> None:
        counts = self._source.counts
        of_group = counts.by_group.get(self._spec.group_id)
        if of_group is not None:
            if acquirable_count is not None:
                of_group.fetched_percent.observe(100 * acquirable_count // len(self._partitions))
            of_group.acquire_ms.observe(self._source.now_ms() - self._began_ms)
        for of_topic in counts.of_topics(self._failed_topics):
            of_topic.failed_fetches.add()

    def _set(self, fetched: dict[TopicIdPartition, PartitionFetch]) -> None:
        if self.done:
            return
        try:
            encoded = self._encode(fetched)
        except Exception as error:
            # Possibly a listener of the acknowledgements, whose caller must not see it.
            self.fail(error)
            return
        if isinstance(encoded, EncodedBody):
            self.hand_over(encoded)
        else:
            self._encoding = asyncio.ensure_future(encoded)
            self._encoding.add_done_callback(self._encoded)

    def _encoded(self, encoding: asyncio.Future[EncodedBody]) -> None:
        if self.done or encoding.cancelled():
            return
        try:
            self.hand_over(encoding.result())
        except Exception as error:
            self.fail(error)
