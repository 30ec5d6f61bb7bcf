"""The share-partition with an order of keys against the naive one, under the operations of
`test_share_partition_model`, with changes of the order.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from barnabas.protocol.delivery_state import RecordState
from barnabas.protocol.record_inspection import Wait
from barnabas.protocol.record_keys import NO_KEY, KeyHashes
from barnabas.share.partition.inspection import InspectionBounds
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import AcquireMode
from tests.share.partition.naive_order import NaiveOrder
from tests.share.partition.naive_partition import NaiveDecision, NaiveDemand, NaivePartition
from tests.share.partition.test_share_partition_model import (
    BACKOFFS,
    MEMBERS,
    SharePartitionMachine,
    crash_rule,
    fetch_rule,
)

KEYS = st.sampled_from([None, 1, 2, 3, 4, 5, 6])


class OrderedPartitionMachine(SharePartitionMachine):
    """The records of the log have keys; some batches are too large for theirs to be known."""

    naive: NaiveOrder

    def new_naive(self) -> NaivePartition:
        return NaiveOrder()

    @initialize(
        limit=st.sampled_from([2, 3, 5, 10]),
        locks_max=st.sampled_from([5, 12, 40]),
        runs=st.integers(0, 3),
        backoff_ms=BACKOFFS,
        run_max=st.sampled_from([1, 1, 3]),
    )
    def start(self, limit: int, locks_max: int, runs: int, backoff_ms: int = 0, run_max: int = 1) -> None:
        super().start(limit, locks_max, runs, backoff_ms)
        self.limits = self.limits._replace(key_run_max=run_max)

    @rule(
        batches=st.lists(st.lists(KEYS, min_size=1, max_size=8), min_size=1, max_size=4),
        unknown=st.integers(0, 8),
    )
    def produce_keys(self, batches: list[list[int | None]], unknown: int) -> None:
        for index, keys in enumerate(batches):
            if index == unknown:
                self.naive.unknown.add(self.log_end_offset)
            self.naive.keys |= dict(enumerate(keys, self.log_end_offset))
            self.log.append((self.log_end_offset, self.log_end_offset + len(keys) - 1))
            self.log_end_offset += len(keys)

    def produce(self, sizes: list[int]) -> None:
        self.produce_keys([[one * 5 % 7 or None for one in range(size)] for size in sizes], 9)

    @rule(run_max=st.sampled_from([0, 1, 3]))
    def change_the_order(self, run_max: int) -> None:
        self.limits = self.limits._replace(key_run_max=run_max)

    @fetch_rule
    def fetch(
        self, member: str, records_max: int, batch_size: int, mode: AcquireMode, is_cut_short: bool
    ) -> None:
        self.awaits_locks = not self.naive.follows(self.limits)
        super().fetch(member, records_max, batch_size, mode, is_cut_short)
        if self.naive.has_order and not self.awaits_locks:
            assert self.partition.keys_until == self.naive.known_until

    def keys_of_read(self, batches: list[tuple[int, int]]) -> Sequence[BatchKeys]:
        until = self.partition.keys_until
        return [] if until is None else [self.keys_of(one) for one in batches if one[1] >= until]

    def expected(
        self, covered: set[int], batches: list[tuple[int, int]], reads: list[int], demand: NaiveDemand
    ) -> tuple[dict[int, int], NaiveDecision]:
        if self.awaits_locks:
            assert not reads
        if not batches:
            return {}, NaiveDecision()
        return super().expected(covered, batches, reads, demand)

    def keys_of(self, batch: tuple[int, int]) -> BatchKeys:
        base_offset, last_offset = batch
        if base_offset in self.naive.unknown:
            return BatchKeys(base_offset, last_offset, None)
        keys = [self.naive.keys[offset] for offset in range(base_offset, last_offset + 1)]
        hashes = [NO_KEY if key is None else key for key in keys]
        return BatchKeys(base_offset, last_offset, KeyHashes(list(range(len(keys))), hashes))

    @rule(
        member=st.sampled_from(MEMBERS),
        records_max=st.sampled_from([2, 4, 50]),
        keys=st.lists(st.sampled_from([1, 1, 2, 3, None]), min_size=4, max_size=8),
        is_unknown=st.booleans(),
        acknowledged=st.lists(st.tuples(st.integers(0, 7), st.sampled_from([1, 2, 2, 3])), max_size=3),
        fails=st.booleans(),
    )
    def work_on_runs(
        self,
        member: str,
        records_max: int,
        keys: list[int | None],
        is_unknown: bool,
        acknowledged: list[tuple[int, int]],
        fails: bool,
    ) -> None:
        """A member gets several records of one key, and acknowledges single ones, while others wait."""
        self.produce_keys([keys], 0 if is_unknown else 1)
        self.fetch(member, records_max, 4, AcquireMode.RECORD_LIMIT, is_cut_short=False)
        for pick, ack_type in acknowledged:
            if self.naive.held():
                self.acknowledge_held(pick, 1, ack_type, single=True)
        if self.queue:
            if fails:
                self.append_fails(1)
            else:
                self.append(1)
        self.fetch(member, records_max, 4, AcquireMode.RECORD_LIMIT, is_cut_short=False)

    @rule()
    def inspect_waits(self) -> None:
        """Records that wait for their key are shown as such."""
        if not self.naive.has_order or not self.naive.is_ordered_by(self.limits):
            return
        known = self.naive.data(self.naive.spso, min(self.naive.known_until, self.naive.speo) - 1)
        may_go = self.naive.may_go(set(known))
        bounds = InspectionBounds(self.naive.spso, self.log_start_offset, 0, 0)
        waiting = {
            offset
            for one in self.partition.inspect(self.limits, bounds)
            if one.wait is Wait.KEY
            for offset in self.naive.data(one.first_offset, one.last_offset)
            if offset < self.naive.known_until
        }
        available = {one for one in known if self.naive.records[one].may_be_taken()}
        assert waiting == available.difference(may_go)

    @invariant()
    def no_key_is_held_twice_or_before_its_turn(self) -> None:
        if not self.naive.run_max or self.limits.key_run_max != self.naive.run_max:
            return
        held: dict[int, list[int]] = {}
        for offset in self.naive.data(self.naive.spso, self.naive.speo - 1):
            record, key = self.naive.records[offset], self.naive.keys[offset]
            is_alone = self.naive.alone is not None and offset >= self.naive.alone[0]
            if record.state is RecordState.ACQUIRED and key is not None and not is_alone:
                held.setdefault(key, []).append(offset)
        for offsets in held.values():
            assert len(offsets) <= self.naive.run_max
            assert len({self.naive.records[one].owner for one in offsets}) == 1

    @crash_rule
    def crash(self, member: str, records_max: int, batch_size: int, mode: AcquireMode) -> None:
        """A restarted leader has no order until its first fetch."""
        self.naive.run_max, self.naive.alone = 0, None
        self.naive.taken_back.clear()
        super().crash(member, records_max, batch_size, mode)


TestOrderedPartitionModel = OrderedPartitionMachine.TestCase
TestOrderedPartitionModel.settings = settings(
    max_examples=200,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
