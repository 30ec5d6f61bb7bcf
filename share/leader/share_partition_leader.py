"""A share-partition with its leader (KIP-932, "Share-partition leader"): the pure core joined to its log and
its state store.

The core decides. The leader records the decisions, reads the records that it delivers, reports the next lock
deadline to the broker, and wakes the requests that wait for a change. Nothing here survives a restart: the
next leader is loaded from the recorded state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Cause, LetterPlace, StateRange
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.record_inspection import RecordAction
from barnabas.runtime.clock import Clock, ahead_ms
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.purgatory import Purgatory
from barnabas.share.leader.backlog import Backlog
from barnabas.share.leader.delivery_limit_reports import DeliveryLimitReports
from barnabas.share.leader.group_reader import GroupReader
from barnabas.share.leader.group_start import GroupStart
from barnabas.share.leader.handout import NOTHING, Handout, make_handout
from barnabas.share.leader.leader_transactions import LeaderTransactions
from barnabas.share.leader.look_ahead import look_ahead
from barnabas.share.leader.read_again import read_again
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.share.leader.share_counts import PartitionCounts, ShareCounts
from barnabas.share.leader.unreadable_batches import unreadable_batches, without_batches
from barnabas.share.partition.acquisition import AcquirePlan, Demand
from barnabas.share.partition.arrival import Bounds, TimedPart
from barnabas.share.partition.decision import Decision, Outcome
from barnabas.share.partition.limits import NO_TIMING, ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from barnabas.share.partition.waits import AT_ONCE, DueTimes
from barnabas.share.partition.window import ARCHIVED, ARCHIVING, Batch
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.log.partition_log import PartitionLog


class DecisionStore(Protocol):
    """Records decisions: in the partition's log or in the state topic, see `state_store`."""

    def record(self, leader: SharePartitionLeader, decision: Decision) -> Completion[None]:
        """Have `decision` written; on success the leader's image includes it when the completion ends."""
        ...

    def last_changes(
        self, leader: SharePartitionLeader, wanted: Sequence[tuple[int, int]]
    ) -> list[RecordedChange]:
        """The last recorded changes of the wanted offsets, as far as they are known: ascending, disjoint,
        inside of the wanted ranges, which are ascending and disjoint, too, with both ends inclusive.
        """
        ...


class DeadLetterWriter(Protocol):
    """Writes the dead letters of Archiving records (KIP-1191), see `share/dead_letters`."""

    def place(self, key: SharePartitionKey) -> LetterPlace:
        """Where a dead letter that is decided now goes; an unknown place if there is no usable topic yet."""
        ...

    def write(
        self, leader: SharePartitionLeader, letters: Sequence[StateRange], *, may_be_written: bool
    ) -> None:
        """Write these letters, later; `may_be_written` if an earlier leader may have written them."""
        ...

    def is_writing(self, leader: SharePartitionLeader) -> bool:
        """Whether letters of the leader are not written yet."""
        ...


class LeaderServices(NamedTuple):
    """The objects that the leaders of one broker share."""

    clock: Clock
    deadlines: Deadlines
    purgatory: Purgatory
    counts: ShareCounts
    delivery_limits: DeliveryLimitReports
    limits: Callable[[str], ShareLimits]
    """The present limits of a group."""
    random: Callable[[], float]
    """Numbers from 0 (inclusive) to 1 (exclusive), for the jitter of delays."""
    reopen: Callable[[TopicIdPartition], None]
    """Starts to reopen a log that went offline."""
    dead_letters: DeadLetterWriter


LOOKED_MAX: Final = 10_000
"""The offsets that one fetch looks at while it finds no record that is due, and whose key is free. Then it is
answered without records, and the member's next fetch looks on.
"""

CHOICES_MAX: Final = 16
"""How often one fetch chooses by priorities, because records that it had chosen turned out to be gone."""

UNRECORDED_RETRY_MS: Final = 1_000
"""After this time a leader tries again to record changes in force, unless another decision has included them.
"""

BATCH_SIZE: Final = 500
"""The size of the in-flight batches of records that come in flight without a fetch."""

NOTHING_TO_RECORD: Final = Completion.of(None)

_FENCED: Final = (ErrorCode.not_leader_or_follower, ErrorCode.group_id_not_found)
"""If recording fails with one of these errors, this leader can never record that change."""


class SharePartitionLeader:
    """One share-partition's leader, used on the loop's thread only.

    `image` is the durable state, which the store keeps up to date; `core` is the live state over it.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        log: PartitionLog,
        image: ShareStateImage,
        store: DecisionStore,
        services: LeaderServices,
    ) -> None:
        self.key = key
        self.wake_key = key.place
        """The key of the fetches that wait for a change here."""
        self.group_id = key.group_id
        self.log = log
        self.image = image
        clock = services.clock
        self.core = SharePartition(
            image,
            log.control_runs,
            DueTimes(ahead_ms(clock), services.random),
            clock.monotonic_ms(),
            services.limits(key.group_id).retry_backoff.max_ms,
        )
        self.closed = False
        """Set when the state was reset, deleted or fenced: this leader must no longer be used."""
        self.used = True
        """Set at every use of this leader; see `idle_leaders`."""
        self.start = GroupStart(self, self._announce)
        self._unsettled_count = 0
        """Decisions that are being recorded."""
        self.counts = PartitionCounts()
        self.reader = GroupReader(key, log, self.core, services.clock, self.counts)
        self._store = store
        self._services = services
        self.transactions = LeaderTransactions(self, services.clock)
        self._count_batches(self.core.read_batches)

    @property
    def is_idle(self) -> bool:
        """Whether it can be dropped: all is recorded, no member holds a lock, and no record waits."""
        return (
            not self._unsettled_count
            and (self.core.is_initialised or not self.start.chose_zero)
            and not self.core.has_unrecorded
            and not self._services.dead_letters.is_writing(self)
            and self.core.next_deadline_ms() is None
        )

    @property
    def is_window_full(self) -> bool:
        """Whether the in-flight window has no room for new records."""
        return self.core.window_count >= self.limits().record_locks_max

    @property
    def is_full_of_delayed(self) -> bool:
        """Whether reading has stopped because of `share.delayed.records.max`."""
        return self.reader.times.is_stalled(self.limits())

    def readable_end(self, *, read_committed: bool) -> int:
        """The exclusive end of the records that the group may read, by its `share.isolation.level`."""
        return self.log.last_stable_offset if read_committed else self.log.high_watermark

    def upper_offset(self, *, read_committed: bool) -> int:
        """The exclusive end of the records that a fetch may read now: those at the end may not be due."""
        if self.reader.times.gate is None:
            state = self.log.state
            return state.last_stable_offset if read_committed else state.high_watermark
        return self.reader.times.bounded(self.readable_end(read_committed=read_committed), self.limits())

    def acquire_next(self, plan: AcquirePlan, demand: Demand, upper_offset: int) -> Handout:
        """Reads the records of `plan` below an offset (exclusive: see `upper_offset`), and locks those that
        the member acquires. Raises StorageError or ApiError.

        In a group with an order or a timing it may get nothing though more records follow; see `acquire`.
        """
        monotonic_ms = self._services.clock.monotonic_ms
        began_ms = monotonic_ms()
        read = self.reader.read(
            plan, demand.limits, demand.bytes_max, upper_offset, read_committed=demand.read_committed
        )
        # The look may have begun long before, and the read has taken its time: the locks begin now.
        demand.now_ms = monotonic_ms()
        acquisition = self.core.acquire(read.plan, demand, read)
        acquired = acquisition.acquired
        if acquisition.batches:
            self._count_batches(acquisition.batches)
        self.counts.delivered(acquired, acquisition.overtaking_count, began_ms, demand.now_ms)
        if acquisition.gaps is not None:
            self._record_gaps(acquisition.gaps)
        if read.timed is not None:
            self._schedule_deadline()
        elif acquired:
            # Earlier deadlines are scheduled already.
            lock_end_ms = demand.now_ms + demand.limits.lock_duration_ms
            self._services.deadlines.schedule(self, lock_end_ms)
        if not acquired:
            return NOTHING._replace(more_may_follow=acquisition.more_may_follow)
        kept = without_batches(read.slices, read.malformed) if read.malformed else read.slices
        runs = None if self.core.window.keys is None else self.core.runs(demand.limits)
        return make_handout(acquired, kept, self.counts, is_scattered=read.is_scattered, runs=runs)

    def acquire(self, plan: AcquirePlan, demand: Demand, upper_offset: int) -> Handout:
        """The same in any group. It reads on while all records wait for their keys, or until they are due,
        within a bound. With priorities it first fills the window of the records to choose from.
        """
        if demand.limits.timing is not NO_TIMING:
            demand.limits = demand.limits._replace(letter_place=self.limits().letter_place)
        if demand.limits.priority.header_name:
            plan = self._look_ahead(plan, demand, upper_offset)
        looked_until = self.core.looked_until
        bound = looked_until + LOOKED_MAX
        choices_left = CHOICES_MAX
        while True:
            looked_before = looked_until
            handout = self.acquire_next(plan, demand, upper_offset)
            if handout.acquired:
                return handout
            looked_until = self.core.looked_until
            if handout.more_may_follow:
                choices_left -= 1
                if not (plan.chosen and choices_left):
                    return handout
            elif looked_until == looked_before:
                return handout
            if looked_until >= bound:
                return NOTHING._replace(more_may_follow=True)
            plan = self.core.plan(demand)

    def _look_ahead(self, plan: AcquirePlan, demand: Demand, upper_offset: int) -> AcquirePlan:
        """Reads more records to choose from; returns the plan that follows."""
        looked = look_ahead(self.core, self.reader, demand, upper_offset)
        if looked is None:
            return plan
        self._count_batches(looked.batches)
        if looked.gaps is not None:
            self._record_gaps(looked.gaps)
        return self.core.plan(demand)

    def _record_gaps(self, gaps: Decision) -> None:
        """Records changes of records that no member gets now."""
        self.counts.note_expired(gaps.changes, self.core.record_count)
        self._record_immediate(gaps)

    def acknowledge(
        self,
        member_id: str,
        batches: Sequence[AckBatch],
        limits: ShareLimits,
        now_ms: int,
        delays: Sequence[ReleaseDelay] = (),
    ) -> Completion[None]:
        """Acknowledge validated batches; the completion ends when that is recorded. Raises ApiError, changing
        nothing.

        `limits` are the group's, with the duration of the member's own locks; `delays` those that the member
        asks for on released records.
        """
        if limits.letter_place is not None:
            limits = self._with_place(limits)
        if delays or limits.retry_backoff.base_ms:
            self.core.follow_wall_clock(ahead_ms(self._services.clock))
        decision = self.core.decide_acknowledge(member_id, batches, limits, now_ms, delays)
        if decision.changes:
            recorded = self._record_and_settle(decision, now_ms)
            if len(decision.acknowledged) > 1:  # one of them may be a renewal that shortens a lock
                self._schedule_deadline()
            return recorded
        self._count(decision)
        self._schedule_deadline()
        return NOTHING_TO_RECORD

    def hand_out_again(self, member_id: str, acquired: Sequence[tuple[int, int, int]]) -> Handout:
        """The records that the member still holds of those that a fetch gave it, read again; nothing else
        changes. Raises StorageError or ApiError.
        """
        held = self.core.held_ranges(member_id, acquired)
        read = read_again(self.log, held)
        if not read:
            return NOTHING
        kept = without_batches(read, unreadable_batches(self.log, read))
        is_scattered = self.core.window.keys is not None or self.limits().timing is not NO_TIMING
        runs = self.core.runs(self.limits())
        return make_handout(held, kept, self.counts, is_scattered=is_scattered, runs=runs)

    def release_member(self, member_id: str, *, is_clean: bool) -> None:
        """End every lock of a member whose share session has ended: cleanly, or with its connection."""
        now_ms = self._services.clock.monotonic_ms()
        self.core.follow_wall_clock(ahead_ms(self._services.clock))
        decision = self.core.decide_release_member(member_id, self.limits(), now_ms, is_clean=is_clean)
        self._record_immediate(decision)

    def resume_letters(self) -> None:
        """Have the dead letters written that an earlier leader has left."""
        due = self.core.archiving_ranges()
        if due:
            self._services.dead_letters.write(self, due, may_be_written=True)

    def end_letters(self, ranges: Iterable[tuple[int, int]], cause: Cause) -> Completion[None]:
        """Archive records whose dead letters are written, or given up."""
        return self.record_if_any(self.core.decide_archived(ranges, cause))

    def place_letters(self, ranges: Iterable[tuple[int, int]], place: LetterPlace) -> Completion[None]:
        """Record another place for the dead letters of these records."""
        return self.record_if_any(self.core.decide_letter_place(ranges, place))

    def administer(self, action: RecordAction, first_offset: int, last_offset: int) -> Completion[None]:
        """See `locks.administer`; the completion ends when the change is recorded."""
        decision = self.core.administer(action, first_offset, last_offset, self.limits())
        recorded = self._record_and_settle(decision, self._services.clock.monotonic_ms())
        self._announce(decision.outcome)
        return recorded

    def last_changes(self, wanted: Sequence[tuple[int, int]]) -> list[RecordedChange]:
        """See `DecisionStore`."""
        return self._store.last_changes(self, wanted)

    def checkpoint(self) -> Completion[None]:
        """Records the whole state again, so that earlier control records can be cleaned."""
        decision = Decision()
        decision.start_offset = self.core.spso
        return self._record_and_settle(decision, self._services.clock.monotonic_ms())

    def follow_log_start(self) -> None:
        """Give up records that the log no longer holds, if its start has passed the group's."""
        if self.closed or not self.core.is_initialised:
            return
        self._record_immediate(self.core.decide_log_start(self.log.log_start_offset))

    def next_deadline_ms(self) -> int | None:
        """See `deadlines.Expirable`."""
        if self.closed:
            return None
        deadline_ms = self.core.next_deadline_ms()
        times = self.reader.times
        return deadline_ms if times.gate is None else times.next_deadline_ms(deadline_ms)

    def expire(self, now_ms: int) -> None:
        """See `deadlines.Expirable`: end the expired locks, and wake the fetches for records that are due."""
        self.core.follow_wall_clock(ahead_ms(self._services.clock))
        decision = self.core.expire(now_ms, self.limits())
        self.counts.acquisition_lock_timeouts += decision.ended_lock_count
        if self.reader.times.opens():
            decision.outcome = decision.outcome._replace(released=True)
        self._record_immediate(decision)

    def admit(self, batches: Sequence[Bounds], timed: Sequence[TimedPart]) -> None:
        """Archive records that are past their time to live, without a fetch; see the core."""
        self._record_gaps(self.core.admit(batches, timed, BATCH_SIZE, self.limits()))

    def lag(self) -> int:
        """Records that are not final yet; -1 while the start is undecided."""
        return self.core.lag(self.log.high_watermark)

    def backlog(self) -> Backlog:
        """Meaningless while the start is undecided."""
        return Backlog(self.group_id, self.log, self.core.spso, self.lag())

    def limits(self) -> ShareLimits:
        """The group's limits, with the place of a dead letter in this partition if the group has them."""
        limits = self._services.limits(self.group_id)
        return limits if limits.letter_place is None else self._with_place(limits)

    def _with_place(self, limits: ShareLimits) -> ShareLimits:
        return limits._replace(letter_place=self._services.dead_letters.place(self.key))

    def record_if_any(self, decision: Decision) -> Completion[None]:
        if self.closed:
            return Completion.failed(ApiError(ErrorCode.not_leader_or_follower))
        if decision.is_empty:
            return NOTHING_TO_RECORD
        return self._record_and_settle(decision, self._services.clock.monotonic_ms())

    def _record_and_settle(self, decision: Decision, now_ms: int) -> Completion[None]:
        """Have a decision written, and apply the outcome: usually before this returns."""
        assert not self.closed, f"{self.key} has another leader by now"
        self._unsettled_count += 1
        decision.decided_at_ms = now_ms
        recorded = self._store.record(self, decision)
        if recorded.done:
            self._settle(decision, recorded.error)
        else:
            recorded.when_done(lambda _: self._settle(decision, recorded.error))
        return recorded

    def _settle(self, decision: Decision, error: Exception | None) -> None:
        """Applies the outcome: the decision is recorded, or could not be."""
        self._unsettled_count -= 1
        took_ms = self._services.clock.monotonic_ms() - decision.decided_at_ms
        self._services.counts.write_ms.observe(took_ms)
        if error is not None:
            self._abort(decision, error)
            return
        self._count(decision)
        outcome = self.core.complete(decision)
        if self.core.window.waits is not AT_ONCE:
            self._schedule_deadline()
        if outcome.released or outcome.spso_moved:
            self._services.purgatory.wake(self.wake_key)
        if decision.letters:
            self._begin_letters(decision)
        if decision.start_offset is not None and self.core.spso < self.log.log_start_offset:
            self.follow_log_start()

    def _begin_letters(self, decision: Decision) -> None:
        """Have dead letters written, now that it is recorded that they are due."""
        self._services.dead_letters.write(self, decision.letters, may_be_written=False)

    def _abort(self, decision: Decision, error: Exception) -> None:
        outcome = self.core.abort(decision)
        if self.core.has_unrecorded:
            self.core.expire_again(self._services.clock.monotonic_ms() + UNRECORDED_RETRY_MS)
        self._announce(outcome)
        if isinstance(error, ApiError) and error.code in _FENCED and not self.closed:
            self.closed = True
            self._services.purgatory.wake(self.wake_key)
        if self.log.offline is not None:
            self._services.reopen(self.key.topic_id_partition)

    def _record_immediate(self, decision: Decision) -> None:
        """Records immediate changes, and announces their effects, which need no recording."""
        if not decision.is_empty:
            self._record_and_settle(decision, self._services.clock.monotonic_ms())
        self._announce(decision.outcome)

    def _count_batches(self, batches: Iterable[Batch]) -> None:
        data_count = self.core.window.control_runs.data_count
        observe = self.counts.in_flight_batch_records.observe
        for batch in batches:
            observe(data_count(batch.base_offset, batch.last_offset))

    def _count(self, decision: Decision) -> None:
        record_count = self.core.window.control_runs.data_count
        acknowledged = self._services.counts.acknowledged
        for first_offset, last_offset, acknowledge_type in decision.acknowledged:
            acknowledged[acknowledge_type].value += record_count(first_offset, last_offset)
        if decision.gives_up:
            given_up = [
                change for change in decision.changes if change.state is ARCHIVED or change.state is ARCHIVING
            ]
            self.counts.note_archived(given_up, record_count)
            self._note_delivery_limit(given_up)

    def _note_delivery_limit(self, given_up: Sequence[StateRange]) -> None:
        reached = [change for change in given_up if change.cause is Cause.DELIVERY_LIMIT]
        if reached:
            count = sum(self.core.record_count(change.base_offset, change.last_offset) for change in reached)
            self.counts.delivery_limit_records += count
            first_offset = min(change.base_offset for change in reached)
            self._services.delivery_limits.note(self.group_id, self.log.topic_partition, first_offset, count)

    def _announce(self, outcome: Outcome) -> None:
        """Make known the effects of a change that may have set a new deadline: wake the fetches that wait for
        records, or for space in the in-flight window.
        """
        self._schedule_deadline()
        if outcome.released or outcome.spso_moved:
            self._services.purgatory.wake(self.wake_key)

    def _schedule_deadline(self) -> None:
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is not None:
            self._services.deadlines.schedule(self, deadline_ms)
