"""The run-compressed share-partition against one that keeps each offset by itself, under random operations.

The log grows by producer batches and by the control records that the operations themselves cause; it loses
batches by compaction and its beginning by retention. Appends may fail, and several decisions may share one. A
crash may happen at any time: then only the recorded state remains.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Due, RecordState, StateRange
from barnabas.protocol.errors import ApiError
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.record_inspection import DescribedState, RecordAction, Wait
from barnabas.share.log_store.delta_states import delta_states
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.inspection import InspectionBounds
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import AcquireMode, RetryBackoff, ShareLimits
from barnabas.share.partition.waits import DueTimes
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage
from tests.share.partition.core import Plan, SharePartition
from tests.share.partition.naive_partition import AHEAD_MS, NaiveDecision, NaiveDemand, NaivePartition

MEMBERS = ("member-1", "member-2", "member-3")
BACKOFFS = st.sampled_from([0, 0, 7])
RECORD_STATES = st.sampled_from([0, 1, 2, 3, 4])


def spread(ranges: list[StateRange], control: set[int]) -> dict[int, tuple[RecordState, int]]:
    return {
        offset: (one.state, one.delivery_count)
        for one in ranges
        for offset in range(one.base_offset, one.last_offset + 1)
        if offset not in control
    }


def dues(ranges: list[StateRange], control: set[int]) -> dict[int, int]:
    """The monotonic due time of each offset that has one."""
    return {
        offset: one.condition.due_ms - AHEAD_MS
        for one in ranges
        if isinstance(one.condition, Due)
        for offset in range(one.base_offset, one.last_offset + 1)
        if offset not in control
    }


def assert_only_waits(partition: SharePartition) -> None:
    """After a start no record is held, so the only deadline is that of the first waiting record."""
    live = partition.durable_ranges(partition.spso, partition.speo)
    assert partition.next_deadline_ms() == min(dues(live, set()).values(), default=None)


fetch_rule = rule(
    member=st.sampled_from(MEMBERS),
    records_max=st.sampled_from([1, 3, 7, 50]),
    batch_size=st.sampled_from([1, 4, 50]),
    mode=st.sampled_from(AcquireMode),
    is_cut_short=st.booleans(),
)
crash_rule = rule(
    member=st.sampled_from(MEMBERS),
    records_max=st.sampled_from([1, 3, 5, 50]),
    batch_size=st.sampled_from([1, 4, 50]),
    mode=st.sampled_from(AcquireMode),
)


class SharePartitionMachine(RuleBasedStateMachine):
    """Each rule does the same to both, compares the answers, and queues the changes for recording."""

    @initialize(
        limit=st.sampled_from([2, 3, 5, 10]),
        locks_max=st.sampled_from([5, 12, 40]),
        runs=st.integers(0, 3),
        backoff_ms=BACKOFFS,
    )
    def start(self, limit: int, locks_max: int, runs: int, backoff_ms: int = 0) -> None:
        self.limits = ShareLimits(limit, 30, locks_max, renew_enabled=True)
        self.limits = self.limits._replace(retry_backoff=RetryBackoff(backoff_ms, 40, 2, 0))
        self.control_runs = ControlRuns()
        self.log: list[tuple[int, int]] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.now_ms = 0
        self.naive = self.new_naive()
        self.image = ShareStateImage(self.control_runs)
        self.recorded: list[tuple[ShareCheckpoint | ShareDelta, int]] = []
        self.queue: list[tuple[Decision, NaiveDecision]] = []
        self.highest_spso = 0
        self.has_lost_log_start = False
        for _ in range(runs):
            self.grow_by_control()
        start = self.log_end_offset
        self.naive.spso = self.naive.speo = start
        checkpoint = ShareCheckpoint("group", 1, 1, 0, 0, 0, start, start, 0)
        self.image.replay_checkpoint(checkpoint, self.log_end_offset)
        self.recorded.append((checkpoint, self.log_end_offset))
        self.grow_by_control()
        self.partition = self.new_partition(self.image)

    def new_naive(self) -> NaivePartition:
        return NaivePartition()

    def new_partition(self, image: ShareStateImage) -> SharePartition:
        """As a leader that is loaded now."""
        return SharePartition(image, self.control_runs, DueTimes(AHEAD_MS), self.now_ms)

    def grow_by_control(self) -> None:
        self.control_runs.append(self.log_end_offset, self.log_end_offset)
        self.naive.control.add(self.log_end_offset)
        self.log_end_offset += 1

    @rule(sizes=st.lists(st.integers(1, 8), min_size=1, max_size=4))
    def produce(self, sizes: list[int]) -> None:
        for size in sizes:
            self.log.append((self.log_end_offset, self.log_end_offset + size - 1))
            self.log_end_offset += size

    @rule(foreign=st.integers(1, 3))
    def another_group_records_its_state(self, foreign: int) -> None:
        for _ in range(foreign):
            self.grow_by_control()

    @precondition(lambda self: len(self.log) > 1)
    @rule(pick=st.integers(0, 100))
    def compact(self, pick: int) -> None:
        del self.log[pick % (len(self.log) - 1)]

    @precondition(lambda self: bool(self.log))
    @rule(pick=st.integers(0, 100))
    def move_log_start(self, pick: int) -> None:
        base, last = self.log[pick % len(self.log)]
        offset = base + pick % (last - base + 1)
        self.log = [batch for batch in self.log if batch[1] >= offset]
        self.log_start_offset = offset
        self.follow_log_start()

    def follow_log_start(self) -> None:
        decision = self.partition.decide_log_start(self.log_start_offset)
        if self.log_start_offset > self.naive.spso:
            self.naive.move_log_start(self.log_start_offset)
            assert decision.start_offset == self.naive.spso
        self.enqueue(decision, NaiveDecision())

    @rule(elapsed_ms=st.sampled_from([1, 10, 31]))
    def wait(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms

    @fetch_rule
    def fetch(
        self, member: str, records_max: int, batch_size: int, mode: AcquireMode, is_cut_short: bool
    ) -> None:
        plan = self.partition.plan_acquire(records_max, self.limits, mode)
        batches, covered = self.read(plan, is_cut_short=is_cut_short)
        acquisition = self.partition.acquire(
            plan,
            member,
            batches,
            records_max=records_max,
            batch_size=batch_size,
            acquire_mode=mode,
            limits=self.limits,
            now_ms=self.now_ms,
            keys=self.keys_of_read(batches),
        )
        reads = [first for first, _ in plan.reads]
        demand = NaiveDemand(member, records_max, batch_size, mode, self.limits, self.now_ms)
        expected, gone = self.expected(covered, batches, reads, demand)
        found: dict[int, int] = {}
        for first, last, count in acquisition.acquired:
            assert not found or first > max(found), "ascending"
            found |= dict.fromkeys(range(first, last + 1), count)
        assert found == expected
        assert (acquisition.gaps is not None) == bool(gone.final_offsets)
        if acquisition.gaps is not None:
            self.enqueue(acquisition.gaps, gone)

    def keys_of_read(self, batches: list[tuple[int, int]]) -> Sequence[BatchKeys]:
        """The keys that the acquisition needs."""
        del batches
        return ()

    def expected(
        self, covered: set[int], batches: list[tuple[int, int]], reads: list[int], demand: NaiveDemand
    ) -> tuple[dict[int, int], NaiveDecision]:
        """The result of the naive partition."""
        return self.naive.acquire(covered, batches, reads, demand)

    def read(self, plan: Plan, *, is_cut_short: bool) -> tuple[list[tuple[int, int]], set[int]]:
        """The batches that a log gives for the plan's reads, and the offsets that they cover."""
        batches: list[tuple[int, int]] = []
        covered: set[int] = set()
        for first_offset, records_max in plan.reads[: 1 if is_cut_short else None]:
            last_offset = self.control_runs.nth_data_offset(first_offset, records_max)
            found = [batch for batch in self.log if batch[1] >= first_offset]
            for base, last in found[:1] + [batch for batch in found[1:] if batch[0] <= last_offset]:
                if not batches or base > batches[-1][0]:
                    batches.append((base, last))
                covered |= set(range(first_offset, last + 1))
        return batches, covered

    @rule(
        member=st.sampled_from(MEMBERS),
        start=st.integers(-4, 40),
        lengths=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), RECORD_STATES), max_size=4),
        type_for_each=st.booleans(),
    )
    def acknowledge_anything(
        self, member: str, start: int, lengths: list[tuple[int, int, int]], type_for_each: bool
    ) -> None:
        offset = max(self.naive.spso + start, 0)
        batches: list[AckBatch] = []
        for skipped, length, ack_type in lengths:
            offset += skipped
            kinds = [(ack_type + i // 2) % 5 for i in range(length)] if type_for_each else [ack_type]
            batches.append(AckBatch(offset, offset + length - 1, tuple(kinds)))
            offset += length
        self.acknowledge(member, batches)

    @precondition(lambda self: bool(self.naive.held()))
    @rule(
        pick=st.integers(0, 60),
        length=st.integers(1, 30),
        ack_type=RECORD_STATES,
        single=st.booleans(),
        delay_ms=st.sampled_from([None, None, 0, 25, 41]),
    )
    def acknowledge_held(
        self, pick: int, length: int, ack_type: int, single: bool, delay_ms: int | None = None
    ) -> None:
        held = self.naive.held()
        first = held[pick % len(held)]
        owner = self.naive.records[first].owner
        assert owner is not None
        mine = [offset for offset in held if offset >= first and self.naive.records[offset].owner == owner]
        mine = mine[:length]
        if single:
            self.acknowledge(owner, [AckBatch(offset, offset, (ack_type,)) for offset in mine], delay_ms)
        else:
            last = next((o for o in mine if o + 1 not in mine and o + 1 not in self.naive.control), mine[-1])
            self.acknowledge(owner, [AckBatch(first, last, (ack_type,))], delay_ms)

    def acknowledge(self, member: str, batches: list[AckBatch], delay_ms: int | None = None) -> None:
        delays = () if delay_ms is None else (ReleaseDelay(0, self.log_end_offset, delay_ms),)
        arguments = (member, batches, self.limits, self.now_ms, delays)
        if delay_ms is not None and delay_ms > self.limits.retry_backoff.max_ms:
            with pytest.raises(ApiError, match=r"raise share\.retry\.backoff\.max\.ms"):
                self.partition.decide_acknowledge(*arguments)
            return
        try:
            expected = self.naive.acknowledge(member, batches, self.limits, self.now_ms, delay_ms)
        except ApiError as error:
            with pytest.raises(ApiError) as raised:
                self.partition.decide_acknowledge(*arguments)
            assert raised.value.code is error.code
            return
        decision = self.partition.decide_acknowledge(*arguments)
        assert decision.is_empty == (not expected.targets)
        self.enqueue(decision, expected)

    @rule(
        action=st.sampled_from([RecordAction.RELEASE, RecordAction.ARCHIVE]),
        start=st.integers(-2, 30),
        length=st.integers(1, 8),
    )
    def administer(self, action: RecordAction, start: int, length: int) -> None:
        first = max(self.naive.spso + start, 0)
        last = first + length - 1
        try:
            expected = self.naive.administer(action, first, last, self.limits)
        except ApiError as error:
            with pytest.raises(ApiError) as raised:
                self.partition.administer(action, first, last, self.limits)
            assert raised.value.code is error.code
            return
        self.enqueue(self.partition.administer(action, first, last, self.limits), expected)

    @rule()
    def expire(self) -> None:
        deadline_ms = self.partition.next_deadline_ms()
        before = set(self.naive.held())
        expected = self.naive.expire(self.limits, self.now_ms)
        if before - set(self.naive.held()):
            assert deadline_ms is not None
            assert deadline_ms <= self.now_ms
        self.enqueue(self.partition.expire(self.now_ms, self.limits), expected)

    @rule(backoff_ms=BACKOFFS)
    def change_the_backoff(self, backoff_ms: int) -> None:
        backoff = self.limits.retry_backoff._replace(base_ms=backoff_ms)
        self.limits = self.limits._replace(retry_backoff=backoff)

    @rule(member=st.sampled_from(MEMBERS), is_clean=st.booleans())
    def session_ends(self, member: str, is_clean: bool) -> None:
        expected = self.naive.release_member(member, self.limits, self.now_ms, is_clean=is_clean)
        decision = self.partition.decide_release_member(member, self.limits, self.now_ms, is_clean=is_clean)
        self.enqueue(decision, expected)

    def enqueue(self, decision: Decision, naive_decision: NaiveDecision) -> None:
        if decision.is_empty:
            assert not naive_decision.targets
            assert not naive_decision.final_offsets
        else:
            self.queue.append((decision, naive_decision))

    @precondition(lambda self: bool(self.queue))
    @rule(count=st.integers(1, 4))
    def append(self, count: int) -> None:
        appended, self.queue = self.queue[:count], self.queue[count:]
        changes = [change for decision, _ in appended for change in decision.changes]
        starts = [decision.start_offset for decision, _ in appended if decision.start_offset is not None]
        states = delta_states(self.image, self.partition, changes)
        offset = self.log_end_offset
        self.grow_by_control()
        if starts:
            checkpoint = self.image.to_checkpoint(
                "group",
                checkpoint_epoch=self.image.checkpoint_epoch + 1,
                decided_at_ms=self.now_ms,
                leader_epoch=0,
                start_offset=max(starts),
                changes=states,
            )
            self.image.replay_checkpoint(checkpoint, offset)
            self.recorded = [(checkpoint, offset)]
        else:
            delta = ShareDelta(
                "group", 1, self.image.checkpoint_epoch, self.now_ms, self.image.last_control_offset, states
            )
            self.image.replay_delta(delta, offset)
            self.recorded.append((delta, offset))
        for decision, naive_decision in appended:
            spso = self.partition.spso
            outcome = self.partition.complete(decision)
            self.naive.complete(naive_decision)
            assert outcome.spso_moved == (self.partition.spso > spso)

    @precondition(lambda self: bool(self.queue))
    @rule(count=st.integers(1, 2))
    def append_fails(self, count: int) -> None:
        failed, self.queue = self.queue[:count], self.queue[count:]
        for decision, naive_decision in failed:
            self.partition.abort(decision)
            self.naive.abort(naive_decision)
            self.has_lost_log_start |= decision.start_offset is not None

    @invariant()
    def both_agree(self) -> None:
        assert self.partition.spso == self.naive.spso
        assert self.partition.speo == self.naive.speo
        assert self.partition.in_flight_count == self.naive.window()
        projection = self.naive.projection()
        live = self.partition.durable_ranges(self.partition.spso, self.partition.speo)
        assert spread(live, self.naive.control) == projection
        waiting = self.naive.waiting()
        assert dues(live, self.naive.control) == waiting
        assert self.partition.waiting_count == len(waiting)
        deadline_ms = self.partition.next_deadline_ms()
        assert not waiting or (deadline_ms is not None and deadline_ms <= min(waiting.values()))
        final = [state for state, _ in projection.values() if state not in (0, 1)]
        assert self.partition.delivery_complete_count == len(final)
        unfinished = [offset for offset, (state, _) in projection.items() if state in (0, 1)]
        for offset in (self.naive.spso, (self.naive.spso + self.naive.speo) // 2, self.naive.speo):
            assert self.partition.lag(offset) == sum(one < offset for one in unfinished)

    @rule()
    def inspect(self) -> None:
        """Each record from the log's start to its end is shown once, in its state, with its holder."""
        bounds = InspectionBounds(0, self.log_start_offset, self.log_end_offset, self.log_end_offset)
        seen: list[int] = []
        for one in self.partition.inspect(self.limits, bounds):
            for offset in self.naive.data(one.first_offset, one.last_offset):
                seen.append(offset)
                if one.state in (DescribedState.PASSED, DescribedState.NEW):
                    assert (offset < self.naive.spso) == (one.state is DescribedState.PASSED)
                    assert not self.naive.spso <= offset < self.naive.speo
                    continue
                record = self.naive.records[offset]
                found = (int(one.state), one.delivery_count, one.owner)
                assert found == (int(record.state), record.delivery_count, record.owner)
                assert (one.wait is Wait.RECORDING) == (record.target is not None or record.is_unrecorded)
                if record.owner is not None:
                    assert one.lock_deadline_ms == record.lock_deadline_ms
        assert seen == self.naive.data(self.log_start_offset, self.log_end_offset - 1)

    @invariant()
    def spso_never_goes_back(self) -> None:
        assert self.partition.spso >= self.highest_spso
        self.highest_spso = self.partition.spso

    @invariant()
    def what_is_recorded_is_the_projection_of_what_lives(self) -> None:
        assert self.image.end_offset <= max(self.partition.speo, self.image.start_offset)
        if self.queue or self.partition.has_unrecorded:
            return
        recorded = spread(self.image.ranges, self.naive.control)
        if not self.has_lost_log_start:
            assert all(offset >= self.partition.spso for offset in recorded)
        live = self.partition.durable_ranges(self.partition.spso, self.image.end_offset - 1)
        assert spread(live, self.naive.control) == {
            offset: state for offset, state in recorded.items() if offset >= self.partition.spso
        }
        # Of a record that does not wait any more, the recorded due time has passed.
        recorded_dues = dues(self.image.ranges, self.naive.control)
        assert dues(live, self.naive.control).items() <= recorded_dues.items()

    @rule(
        member=st.sampled_from(MEMBERS),
        records_max=st.sampled_from([5, 50]),
        mode=st.sampled_from(AcquireMode),
        skipped=st.integers(0, 11),
        length=st.integers(1, 12),
        ack_type=RECORD_STATES,
    )
    def work(
        self, member: str, records_max: int, mode: AcquireMode, skipped: int, length: int, ack_type: int
    ) -> None:
        """The usual course: records are fetched, some of them acknowledged, and that is recorded."""
        self.produce([2, 3, 1, 2, 4])
        self.fetch(member, records_max, 4, mode, is_cut_short=False)
        if self.naive.held():
            self.acknowledge_held(skipped, length, ack_type, single=False)
        while self.queue:
            self.append(4)

    @precondition(lambda self: bool(self.image.ranges))
    @crash_rule
    def crash(self, member: str, records_max: int, batch_size: int, mode: AcquireMode) -> None:
        """The start offset may go back to the recorded one, but not below the log's."""
        self.image = self.recovered()
        self.partition = self.new_partition(self.image)
        self.naive.restart(self.image.start_offset, self.image.end_offset, self.image.ranges, self.now_ms)
        self.queue.clear()
        self.highest_spso = self.partition.spso
        self.has_lost_log_start = self.image.start_offset < self.log_start_offset
        self.follow_log_start()
        self.fetch(member, records_max, batch_size, mode, is_cut_short=False)

    def teardown(self) -> None:
        """A broker that starts on the recorded deltas knows the image's state, and no record is held."""
        recovered = self.recovered()
        partition = self.new_partition(recovered)
        live = partition.durable_ranges(partition.spso, partition.speo)
        assert spread(live, self.naive.control) == {
            offset: state
            for offset, state in spread(recovered.ranges, self.naive.control).items()
            if offset >= partition.spso
        }
        assert_only_waits(partition)

    def recovered(self) -> ShareStateImage:
        """The image after a restart, built from the recorded changes: the same."""
        recovered = ShareStateImage(self.control_runs)
        for record, offset in self.recorded:
            if isinstance(record, ShareCheckpoint):
                recovered.replay_checkpoint(record, offset)
            else:
                recovered.replay_delta(record, offset)
        assert recovered.ranges == self.image.ranges
        assert (recovered.start_offset, recovered.end_offset) == (
            self.image.start_offset,
            self.image.end_offset,
        )
        assert recovered.delivery_complete_count == self.image.delivery_complete_count
        return recovered


TestSharePartitionModel = SharePartitionMachine.TestCase
TestSharePartitionModel.settings = settings(
    max_examples=200,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
