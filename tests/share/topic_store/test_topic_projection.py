"""The state written to the state topic, read again, is the recorded form of the live state.

The machine of `test_share_partition_model` runs under random operations, with its decisions written as
batches for the share coordinator in place of control records: appends may fail, and several decisions may
share one.
"""

from __future__ import annotations

from typing import cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from barnabas.protocol.share_state_records import ShareUpdateValue
from barnabas.share.topic_store.topic_state_store import image_of, state_write
from barnabas.storage.format.share_partition_state import (
    initial_state,
    update_record,
)
from tests.coordinator.share_state.share_state_bench import KEY
from tests.share.partition.test_share_partition_model import (
    BACKOFFS,
    SharePartitionMachine,
    assert_only_waits,
    dues,
    spread,
)

_SNAPSHOT_EVERY = 5
"""Writes; every second one is an update."""


class TopicMachine(SharePartitionMachine):
    """The log has no control records; the recorded state belongs to the coordinator."""

    @initialize(
        limit=st.sampled_from([2, 3, 5, 10]),
        locks_max=st.sampled_from([5, 12, 40]),
        runs=st.just(0),
        backoff_ms=BACKOFFS,
    )
    def start(self, limit: int, locks_max: int, runs: int, backoff_ms: int = 0) -> None:
        super().start(limit, locks_max, runs, backoff_ms)
        self.state = initial_state(0, 0, 0, 0)
        self.written_count = 0

    def grow_by_control(self) -> None:
        """Nothing, because the state is elsewhere."""

    @precondition(lambda self: bool(cast("TopicMachine", self).queue))
    @rule(count=st.integers(1, 4))
    def append(self, count: int) -> None:
        appended, self.queue = self.queue[:count], self.queue[count:]
        write = state_write(
            self.partition,
            [decision for decision, _ in appended],
            self.control_runs,
            state_epoch=0,
            leader_epoch=0,
        )
        self.written_count += 1
        if self.written_count % _SNAPSHOT_EVERY:
            _, update = update_record(KEY, 0, 0, write)
            assert isinstance(update, ShareUpdateValue)
            self.state = self.state.updated(update)
        else:
            self.state = self.state.rewritten(write, 0, 0)
        assert self.state.start_offset == max(self.partition.spso, write.start_offset)
        for decision, naive_decision in appended:
            self.partition.complete(decision)
            self.naive.complete(naive_decision)
        passed = self.partition.spso - write.start_offset
        assert write.delivery_complete_count == passed + self.partition.delivery_complete_count

    @invariant()
    def what_is_recorded_is_the_projection_of_what_lives(self) -> None:
        if self.queue or self.partition.has_unrecorded:
            return
        image = image_of(self.state, self.control_runs)
        recorded = self.new_partition(image)
        # Holes that the start has passed without a record of them are found again.
        assert recorded.spso <= self.partition.spso
        first_offset, last_offset = self.partition.spso, recorded.speo - 1
        holes = set(range(first_offset, last_offset + 1)) - self.known_offsets()
        live = self.partition.durable_ranges(first_offset, last_offset)
        again = recorded.durable_ranges(first_offset, last_offset)
        assert spread(live, holes) == spread(again, holes)
        assert dues(live, holes).items() <= dues(image.ranges, holes).items()

    def known_offsets(self) -> set[int]:
        """The offsets of records in the log, and of those with a recorded state."""
        recorded = [(one.first_offset, one.last_offset) for one in self.state.state_batches]
        return {offset for first, last in (*self.log, *recorded) for offset in range(first, last + 1)}

    def teardown(self) -> None:
        """No member holds a record after a start."""
        recorded = self.new_partition(image_of(self.state, self.control_runs))
        assert_only_waits(recorded)


TestTopicProjection = TopicMachine.TestCase
TestTopicProjection.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
