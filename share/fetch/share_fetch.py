"""One look of a share fetch at its partitions (KIP-932, "Fetching"): what can be acquired now is acquired.

A fetch is answered when records of `min_bytes` can be acquired, when a partition has an error, or when its
wait is over. Most fetches find their records at the first look, so it is one straight function, `look`. A
fetch that finds too little waits in the purgatory (`share_fetch_operation`), which looks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.tuples import maker
from barnabas.runtime.response_budget import ResponseBudget
from barnabas.runtime.turns import PARTITIONS_PER_TURN, SMALL_READ_BYTES
from barnabas.share.fetch.fetch_source import FetchSource, LateError, NoShareState
from barnabas.share.fetch.kept_answers import Acquired
from barnabas.share.fetch.share_group_config import ShareGroupConfig
from barnabas.share.leader.handout import NOTHING, Handout
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.acquisition import AcquirePlan, Demand
from barnabas.share.partition.limits import NO_TIMING, AcquireMode
from barnabas.share.sessions.acknowledgements import error_result
from barnabas.share.sessions.session import SessionPartition, ShareSession
from barnabas.storage.errors import StorageError

FEW_RECORDS_MAX: Final = 16
"""A fetch for up to this many records is also content with one partition whose records may turn out to wait
for their keys, or until they are due.
"""

ACQUIRE_MODES: Final = {mode.value: mode for mode in AcquireMode}


class Planned(NamedTuple):
    """A partition from which records could be acquired now."""

    partition: SessionPartition
    leader: SharePartitionLeader
    plan: AcquirePlan
    upper_offset: int
    """The exclusive end of the readable records."""


_new_planned = maker(Planned)


class Look:
    """One look at the partitions: the demand by the settings at its beginning, and the results so far."""

    __slots__ = (
        "demand",
        "errors",
        "handouts",
        "has_begun_all",
        "has_looked_at_all",
        "late_errors",
        "more_may_follow",
        "planned",
        "read_bytes",
    )

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.planned: list[Planned] = []
        self.handouts: dict[SessionPartition, Handout] = {}
        """The records of each partition from which some were acquired."""
        self.read_bytes = 0
        """The size of these records."""
        self.errors: dict[SessionPartition, Handout] = {}
        self.late_errors: dict[SessionPartition, Handout] = {}
        """Temporary errors, which do not end the wait."""
        self.has_begun_all = True
        """Whether it has found a leader with a start offset for each partition so far."""
        self.has_looked_at_all = True
        """False if one partition has all the records, so that it did not look at the others."""
        self.more_may_follow = False
        """Whether a partition gave nothing, but may give records immediately; see `Handout`."""

    def results(self) -> dict[SessionPartition, Handout]:
        """The result of each partition that has one."""
        return self.late_errors | self.handouts | self.errors

    def following(self) -> Look:
        """The look at all partitions that follows one that has stopped early, and got nothing."""
        look = Look(self.demand)
        look.more_may_follow = self.more_may_follow
        return look

    def note_error(self, partition: SessionPartition, error: Exception, *, is_late: bool = False) -> None:
        errors = self.late_errors if is_late else self.errors
        error_code, message = error_result(error)
        errors[partition] = NOTHING._replace(error_code=error_code, error_message=message)


class ShareFetch:
    """The fetch of one request: what it asks for, and from which partitions."""

    __slots__ = (
        "_acquired",
        "_began_ms",
        "_budget",
        "_has_looked",
        "_revision",
        "_session",
        "_source",
        "_without_state",
        "is_wait_over",
        "max_bytes",
        "partitions",
        "request",
    )

    def __init__(
        self,
        source: FetchSource,
        budget: ResponseBudget,
        session: ShareSession,
        request: ShareFetchBody,
        partitions: Sequence[SessionPartition],
        acquired: Mapping[SessionPartition, Acquired],
        max_bytes: int,
        began_ms: int,
    ) -> None:
        """`partitions` are in the order in which they are served. `acquired` are the ranges that an earlier,
        equal request has acquired. `max_bytes` takes the place of the request's; `began_ms` is monotonic.
        """
        self._source = source
        self._budget = budget
        self._session = session
        self.request = request
        self.partitions = partitions
        self._acquired = acquired
        self.max_bytes = max_bytes
        self._began_ms = began_ms
        self.is_wait_over = request.max_wait_ms <= 0
        """Whether the next look answers in any case."""
        self._revision = session.revision
        self._has_looked = False
        self._without_state: set[SessionPartition] = set()
        """The partitions in which the group had no share state at the first look."""

    def look(self, look: Look) -> Look | None:
        """Looks at the partitions in this turn of the loop; None if the fetch must wait."""
        if self._acquired and self.hand_out_again(look):
            return look
        stops_early = len(self.partitions) > 1 and self.may_stop_early
        self.plan_some(look, self.partitions, stops_early=stops_early)
        if not self.has_enough(look):
            return None
        self._acquire_all(look)
        if stops_early and not look.handouts:
            look = look.following()
            self.plan_some(look, self.partitions, stops_early=False)
            self._acquire_all(look)
        return look if look.handouts or self.is_answer(look) else None

    def begin_look(self, config: ShareGroupConfig, now_ms: int) -> Look:
        """A look with the group's settings as they are now."""
        request, limits = self.request, config.limits
        own_lock_ms = self._session.lock_duration_ms
        if own_lock_ms is not None:
            limits = limits._replace(lock_duration_ms=own_lock_ms)
        return Look(
            Demand(
                self._session.key.member_id,
                request.max_records,
                self.max_bytes,
                request.batch_size,
                AcquireMode.RECORD_LIMIT
                if config.forces_record_limit
                else ACQUIRE_MODES[request.share_acquire_mode],
                limits,
                now_ms,
                read_committed=config.read_committed,
            )
        )

    @property
    def fits_in_turn(self) -> bool:
        """Whether `look` may be called: the partitions are few, and other requests have not read much in this
        turn.
        """
        return len(self.partitions) <= PARTITIONS_PER_TURN and not self._budget.read_turns.are_over

    def absent(self) -> list[TopicIdPartition]:
        """The partitions without a leader, whose logs may have to be opened."""
        absent: list[TopicIdPartition] = []
        for partition in self.partitions:
            leader = partition.leader
            if leader is None or leader.closed or leader.log.state.offline is not None:
                absent.append(partition.partition)
        return absent

    def hand_out_again(self, look: Look) -> bool:
        """The member gets the ranges of the earlier answer again, as far as it holds them from that delivery;
        their records are read again. Returns whether it holds any of them.

        A partition without a leader is left out: its locks have ended.
        """
        for partition, ranges in self._acquired.items():
            try:
                leader = self._source.lead(partition.key)
                if leader is None:
                    continue
                handout = leader.hand_out_again(self._session.key.member_id, ranges)
            except (ApiError, StorageError):
                continue
            if handout.acquired:
                look.handouts[partition] = handout
                look.read_bytes += handout.size_bytes
        return bool(look.handouts)

    @property
    def may_stop_early(self) -> bool:
        """Whether one partition is enough that has all the records that the request asks for. The group must
        have begun everywhere: with the policy `latest` it would miss records in the other partitions.
        """
        has_choice = len(self.partitions) > 1 and self.request.min_bytes <= 1
        return has_choice and self._session.has_begun_all

    def plan_some(self, look: Look, some: Iterable[SessionPartition], *, stops_early: bool) -> bool:
        """Plans the acquisition from these partitions; True if one of them is enough."""
        for partition in some:
            planned = self.plan(look, partition)
            if planned is not None:
                look.planned.append(planned)
                if stops_early and self._has_all(look, planned):
                    look.has_looked_at_all = False
                    return True
        return False

    def plan(self, look: Look, partition: SessionPartition) -> Planned | None:
        """The plan for this partition; None if no record can be acquired now. An error is kept for the
        response.
        """
        leader = partition.leader
        if leader is None or leader.closed or leader.log.state.offline is not None:
            leader = self._find_leader(look, partition)
            if leader is None:
                look.has_begun_all = False
                return None
        leader.used = True
        demand = look.demand
        plan = leader.core.plan(demand)
        upper_offset = leader.upper_offset(read_committed=demand.read_committed)
        if plan.reads and plan.reads[0].first_offset < upper_offset:
            return _new_planned((partition, leader, plan, upper_offset))
        return None

    def _find_leader(self, look: Look, partition: SessionPartition) -> SharePartitionLeader | None:
        try:
            leader = self._source.leader_for_fetch(partition.key.group_id, partition.partition)
        except NoShareState as error:
            if not self._has_lost(partition):
                self._without_state.add(partition)
                look.note_error(partition, error, is_late=True)
            leader = None
        except (ApiError, StorageError) as error:
            look.note_error(partition, error, is_late=isinstance(error, LateError | StorageError))
            leader = None
        partition.leader = leader
        return leader

    def _has_lost(self, partition: SessionPartition) -> bool:
        """Whether the group had share state in the partition before: the group, or its offsets, were deleted.

        As in Kafka, the session gets no error then, and no records.
        """
        had_state = self._has_looked and partition not in self._without_state
        return had_state or self._session.was_answered(partition)

    def _has_all(self, look: Look, planned: Planned) -> bool:
        """Whether the partition has all the records that the request asks for, unless some turn out to be
        aborted or malformed.
        """
        records_max, limits = look.demand.records_max, look.demand.limits
        is_certain = not limits.is_ordered and limits.timing is NO_TIMING
        if records_max > FEW_RECORDS_MAX and not is_certain:
            return False
        return planned.leader.core.planned_count(planned.plan, planned.upper_offset) >= records_max

    def has_enough(self, look: Look) -> bool:
        """Whether there is enough to acquire it, as far as the plans of the partitions tell that the look
        needs.
        """
        self._has_looked = True
        if look.has_begun_all and look.has_looked_at_all and not self._session.has_begun_all:
            self._session.note_begun(self._revision)
        min_bytes = self.request.min_bytes
        has_enough = bool(look.planned) if min_bytes <= 1 else self._available_bytes(look) >= min_bytes
        return has_enough or bool(look.errors) or self.is_wait_over

    def _available_bytes(self, look: Look) -> int:
        """Bytes that wait, as far as `min_bytes` asks; notes the partitions that cannot be read."""
        total_bytes = 0
        for partition, leader, plan, upper_offset in look.planned:
            try:
                total_bytes += leader.log.available_bytes(
                    plan.reads[0].first_offset, upper_offset=upper_offset, enough=self.request.min_bytes
                )
            except (ApiError, StorageError) as error:
                look.note_error(partition, error)
        return total_bytes

    def _acquire_all(self, look: Look) -> None:
        """Acquires what is planned, until the bytes are read that all requests may read in one turn."""
        bytes_max, read_turns = min(self.max_bytes, self._budget.bytes_max()), self._budget.read_turns
        for planned in look.planned:
            if not bytes_max or look.demand.records_max <= 0 or (look.handouts and read_turns.are_over):
                break
            self.acquire(look, planned, bytes_max)

    def acquire(self, look: Look, planned: Planned, bytes_max: int) -> None:
        """Acquires records of one partition, which gets an equal part of `bytes_max`."""
        partition, leader, plan, upper_offset = planned
        demand = look.demand
        if demand.records_max != self.request.max_records:
            plan = leader.core.plan(demand)
        demand.bytes_max = max(bytes_max // len(look.planned), 1)
        try:
            if leader.core.window.keys is None and demand.limits.timing is NO_TIMING:
                handout = leader.acquire_next(plan, demand, upper_offset)
            else:
                handout = leader.acquire(plan, demand, upper_offset)
        except (ApiError, StorageError) as error:
            look.note_error(partition, error)
            return
        if handout.more_may_follow:
            look.more_may_follow = True
        if handout.size_bytes > SMALL_READ_BYTES:
            self._budget.read_turns.read(handout.size_bytes)
        if handout.acquired:
            look.handouts[partition] = handout
            look.read_bytes += handout.size_bytes
            demand.records_max -= handout.record_count

    def is_answer(self, look: Look) -> bool:
        """Whether a look ends the wait, now that everything is acquired."""
        return bool(look.handouts or look.errors) or look.more_may_follow or self.is_wait_over

    def count(self, look: Look) -> None:
        """Count an answer with these results."""
        counts = self._source.counts
        of_group = counts.by_group.get(self._session.key.group_id)
        if of_group is not None:
            if look.has_looked_at_all:
                with_records = max(len(look.planned), len(look.handouts))
                of_group.fetched_percent.observe(100 * with_records // len(self.partitions))
            of_group.acquire_ms.observe(look.demand.now_ms - self._began_ms)
        if look.errors or look.late_errors:
            failed = {partition.key.topic_id for partition in (*look.errors, *look.late_errors)}
            for of_topic in counts.of_topics(failed):
                of_topic.failed_fetches.add()
