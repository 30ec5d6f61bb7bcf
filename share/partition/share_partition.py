"""One share-partition as its leader sees it (KIP-932, "Share-partition leader").

It holds the state that lives in memory only: the records in flight, their owners and lock deadlines, and the
changes being recorded. Changes that must survive are returned as a `Decision`, which goes one way: decide,
append, replay into the durable image, then `complete` (or `abort` where the append failed), then reply. It is
synchronous and never waits. Reading the log, writing it, timers and wake-ups belong to the caller, on one
thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import (
    Cause,
    LetterPlace,
    PendingAcknowledgement,
    StateRange,
)
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.extended.runs import Runs
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_inspection import RecordAction
from barnabas.share.partition import acquisition, ordered_acquisition
from barnabas.share.partition.acknowledgement import carry_out, decide_batches, withdraw
from barnabas.share.partition.acquire_plan import AcquirePlan, Acquisition, FoundBatches, HasNoData, never
from barnabas.share.partition.acquisition_builder import AcquireRequest
from barnabas.share.partition.administration import administer
from barnabas.share.partition.arrival import TimedPart, admit
from barnabas.share.partition.dead_letters import archiving_ranges, decide_archived, decide_letter_place
from barnabas.share.partition.decision import Decision, Outcome
from barnabas.share.partition.due_times import CLOCK_LOOK_MS, DELAY_MS_MAX, DueTimes
from barnabas.share.partition.finished_batches import join_finished
from barnabas.share.partition.held_locks import HeldLock, held_locks
from barnabas.share.partition.held_ranges import Range, held_ranges
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED, AVAILABLE, InFlightBatch, UnreadBatch
from barnabas.share.partition.inspection import InspectedRange, InspectionBounds, inspect
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.locks import expire_locks, release_member
from barnabas.share.partition.overtaken import left_behind, made_available, overtaken, runs_of, take_back
from barnabas.share.partition.pending_acknowledgements import (
    TransactionEnd,
    decide_end,
    decide_pending,
    pending_acknowledgements,
    pending_count,
)
from barnabas.share.partition.recorded_states import Unrecorded, durable_ranges
from barnabas.share.partition.restoring import restore
from barnabas.share.partition.waits import end_waits, follow_wall_clock, waiting_count
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage


class SharePartition:
    """The live state over a durable image, which it reads once, at its creation.

    `control_runs` are those of the log, and grow with it (empty if the state is kept elsewhere). All `now_ms`
    are of one monotonic clock, and `due_times` converts them into the wall-clock time of due times. Limits
    are passed into each call, because they may change at any time. `retry_delay_ms_max` is the longest delay
    of a retry at the creation: no loaded record waits longer.
    """

    __slots__ = ("_in_flight", "_unrecorded")

    def __init__(
        self,
        image: ShareStateImage,
        control_runs: ControlRuns,
        due_times: DueTimes | None = None,
        now_ms: int = 0,
        retry_delay_ms_max: int = DELAY_MS_MAX,
    ) -> None:
        self._in_flight = InFlight(image.start_offset, control_runs, due_times)
        self._in_flight.clock_looked_ms = now_ms
        self._unrecorded = Unrecorded()
        restore(self._in_flight, image, now_ms, retry_delay_ms_max)

    @property
    def is_initialised(self) -> bool:
        """Whether the start offset has been decided; nothing can be acquired before."""
        return self._in_flight.spso >= 0

    @property
    def spso(self) -> int:
        """The share-partition start offset: the first one that isn't final, or -1."""
        return self._in_flight.spso

    @property
    def speo(self) -> int:
        """The share-partition end offset, exclusive: where new records are fetched from; or -1."""
        return self._in_flight.speo

    @property
    def in_flight_count(self) -> int:
        """Records from SPSO to SPEO, in any state."""
        return self._in_flight.record_count()

    @property
    def in_flight_batch_count(self) -> int:
        """Batches that these records are kept in."""
        return len(self._in_flight.batches)

    def record_count(self, first_offset: int, last_offset: int) -> int:
        """The number of records in the range of offsets, both ends inclusive."""
        return self._in_flight.control_runs.data_count(first_offset, last_offset)

    @property
    def read_batches(self) -> list[InFlightBatch]:
        """Batches in flight, except those that no member has read since the restart."""
        return [batch for batch in self._in_flight.batches if not isinstance(batch, UnreadBatch)]

    @property
    def delivery_complete_count(self) -> int:
        """Records at or above the SPSO that are final (KIP-1226)."""
        return self._in_flight.record_count() - self._in_flight.live_count

    @property
    def has_unrecorded(self) -> bool:
        """Whether there are changes in force whose write failed: the next decision includes them, and
        `expire` returns them even without other changes.
        """
        return self._unrecorded.is_any

    @property
    def keys_until(self) -> int | None:
        """Where the next records lie whose keys and priorities an acquisition needs; None if records have no
        order.
        """
        order = self._in_flight.key_order
        return None if order is None else order.known_until

    def runs(self, limits: ShareLimits) -> Runs | None:
        """Which held records are taken back together, see `overtaken`; None if each is held alone."""
        return runs_of(self._in_flight.key_order, limits)

    @property
    def looked_until(self) -> int:
        """Up to where acquisitions have looked at records, exclusive."""
        order = self._in_flight.key_order
        return self._in_flight.speo if order is None else order.known_until

    @property
    def window_count(self) -> int:
        """Records in the in-flight window, which bounds the acquisition of new ones."""
        return self._in_flight.window_count()

    @property
    def delayed_count(self) -> int:
        """Records that wait for their first delivery."""
        return self._in_flight.delayed_count

    def lag(self, end_offset: int) -> int:
        """Records below an offset, usually the high watermark, that are not final; -1 while the start offset
        is undecided.
        """
        if not self.is_initialised:
            return -1
        if end_offset < self.speo:
            return self._in_flight.live_count_below(end_offset)
        waiting = self._in_flight.control_runs.data_count(self.spso, end_offset - 1)
        return waiting - self.delivery_complete_count

    def unfinished_ranges(self) -> list[tuple[int, int]]:
        """The records from the SPSO to the SPEO that are not final, as ascending ranges, both ends inclusive.
        Control records may lie in them.
        """
        return list(self._in_flight.live_ranges(self.speo))

    def held_locks(self) -> Iterator[HeldLock]:
        """See `held_locks.held_locks`."""
        return held_locks(self._in_flight)

    @property
    def waiting_count(self) -> int:
        """Records that were released with a delay, or are delayed, and are not due yet."""
        return waiting_count(self._in_flight)

    def follow_wall_clock(self, ahead_ms: int) -> None:
        """See `waits.follow_wall_clock`. To be called before a decision that may make records wait."""
        follow_wall_clock(self._in_flight, ahead_ms)

    def wall_ms(self, monotonic_ms: int, ahead_ms: int) -> int:
        """A monotonic time as wall-clock time: the same each time it is asked for, until the clock is set.

        `ahead_ms` is the present difference of the clocks.
        """
        return monotonic_ms + self._in_flight.due_times.settled_ahead_ms(ahead_ms)

    def next_deadline_ms(self) -> int | None:
        """When to call `expire`: never later than the first lock ends, the first waiting record is due, or
        unrecorded changes of records in flight are tried again. None if there is nothing of that. While
        records are delayed, the wall clock is looked at now and then, because it may be set.
        """
        in_flight = self._in_flight
        if not in_flight.batches:
            in_flight.deadline_from_ms = None
        due_wall_ms = in_flight.wait_queue.first_due_ms
        if due_wall_ms is None:
            return in_flight.deadline_from_ms
        if not in_flight.batches:
            in_flight.wait_queue.clear()
            return None
        due_ms = in_flight.due_times.monotonic_ms(due_wall_ms)
        if in_flight.delayed_count:
            due_ms = min(due_ms, in_flight.clock_looked_ms + CLOCK_LOOK_MS)
        return due_ms if in_flight.deadline_from_ms is None else min(due_ms, in_flight.deadline_from_ms)

    def expire_again(self, deadline_ms: int) -> None:
        """Have `expire` called at this time at the latest, because changes could not be recorded."""
        self._in_flight.note_deadline(deadline_ms)

    def plan_acquire(
        self, records_max: int, limits: ShareLimits, acquire_mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED
    ) -> AcquirePlan:
        """The reads for a fetch of `records_max` records; no reads if no record can be acquired now.

        One fetch at a time may be between its plan and its `acquire`.
        """
        return acquisition.plan(self._in_flight, records_max, limits, acquire_mode)

    def planned_count(self, plan: AcquirePlan, upper_offset: int) -> int:
        """The records that a plan can acquire, at most; of the new ones, those below `upper_offset`."""
        new_count = 0
        if plan.new_count:
            new_count = self.record_count(plan.new_from, upper_offset - 1)
        return plan.available_count + min(plan.new_count, new_count)

    def plan_look_ahead(self, limits: ShareLimits) -> AcquirePlan:
        """The read before a fetch of a group with priorities, so that it can choose among more records. Its
        batches are for `look_ahead`, and then the fetch needs a new plan.
        """
        return ordered_acquisition.plan_look_ahead(self._in_flight, limits)

    def look_ahead(
        self,
        batches: Sequence[tuple[int, int]],
        keys: Sequence[BatchKeys],
        batch_size: int,
        limits: ShareLimits,
        *,
        aborted: Sequence[tuple[int, int]] = (),
        timed: Sequence[TimedPart] | None = None,
    ) -> Acquisition:
        """Takes over the batches that were read, as far as they can be chosen from; see `acquire`. Nothing is
        acquired; the result may have `gaps`.
        """
        looked = ordered_acquisition.look_ahead(
            self._in_flight, batches, keys, batch_size, limits, aborted, timed
        )
        if looked.gaps is not None:
            self._with_unrecorded(looked.gaps)
        return looked

    def acquire(
        self,
        plan: AcquirePlan,
        member_id: str,
        batches: Sequence[tuple[int, int]],
        *,
        records_max: int,
        batch_size: int,
        acquire_mode: AcquireMode,
        limits: ShareLimits,
        now_ms: int,
        aborted: Sequence[tuple[int, int]] = (),
        unreadable: Sequence[tuple[int, int]] = (),
        has_no_data: HasNoData = never,
        keys: Sequence[BatchKeys] = (),
        timed: Sequence[TimedPart] | None = None,
    ) -> Acquisition:
        """Acquires the available ones of the records read for the member, locked from now on.

        `batches` are (base_offset, last_offset) of the producer batches read by the plan, ascending, each
        once, without share control batches; `aborted` those of them whose transaction was aborted,
        `unreadable` those with malformed records; `has_no_data` tells which hold nothing for a client. `keys`
        are those of the batches that end at or behind `keys_until`, if there is an order of keys. `timed` are
        the records that may not be delivered now, None in a group without a timing.
        """
        request = AcquireRequest(member_id, records_max, batch_size, acquire_mode, limits, now_ms)
        found = FoundBatches(batches, aborted, unreadable, has_no_data, keys, timed)
        acquired = acquisition.acquire(self._in_flight, plan, request, found)
        if acquired.gaps is not None:
            self._with_unrecorded(acquired.gaps)
        return acquired

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
        decision = decide_batches(self._in_flight, member_id, batches, limits, now_ms, delays)
        return self._with_earlier(decision)

    def held_ranges(self, member_id: str, acquired: Sequence[Range]) -> list[Range]:
        """The parts of the acquired ranges that the member still holds from that delivery."""
        return held_ranges(self._in_flight, member_id, acquired)

    def decide_release_member(
        self, member_id: str, limits: ShareLimits, now_ms: int, *, is_clean: bool = True
    ) -> Decision:
        """Ends all locks of a member whose share session has ended; the delivery counts stay. See
        `release_member`.
        """
        decision = release_member(self._in_flight, member_id, limits, now_ms, is_clean=is_clean)
        return self._with_unrecorded(decision)

    def expire(self, now_ms: int, limits: ShareLimits) -> Decision:
        """Ends the locks that have expired, and the waits of records that are due; usually an empty decision.

        Includes the changes that could not be recorded before, even if no lock has expired.
        """
        self._in_flight.clock_looked_ms = now_ms
        decision = expire_locks(self._in_flight, limits, now_ms)
        if end_waits(self._in_flight, now_ms):
            decision.outcome = Outcome(released=True)
        return self._with_unrecorded(decision)

    def next_unheld_offset(self, offset: int) -> int:
        """The next record at or behind `offset` that no member holds and that is not final: in flight, or the
        first new one.
        """
        in_flight = self._in_flight
        first_offset = max(offset, in_flight.spso)
        for _, run in in_flight.runs_between(first_offset, in_flight.speo - 1):
            if run.state is AVAILABLE:
                return in_flight.control_runs.next_data_offset(max(run.first_offset, first_offset))
        return in_flight.control_runs.next_data_offset(max(first_offset, in_flight.speo))

    def admit(
        self,
        batches: Sequence[tuple[int, int]],
        timed: Sequence[TimedPart],
        batch_size: int,
        limits: ShareLimits,
    ) -> Decision:
        """Gives the timed records their fate without an acquisition; immediate. The new records of the
        producer batches come in flight for that.
        """
        decision = Decision()
        new = admit(self._in_flight, decision, batches, timed, batch_size, limits)
        if new:
            decision.outcome = Outcome(released=True)
        return self._with_unrecorded(decision)

    def administer(
        self, action: RecordAction, first_offset: int, last_offset: int, limits: ShareLimits
    ) -> Decision:
        """See `administration.administer`."""
        return self._with_unrecorded(administer(self._in_flight, action, first_offset, last_offset, limits))

    def inspect(self, limits: ShareLimits, bounds: InspectionBounds) -> Iterator[InspectedRange]:
        """The states of the records, see `inspection.inspect`."""
        return inspect(self._in_flight, limits, bounds)

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
            self._in_flight.drop_below(log_start_offset)
            self._in_flight.advance()
            decision.start_offset = self.spso
            decision.outcome = Outcome(spso_moved=True)
        return decision

    def archiving_ranges(self) -> list[StateRange]:
        """The records whose dead letter is due, ascending, each with its place as the condition."""
        return archiving_ranges(self._in_flight)

    def decide_archived(self, ranges: Iterable[tuple[int, int]], cause: Cause) -> Decision:
        """Archives the Archiving records in these ranges: their dead letters are written, or given up.

        It takes effect once it is recorded, so that a crash before that looks for the letters again.
        """
        return self._with_earlier(decide_archived(self._in_flight, ranges, cause))

    def decide_letter_place(self, ranges: Iterable[tuple[int, int]], place: LetterPlace) -> Decision:
        """Gives the dead letters of the Archiving records in these ranges another place."""
        return self._with_earlier(decide_letter_place(self._in_flight, ranges, place))

    def decide_pending(
        self, member_id: str, batches: Sequence[AckBatch], producer: ProducerIdentity
    ) -> Decision:
        """The validated batches, without RENEW, wait for the end of the producer's transaction. Raises the
        errors of `decide_acknowledge`.
        """
        return self._with_earlier(decide_pending(self._in_flight, member_id, batches, producer))

    def decide_end(self, end: TransactionEnd, limits: ShareLimits, now_ms: int) -> Decision:
        """Gives effect to the acknowledgements that wait for this end of a transaction. Decide only when no
        acknowledgement of the transaction is being recorded.
        """
        return self._with_earlier(decide_end(self._in_flight, end, limits, now_ms))

    @property
    def pending_acknowledgements(self) -> set[PendingAcknowledgement]:
        """The acknowledgements that wait for the end of a transaction."""
        return pending_acknowledgements(self._in_flight)

    @property
    def pending_count(self) -> int:
        """Records whose acknowledgement waits for the end of a transaction."""
        return pending_count(self._in_flight)

    def _with_earlier(self, decision: Decision) -> Decision:
        """The decision, with earlier changes that are unrecorded if it has any of its own."""
        if decision.changes:
            self._unrecorded.add_to(decision, self._in_flight)
        return decision

    def complete(self, decision: Decision) -> Outcome:
        """Makes a recorded and replayed decision take effect.

        A record behind one that becomes available is taken back, if its own change has failed meanwhile.
        """
        in_flight = self._in_flight
        if decision.start_offset is not None and not self.is_initialised:
            in_flight.spso = in_flight.speo = decision.start_offset
            return Outcome(spso_moved=True)
        for _, run in decision.given_up_runs:
            run.pending = run.keeps_key = False
        if in_flight.key_order is None:
            released = carry_out(in_flight, decision)
        else:
            available = made_available(decision)
            released = carry_out(in_flight, decision)
            in_flight.note_recorded(decision.immediate)
            take_back(in_flight, overtaken(in_flight, available))
        for batch, run in decision.given_up_runs:
            batch.join(run.first_offset, run.last_offset)
        has_moved = in_flight.advance()
        if in_flight.has_delayed:
            join_finished(in_flight, decision.changes)
        return Outcome(in_flight.take_news() or released, has_moved)

    def abort(self, decision: Decision) -> Outcome:
        """Handles a decision that could not be recorded.

        Acknowledged records are as they were before. A lock whose deadline passed meanwhile ends with the
        next `expire`, so ask for the next deadline again. Changes in force are included in the next decision.
        A record is taken back if one before it, of the same key, has become available meanwhile.
        """
        held = [
            target.run
            for target in decision.targets
            if target.run.state is ACQUIRED and target.run.condition is None
        ]
        held += (run for _, run in decision.taken_back)
        for run in held:
            self._in_flight.note_deadline(run.lock_deadline_ms)
        withdraw(decision)
        bounds = [(run.first_offset, run.last_offset) for run in held]
        taken_back = left_behind(self._in_flight, bounds)
        take_back(self._in_flight, taken_back)
        self._unrecorded.keep(decision)
        return Outcome(self._in_flight.take_news() or bool(taken_back))

    def durable_ranges(self, first_offset: int, last_offset: int) -> list[StateRange]:
        """See `recorded_states.durable_ranges`; both ends are inclusive."""
        return durable_ranges(self._in_flight, first_offset, last_offset)

    def _with_unrecorded(self, decision: Decision) -> Decision:
        """The decision with its changes marked as immediate, and with earlier changes that are unrecorded."""
        if decision.changes:
            decision.immediate = list(decision.changes)
        if self._in_flight.take_news():
            decision.outcome = decision.outcome._replace(released=True)
        self._unrecorded.add_to(decision, self._in_flight)
        return decision
