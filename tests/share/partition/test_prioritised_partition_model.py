"""The share-partition with priorities against the naive one, under the operations of
`test_ordered_partition_model`, with and without an order of keys.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import AcquireMode, PriorityLimits
from tests.share.partition.core import Plan
from tests.share.partition.naive_partition import NaiveDecision, NaivePartition
from tests.share.partition.naive_priorities import NaivePriorities
from tests.share.partition.test_ordered_partition_model import OrderedPartitionMachine
from tests.share.partition.test_share_partition_model import BACKOFFS, MEMBERS, crash_rule

HEADER_NAME = "priority"
PRIORITIES = st.sampled_from([0, 0, 0, 1, 5, 9])


class PrioritisedPartitionMachine(OrderedPartitionMachine):
    """The records of the log have priorities, by a pattern that changes."""

    urgent: NaivePriorities
    pattern: list[int]

    def new_naive(self) -> NaivePartition:
        self.urgent = NaivePriorities()
        return self.urgent

    @initialize(
        limit=st.sampled_from([2, 3, 5, 10]),
        locks_max=st.sampled_from([5, 12, 40]),
        runs=st.integers(0, 3),
        backoff_ms=BACKOFFS,
        run_max=st.sampled_from([0, 0, 1, 3]),
        window_records=st.sampled_from([1, 4, 40]),
        overtaken_max=st.sampled_from([1, 3, 40]),
    )
    def start(
        self,
        limit: int,
        locks_max: int,
        runs: int,
        backoff_ms: int = 0,
        run_max: int = 1,
        window_records: int = 40,
        overtaken_max: int = 40,
    ) -> None:
        super().start(limit, locks_max, runs, backoff_ms, run_max)
        self.limits = self.limits._replace(
            priority=PriorityLimits(HEADER_NAME, window_records, overtaken_max)
        )
        self.pattern = [0, 5]

    @rule(pattern=st.lists(PRIORITIES, min_size=1, max_size=7))
    def change_the_urgency(self, pattern: list[int]) -> None:
        self.pattern = pattern

    @rule(header_name=st.sampled_from(["", HEADER_NAME, HEADER_NAME]))
    def change_the_header(self, header_name: str) -> None:
        self.limits = self.limits._replace(priority=self.limits.priority._replace(header_name=header_name))

    def produce_keys(self, batches: list[list[int | None]], unknown: int) -> None:
        super().produce_keys(batches, unknown)
        pattern = self.pattern
        new = self.urgent.keys.keys() - self.urgent.priorities.keys()
        self.urgent.priorities |= {offset: pattern[offset % len(pattern)] for offset in new}

    def keys_of(self, batch: tuple[int, int]) -> BatchKeys:
        found = super().keys_of(batch)
        if found.keys is None or not self.limits.priority.header_name:
            return found
        if not self.limits.key_run_max:
            found = found._replace(keys=found.keys._replace(hashes=[-1] * len(found.keys.hashes)))
        priorities = bytes(self.urgent.priorities[one] for one in range(batch[0], batch[1] + 1))
        return found._replace(priorities=priorities if any(priorities) else b"")

    def read(self, plan: Plan, *, is_cut_short: bool) -> tuple[list[tuple[int, int]], set[int]]:
        self.urgent.is_chosen = bool(plan.chosen)
        return super().read(plan, is_cut_short=is_cut_short)

    def fetch(
        self, member: str, records_max: int, batch_size: int, mode: AcquireMode, is_cut_short: bool
    ) -> None:
        self.partition.plan_acquire(records_max, self.limits, mode)
        if self.naive.follows(self.limits):
            self._look_ahead(batch_size)
        super().fetch(member, records_max, batch_size, mode, is_cut_short)
        self.note_heads()  # a rule may release the records that it has got

    @rule(
        member=st.sampled_from(MEMBERS),
        patterns=st.lists(st.lists(PRIORITIES, min_size=1, max_size=4), min_size=1, max_size=4),
        records_max=st.sampled_from([1, 2, 3]),
        acknowledged=st.lists(st.tuples(st.integers(0, 7), st.sampled_from([1, 1, 2])), max_size=3),
    )
    def work_by_urgency(
        self,
        member: str,
        patterns: list[list[int]],
        records_max: int,
        acknowledged: list[tuple[int, int]],
    ) -> None:
        """Urgent records come while others wait, and some come again."""
        for pattern in patterns:
            self.pattern = pattern
            self.produce_keys([[None, 1, None, 2]], 9)
            self.fetch(member, records_max, 4, AcquireMode.RECORD_LIMIT, is_cut_short=False)
            self.note_heads()
            for pick, ack_type in acknowledged:
                if self.naive.held():
                    self.acknowledge_held(pick, 1, ack_type, single=True)
            if self.queue:
                self.append(len(self.queue))
                self.note_heads()

    def _look_ahead(self, batch_size: int) -> None:
        ahead = self.partition.plan_look_ahead(self.limits)
        batches, _ = self.read(ahead, is_cut_short=False)
        if not batches:
            return
        assert 0 < len(self.urgent.heads()) < self.limits.priority.window_records
        looked = self.partition.look_ahead(batches, self.keys_of_read(batches), batch_size, self.limits)
        gone = NaiveDecision()
        self.naive.look_further(batches, batch_size, gone)
        assert (looked.gaps is not None) == bool(gone.final_offsets)
        if looked.gaps is not None:
            self.enqueue(looked.gaps, gone)

    @crash_rule
    def crash(self, member: str, records_max: int, batch_size: int, mode: AcquireMode) -> None:
        self.urgent.header_name = ""
        super().crash(member, records_max, batch_size, mode)

    @invariant()
    def note_heads(self) -> None:
        self.urgent.note_heads()


TestPrioritisedPartitionModel = PrioritisedPartitionMachine.TestCase
TestPrioritisedPartitionModel.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
