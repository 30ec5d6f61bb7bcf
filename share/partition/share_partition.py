"""One share-partition as its leader sees it (KIP-932, "Share-partition leader"): a state machine.

It holds the state that lives in memory only: the records in flight, their owners and lock deadlines, and the
changes being recorded. Changes that must survive are returned as a `Decision`, which goes one way: decide,
append, replay into the durable image, then `complete` (or `abort` where the append failed), then reply. It is
synchronous and never waits. Reading the log, writing it, timers and wake-ups belong to the caller, on one
thread. Pure.

`window` has the records. There are two policies: which records may go next (`record_order`), and when
(`waits`). The decisions are in modules of their own: `acquisition`, `acknowledgement`, `locks` and
`dead_letters`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Cause, Due, LetterPlace, PendingAcknowledgement, StateRange
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.extended.runs import Runs
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_inspection import RecordAction
from barnabas.share.partition import acknowledgement, dead_letters, locks
from barnabas.share.partition.acknowledgement import TransactionEnd, pending_runs
from barnabas.share.partition.acquisition import NO_READS, AcquirePlan, Acquisition, Demand, Found
from barnabas.share.partition.arrival import Bounds, TimedPart, admit
from barnabas.share.partition.decision import NOTHING_HAPPENED, SPSO_MOVED, Decision, Outcome
from barnabas.share.partition.inspection import InspectedRange, InspectionBounds, inspect
from barnabas.share.partition.keyed_order import order_of
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.locks import HeldLock, Range
from barnabas.share.partition.overtaken import left_behind, overtaken
from barnabas.share.partition.record_order import BY_OFFSET, RecordOrder
from barnabas.share.partition.recorded import Unrecorded, durable_ranges, restore
from barnabas.share.partition.waits import CLOCK_LOOK_MS, DELAY_MS_MAX, DueTimes
from barnabas.share.partition.window import ACQUIRED, AVAILABLE, UNREAD, Batch, Span, Window
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage


class SharePartition:
    """The live state over a durable image, which it reads once, at its creation.

    `control_runs` are those of the log, and grow with it (empty if the state is kept elsewhere). All `now_ms`
    are of one monotonic clock, and `due_times` converts them into the wall-clock time of due times. Limits
    are passed into each call, because they may change at any time. `retry_delay_ms_max` is the longest delay
    of a retry at the creation: no loaded record waits longer.
    """

    __slots__ = ("_clock_looked_ms", "_order", "_ordered_by", "_unrecorded", "window")

    def __init__(
        self,
        image: ShareStateImage,
        control_runs: ControlRuns,
        due_times: DueTimes | None = None,
        now_ms: int = 0,
        retry_delay_ms_max: int = DELAY_MS_MAX,
    ) -> None:
        due_times = due_times or DueTimes()
        self.window = Window(image.start_offset, control_runs, due_times)
        self._order: RecordOrder = BY_OFFSET
        self._ordered_by: ShareLimits | None = None
        """The limits whose order it is, if they were compared with it."""
        self._clock_looked_ms = now_ms
        """When the wall clock was last looked at (monotonic)."""
        self._unrecorded = Unrecorded()
        restore(self.window, image, due_times.wall_ms(now_ms), retry_delay_ms_max)

    # The state.

    @property
    def is_initialised(self) -> bool:
        """Whether the start offset has been decided; nothing can be acquired before."""
        return self.window.spso >= 0

    @property
    def spso(self) -> int:
        """The share-partition start offset: the first one that isn't final, or -1."""
        return self.window.spso

    @property
    def speo(self) -> int:
        """The share-partition end offset, exclusive: where new records are fetched from; or -1."""
        return self.window.speo

    @property
    def in_flight_count(self) -> int:
        """Records from SPSO to SPEO, in any state."""
        return self.window.record_count()

    @property
    def in_flight_batch_count(self) -> int:
        """Batches that these records are kept in."""
        return len(self.window.batches)

    def record_count(self, first_offset: int, last_offset: int) -> int:
        """The number of records in the range of offsets, both ends inclusive."""
        return self.window.control_runs.data_count(first_offset, last_offset)

    @property
    def read_batches(self) -> list[Batch]:
        """Batches in flight, except those that no member has read since the restart."""
        return [batch for batch in self.window.batches if batch.kind is not UNREAD]

    @property
    def delivery_complete_count(self) -> int:
        """Records at or above the SPSO that are final (KIP-1226)."""
        return self.window.record_count() - self.window.live_count

    @property
    def has_unrecorded(self) -> bool:
        """Whether there are changes in force whose write failed: the next decision includes them, and
        `expire` returns them even without other changes.
        """
        return bool(self._unrecorded.changes)

    @property
    def window_count(self) -> int:
        """Records in the in-flight window, which bounds the acquisition of new ones."""
        return self.window.size()

    @property
    def delayed_count(self) -> int:
        """Records that wait for their first delivery."""
        return self.window.waits.delayed_count

    @property
    def waiting_count(self) -> int:
        """Records that were released with a delay, or are delayed, and are not due yet."""
        return self.window.waiting_count()

    @property
    def pending_acknowledgements(self) -> set[PendingAcknowledgement]:
        """The acknowledgements that wait for the end of a transaction."""
        return {pending for _, _, pending in pending_runs(self.window)}

    @property
    def pending_count(self) -> int:
        """Records whose acknowledgement waits for the end of a transaction."""
        return sum(self.window.count(run) for _, run, _ in pending_runs(self.window))

    def lag(self, end_offset: int) -> int:
        """Records below an offset, usually the high watermark, that are not final; -1 while the start offset
        is undecided.
        """
        if not self.is_initialised:
            return -1
        if end_offset < self.speo:
            return self.window.live_count_below(end_offset)
        return self.record_count(self.spso, end_offset - 1) - self.delivery_complete_count

    def unfinished_ranges(self) -> list[Span]:
        """The records from the SPSO to the SPEO that are not final, as ascending ranges, both ends inclusive.
        Control records may lie in them.
        """
        return list(self.window.live_ranges(self.speo))

    def next_unheld_offset(self, offset: int) -> int:
        """The next record at or behind `offset` that no member holds and that is not final: in flight, or the
        first new one.
        """
        window = self.window
        first_offset = max(offset, window.spso)
        for _, run in window.runs_between(first_offset, window.speo - 1):
            if run.state is AVAILABLE:
                return window.control_runs.next_data_offset(max(run.first_offset, first_offset))
        return window.control_runs.next_data_offset(max(first_offset, window.speo))

    def inspect(self, limits: ShareLimits, bounds: InspectionBounds) -> Iterator[InspectedRange]:
        """The states of the records, see `inspection.inspect`."""
        return inspect(self.window, self._order, limits, bounds)

    def held_locks(self) -> Iterator[HeldLock]:
        """See `locks.held_locks`."""
        return locks.held_locks(self.window)

    def held_ranges(self, member_id: str, acquired: Sequence[Range]) -> list[Range]:
        """The parts of the acquired ranges that the member still holds from that delivery."""
        return locks.held_ranges(self.window, member_id, acquired)

    def durable_ranges(self, first_offset: int, last_offset: int) -> list[StateRange]:
        """See `recorded.durable_ranges`; both ends are inclusive."""
        return durable_ranges(self.window, first_offset, last_offset)

    def archiving_ranges(self) -> list[StateRange]:
        """The records whose dead letter is due, ascending, each with its place as the condition."""
        return dead_letters.archiving_ranges(self.window)

    # Acquisition.

    def plan(self, demand: Demand) -> AcquirePlan:
        """The reads for a demand; none if no record can be acquired now.

        One fetch at a time may be between its plan and its `acquire`.
        """
        window = self.window
        if demand.records_max <= 0 or window.spso < 0:
            return NO_READS
        if demand.limits is not self._ordered_by or window.awaits_locks:
            if not self._follows_order(demand.limits):
                return NO_READS
            self._ordered_by = demand.limits
        return self._order.plan(window, demand)

    def _follows_order(self, limits: ShareLimits) -> bool:
        """Goes by the order of the group's limits; whether records may be acquired now.

        After a change of `share.order`, or of the name of the header with priorities, none may until all
        locks have ended, because the locks were given in the earlier order, and until the ends of records are
        recorded.
        """
        window = self.window
        if self._order.follows(limits):
            window.awaits_locks = False
            return True
        window.awaits_locks = any(run.state is ACQUIRED or run.keeps_key for _, run in window.all_runs())
        if window.awaits_locks:
            return False
        self.begin_order(limits)
        return True

    def begin_order(self, limits: ShareLimits) -> None:
        """Begins the order of these limits, without keys of earlier records."""
        self._order, self._ordered_by = order_of(self.window.spso, limits), None
        self.window.keys = self._order.keys
        self._order.begin(self.window)

    def acquire(self, plan: AcquirePlan, demand: Demand, found: Found) -> Acquisition:
        """Acquires the available ones of the records read for the member, locked from now on. Records of
        aborted transactions, malformed ones, and ranges without data are archived instead of delivered.
        """
        window = self.window
        if demand.records_max <= 0 or not found.batches:
            return Acquisition(window, demand, found)
        acquisition = self._order.acquire(window, plan, demand, found)
        if acquisition.gaps is not None:
            self._with_unrecorded(acquisition.gaps)
        return acquisition

    def planned_count(self, plan: AcquirePlan, upper_offset: int) -> int:
        """The records that a plan can acquire, at most; of the new ones, those below `upper_offset`."""
        if not plan.new_count:
            return plan.available_count
        return plan.available_count + min(plan.new_count, self.record_count(plan.new_from, upper_offset - 1))

    @property
    def keys_until(self) -> int | None:
        """Where the next records lie whose keys and priorities an acquisition needs; None if records have no
        order.
        """
        keys = self.window.keys
        return None if keys is None else keys.known_until

    @property
    def looked_until(self) -> int:
        """Up to where acquisitions have looked at records, exclusive."""
        return self._order.looked_until(self.window)

    def runs(self, limits: ShareLimits) -> Runs | None:
        """Which held records are taken back together, see `keyed_order`; None if each is held alone."""
        return self._order.runs(limits)

    def plan_look_ahead(self, limits: ShareLimits) -> AcquirePlan:
        """The read before a fetch of a group with priorities, so that it can choose among more records. Its
        batches are for `look_ahead`, and then the fetch needs a new plan.
        """
        return self._order.plan_look_ahead(self.window, limits)

    def look_ahead(self, demand: Demand, found: Found) -> Acquisition:
        """Takes over the batches that were read, as far as they can be chosen from; see `acquire`. Nothing is
        acquired; the result may have `gaps`.
        """
        looked = self._order.look_ahead(self.window, demand, found)
        if looked.gaps is not None:
            self._with_unrecorded(looked.gaps)
        return looked

    def admit(
        self, batches: Sequence[Bounds], timed: Sequence[TimedPart], batch_size: int, limits: ShareLimits
    ) -> Decision:
        """Gives the timed records their fate without an acquisition; immediate. The new records of the
        producer batches come in flight for that.
        """
        decision = Decision()
        if admit(self.window, decision, batches, timed, batch_size, limits):
            decision.outcome = Outcome(released=True)
        return self._with_unrecorded(decision)

    # Acknowledgement.

    def decide_acknowledge(
        self,
        member_id: str,
        batches: Sequence[AckBatch],
        limits: ShareLimits,
        now_ms: int,
        delays: Sequence[ReleaseDelay] = (),
    ) -> Decision:
        """Decides on batches that `validate_acknowledgement_batches` has accepted, with the delays that the
        member asks for.

        ApiError INVALID_RECORD_STATE for records that the member doesn't hold or whose change is being
        recorded, INVALID_REQUEST for offsets beyond the SPEO and for invalid delays; then nothing changes
        except locks renewed before. Offsets below the SPSO are ignored. The decision is empty if there is
        nothing to record.
        """
        decision = acknowledgement.decide_batches(self.window, member_id, batches, limits, now_ms, delays)
        return self._with_earlier(decision) if self._unrecorded.changes else decision

    def decide_pending(
        self, member_id: str, batches: Sequence[AckBatch], producer: ProducerIdentity
    ) -> Decision:
        """The validated batches, without RENEW, wait for the end of the producer's transaction. Raises the
        errors of `decide_acknowledge`.
        """
        return self._with_earlier(acknowledgement.decide_pending(self.window, member_id, batches, producer))

    def decide_end(self, end: TransactionEnd, limits: ShareLimits, now_ms: int) -> Decision:
        """Gives effect to the acknowledgements that wait for this end of a transaction. Decide only when no
        acknowledgement of the transaction is being recorded.
        """
        return self._with_earlier(acknowledgement.decide_end(self.window, end, limits, now_ms))

    # The ends of locks and of waits; all are immediate.

    def decide_release_member(
        self, member_id: str, limits: ShareLimits, now_ms: int, *, is_clean: bool = True
    ) -> Decision:
        """Ends all locks of a member whose share session has ended; the delivery counts stay. See
        `locks.release_member`.
        """
        decision = locks.release_member(self.window, member_id, limits, now_ms, is_clean=is_clean)
        return self._with_unrecorded(decision)

    def administer(
        self, action: RecordAction, first_offset: int, last_offset: int, limits: ShareLimits
    ) -> Decision:
        """See `locks.administer`."""
        return self._with_unrecorded(locks.administer(self.window, action, first_offset, last_offset, limits))

    def expire(self, now_ms: int, limits: ShareLimits) -> Decision:
        """Ends the locks that have expired, and the waits of records that are due; usually an empty decision.

        Includes the changes that could not be recorded before, even if no lock has expired.
        """
        window = self.window
        self._clock_looked_ms = now_ms
        decision = locks.expire_locks(window, limits, now_ms)
        if window.end_waits(window.due_times.wall_ms(now_ms)):
            decision.outcome = Outcome(released=True)
        return self._with_unrecorded(decision)

    def next_deadline_ms(self) -> int | None:
        """When to call `expire`: never later than the first lock ends, the first waiting record is due, or
        unrecorded changes of records in flight are tried again. None if there is nothing of that. While
        records are delayed, the wall clock is looked at now and then, because it may be set.
        """
        window = self.window
        if not window.batches:
            window.deadline_from_ms = None
        due_wall_ms = window.waits.first_due_ms
        if due_wall_ms is None:
            return window.deadline_from_ms
        if not window.batches:
            window.waits.clear()
            return None
        due_ms = window.due_times.monotonic_ms(due_wall_ms)
        if window.waits.delayed_count:
            due_ms = min(due_ms, self._clock_looked_ms + CLOCK_LOOK_MS)
        return due_ms if window.deadline_from_ms is None else min(due_ms, window.deadline_from_ms)

    def expire_again(self, deadline_ms: int) -> None:
        """Have `expire` called at this time at the latest, because changes could not be recorded."""
        self.window.note_deadline(deadline_ms)

    def follow_wall_clock(self, ahead_ms: int) -> None:
        """If the wall clock was set, moves the due times of retries with it. To be called before a decision
        that may make records wait. `ahead_ms` is the wall-clock time minus the monotonic time.
        """
        self.window.follow_wall_clock(ahead_ms)

    def wall_ms(self, monotonic_ms: int, ahead_ms: int) -> int:
        """A monotonic time as wall-clock time: the same each time it is asked for, until the clock is set.

        `ahead_ms` is the present difference of the clocks.
        """
        return monotonic_ms + self.window.due_times.settled_ahead_ms(ahead_ms)

    # The start offset and dead letters.

    def decide_start_offset(self, start_offset: int) -> Decision:
        """Decides the start offset of a share-partition that has none; it holds once that is recorded."""
        assert not self.is_initialised, self.spso
        assert start_offset >= 0, start_offset
        decision = Decision()
        decision.start_offset = start_offset
        return decision

    def decide_log_start(self, log_start_offset: int) -> Decision:
        """Follows the log's start, which has moved: records below are gone immediately, with any owner.

        The new start offset has to be recorded. If that fails, it follows from the log itself after a
        restart.
        """
        decision = Decision()
        if self.is_initialised and log_start_offset > self.spso:
            self.window.drop_below(log_start_offset)
            self.window.advance()
            decision.start_offset = self.spso
            decision.outcome = Outcome(spso_moved=True)
        return decision

    def decide_archived(self, ranges: Iterable[Span], cause: Cause) -> Decision:
        """Archives the Archiving records in these ranges: their dead letters are written, or given up.

        It takes effect once it is recorded, so that a crash before that looks for the letters again.
        """
        return self._with_earlier(dead_letters.decide_archived(self.window, ranges, cause))

    def decide_letter_place(self, ranges: Iterable[Span], place: LetterPlace) -> Decision:
        """Gives the dead letters of the Archiving records in these ranges another place."""
        return self._with_earlier(dead_letters.decide_letter_place(self.window, ranges, place))

    # The end of a decision.

    def complete(self, decision: Decision) -> Outcome:
        """Makes a recorded and replayed decision take effect.

        A record behind one that becomes available is taken back, if its own change has failed meanwhile.
        """
        window = self.window
        if decision.start_offset is not None and not self.is_initialised:
            window.spso = window.speo = decision.start_offset
            return Outcome(spso_moved=True)
        for _, run in decision.given_up_runs:
            run.pending = run.keeps_key = False
        bounds: list[Span] = []
        if window.keys is not None:
            available = [target.run for target in decision.targets if target.state is AVAILABLE]
            available += [run for _, run in decision.taken_back]
            bounds = [(run.first_offset, run.last_offset) for run in available]
        released = False
        for _, run, state, condition in decision.targets:
            if state is ACQUIRED:
                run.free(state, condition)  # held until its transaction ends
            elif isinstance(condition, Due):
                # The wall clock may have been set while the decision was being recorded.
                step_ms = window.due_times.ahead_ms - decision.ahead_ms
                window.free(run, state, Due(condition.due_ms + step_ms))
            else:
                window.free(run, state, condition)
            run.pending = False
            released |= state is AVAILABLE and condition is None
        for batch, run in decision.taken_back:
            window.give_back(run)
            run.pending = False
            batch.join(run.first_offset, run.last_offset)
        targets = decision.targets
        if len(targets) > 1 or (targets and len(targets[0].batch.runs) > 1):
            decision.join_targets()
        if window.keys is not None:
            window.keys.recorded(decision.immediate)
            window.take_back(overtaken(window, bounds))
        for batch, run in decision.given_up_runs:
            batch.join(run.first_offset, run.last_offset)
        has_moved = window.advance()
        if window.waits.has_delayed:
            window.join_finished(decision.changes)
        if released or window.keys is not None or window.awaits_locks:
            return Outcome(self._take_news() or released, has_moved)
        return SPSO_MOVED if has_moved else NOTHING_HAPPENED

    def abort(self, decision: Decision) -> Outcome:
        """Handles a decision that could not be recorded.

        Acknowledged records are as they were before. A lock whose deadline passed meanwhile ends with the
        next `expire`, so ask for the next deadline again. Changes in force are included in the next decision.
        A record is taken back if one before it, of the same key, has become available meanwhile.
        """
        window = self.window
        held = [
            target.run
            for target in decision.targets
            if target.run.state is ACQUIRED and target.run.condition is None
        ]
        held += [run for _, run in decision.taken_back]
        for run in held:
            window.note_deadline(run.lock_deadline_ms)
        decision.withdraw()
        taken_back = left_behind(window, [(run.first_offset, run.last_offset) for run in held])
        window.take_back(taken_back)
        self._unrecorded.keep(decision)
        return Outcome(self._take_news() or bool(taken_back))

    def _take_news(self) -> bool:
        """Whether records may have become available since the last call without a change of their own: their
        key is free, or the locks have ended that a change of the order waits for.
        """
        keys = self.window.keys
        return (keys is not None and keys.take_news()) or self.window.awaits_locks

    def _with_earlier(self, decision: Decision) -> Decision:
        """The decision, with earlier changes that are unrecorded if it has any of its own."""
        if self._unrecorded.changes and decision.changes:
            self._unrecorded.add_to(decision, self.window)
        return decision

    def _with_unrecorded(self, decision: Decision) -> Decision:
        """The decision with its changes marked as immediate, and with earlier changes that are unrecorded."""
        if decision.changes:
            decision.immediate = list(decision.changes)
        if self._take_news():
            decision.outcome = decision.outcome._replace(released=True)
        self._unrecorded.add_to(decision, self.window)
        return decision
