"""Share groups whose assignor is `load`: when a look comes, when it moves partitions, and its records."""

from barnabas.protocol.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from tests.coordinator.share_group.simulated_coordinator import GROUP, TOPIC, Simulation, durable_state

INTERVAL_MS = 5_000
"""The interval of heartbeats, and of looks."""


class Balanced(Simulation):
    """A group of four members and four partitions, each with one; no records yet. Results name a member by
    the partition that it has at first.
    """

    def __init__(self, assignor: str = "load") -> None:
        super().__init__()
        self.configs.share_assignor = assignor
        self.configs.session_timeout = 10_000_000
        self.topic_id = self.catalog.create(TOPIC, 4)
        for partition in range(4):
            self.produce(partition, 0)
        self.epochs: dict[str, int] = {}
        for member_id in ("a", "b", "c", "d"):
            self.advance(1_000)
            self.epochs[member_id] = self.join(member_id).member_epoch
        self._beat()
        self.first = {
            member_id: assignment[self.topic_id][0] for member_id, assignment in self.group().target.items()
        }
        assert sorted(self.first.values()) == [0, 1, 2, 3]

    def produce(self, partition: int, count: int) -> None:
        self.loads.produce(self.topic_id, partition, count)

    def finish(self, partition: int, count: int) -> None:
        self.loads.finish(self.topic_id, partition, count)

    def beat(self) -> dict[int, tuple[int, ...]]:
        """One heartbeat of each member; returns the assignments that changed."""
        return {self.first[member_id]: partitions for member_id, partitions in self._beat().items()}

    def _beat(self) -> dict[str, tuple[int, ...]]:
        told: dict[str, tuple[int, ...]] = {}
        for member_id, epoch in self.epochs.items():
            result = self.heartbeat(member_id, epoch)
            self.epochs[member_id] = result.member_epoch
            if result.assignment is not None:
                told[member_id] = result.assignment.get(self.topic_id, ())
        return told

    def targets(self) -> dict[int, tuple[int, ...]]:
        target = self.group().target
        return {self.first[member_id]: target[member_id].get(self.topic_id, ()) for member_id in target}

    def member(self, first_partition: int) -> str:
        return next(member_id for member_id, first in self.first.items() if first == first_partition)

    def looks(self, count: int) -> None:
        self.advance(count * INTERVAL_MS)

    def is_looked_at(self) -> bool:
        """Whether a look comes in the next interval."""
        before = self.loads.question_count
        self.looks(1)
        return self.loads.question_count > before


def test_a_backlog_that_lasts_brings_members_to_its_partition() -> None:
    group = Balanced()
    group.looks(2)
    epoch = group.group().group_epoch
    group.produce(0, 10_000)
    group.looks(1)
    assert group.group().group_epoch == epoch, "the records have not waited for a whole interval"
    group.looks(1)
    assert group.group().group_epoch == group.group().assignment_epoch == epoch + 1
    assert group.targets() == {0: (0,), 1: (0, 1), 2: (0, 2), 3: (0, 3)}
    # The first member has the new epoch, too, and keeps its partition.
    assert group.beat() == {1: (0, 1), 2: (0, 2), 3: (0, 3)}
    assert set(group.epochs.values()) == {epoch + 1}


def test_members_go_back_when_the_backlog_is_gone() -> None:
    group = Balanced()
    group.looks(2)
    group.produce(0, 10_000)
    group.looks(2)
    group.beat()
    group.finish(0, 10_000)
    group.looks(1)
    assert group.beat() == {1: (1,), 2: (2,), 3: (3,)}


def test_a_new_target_is_written_in_kafkas_records() -> None:
    group = Balanced()
    group.looks(2)
    group.produce(0, 10_000)
    group.looks(1)
    before = len(group.log.batches)
    group.looks(1)
    assert [type(key) for key, _ in group.log.records(before)] == [
        ShareGroupMetadataKey,
        ShareGroupTargetAssignmentMemberKey,
        ShareGroupTargetAssignmentMemberKey,
        ShareGroupTargetAssignmentMemberKey,
        ShareGroupTargetAssignmentMetadataKey,
    ]
    before = len(group.log.batches)
    group.beat()
    assert {type(key) for key, _ in group.log.records(before)} == {ShareGroupCurrentMemberAssignmentKey}
    assert group.coordinator.rebalance_count == group.group().group_epoch - 1


def test_partitions_that_keep_up_move_nothing() -> None:
    group = Balanced()
    group.looks(2)
    written = len(group.log.batches)
    for turn in range(50):
        busy = turn % 4
        group.produce(busy, 5_000)
        group.looks(1)
        assert group.beat() == {}
        group.finish(busy, 5_000)
    assert len(group.log.batches) == written


def test_a_steady_skew_moves_members_once() -> None:
    group = Balanced()
    group.looks(2)
    for _ in range(20):
        group.produce(0, 3_000)
        group.looks(1)
        group.beat()
        group.finish(0, 1_000)
    moved = group.group().group_epoch
    for _ in range(20):
        group.produce(0, 3_000)
        group.looks(1)
        assert group.beat() == {}
        group.finish(0, 2_900)
    assert group.group().group_epoch == moved


def test_a_slow_record_in_flight_counts_until_it_is_finished() -> None:
    group = Balanced()
    group.produce(0, 10)
    group.looks(2)
    assert group.beat() == {1: (0, 1), 2: (0, 2), 3: (0, 3)}


def test_a_partition_that_no_member_has_fetched_from_keeps_its_last_backlog() -> None:
    group = Balanced()
    group.looks(2)
    group.produce(0, 10_000)
    group.looks(2)
    group.beat()
    group.loads.forget(group.topic_id, 0)
    group.looks(3)
    assert group.beat() == {}


def test_looks_come_at_the_interval_of_heartbeats_and_not_before_that_of_assignments() -> None:
    group = Balanced()
    group.configs.assignment_interval = 12_000
    group.produce(0, 10_000)
    # The first look is five seconds after the first join, so in two seconds; the next one twelve later.
    epoch = group.group().group_epoch
    group.advance(13_999)
    assert group.group().group_epoch == epoch
    group.advance(1)
    assert group.group().group_epoch == epoch + 1


def test_a_change_of_the_members_is_left_to_their_heartbeats() -> None:
    group = Balanced()
    group.looks(2)
    group.produce(0, 10_000)
    group.looks(1)
    group.leave(group.member(3))
    del group.epochs[group.member(3)]
    epoch = group.group().group_epoch
    group.looks(3)
    assert (group.group().group_epoch, group.group().assignment_epoch) == (epoch, epoch - 1)
    group.beat()
    partitions = [partition for target in group.targets().values() for partition in target]
    assert sorted(partitions) == [0, 0, 0, 1, 2, 3]
    assert group.group().assignment_epoch == epoch


def test_a_member_that_joins_before_the_second_look_is_assigned_by_the_whole_lag() -> None:
    group = Balanced()
    group.produce(3, 10_000)
    group.advance(1_000)
    assert group.join("e").assignment == {group.topic_id: (3,)}


def test_a_group_with_simple_is_never_looked_at() -> None:
    group = Balanced("simple")
    group.produce(0, 10_000)
    before = group.group().group_epoch
    group.looks(10)
    assert group.beat() == {}
    assert group.group().group_epoch == before
    assert group.loads.question_count == 0


def test_a_group_that_begins_to_use_load_is_looked_at_at_once() -> None:
    group = Balanced("simple")
    group.produce(0, 10_000)
    group.configs.share_assignor = "load"
    group.groups.on_settings_changed([GROUP, "absent"])
    group.looks(1)
    assert group.beat() == {1: (0, 1), 2: (0, 2), 3: (0, 3)}
    assert group.coordinator.describe(GROUP).assignor_name == "load"


def test_a_group_that_goes_back_to_simple_gets_its_target_at_once_and_no_more_looks() -> None:
    group = Balanced()
    group.produce(0, 10_000)
    group.looks(2)
    group.beat()
    group.configs.share_assignor = "simple"
    group.groups.on_settings_changed([GROUP])
    group.advance(0)
    group.beat()
    assert sorted(group.targets().values()) == [(0,), (1,), (2,), (3,)]
    assert not group.is_looked_at()


def test_a_setting_that_goes_to_simple_and_back_changes_nothing() -> None:
    group = Balanced()
    group.produce(0, 10_000)
    group.looks(2)
    group.beat()
    for assignor in ("simple", "load"):
        group.configs.share_assignor = assignor
        group.groups.on_settings_changed([GROUP])
    group.looks(2)
    assert group.beat() == {}


def test_a_restarted_coordinator_gives_a_group_that_goes_back_to_simple_its_target() -> None:
    group = Balanced()
    group.produce(0, 10_000)
    group.looks(2)
    group.beat()
    group.restart()
    group.configs.share_assignor = "simple"
    group.groups.on_settings_changed([GROUP])
    group.advance(0)
    assert sorted(group.targets().values()) == [(0,), (1,), (2,), (3,)]


def test_an_empty_group_is_looked_at_no_more_until_a_member_joins() -> None:
    group = Balanced()
    for member_id in group.first:
        group.leave(member_id)
    assert not group.is_looked_at()
    group.join("a")
    assert group.is_looked_at()


def test_a_restarted_coordinator_keeps_the_target_and_looks_again() -> None:
    group = Balanced()
    group.looks(2)
    group.produce(0, 10_000)
    group.looks(2)
    group.beat()
    state = durable_state(group.group())
    group.restart()
    group.looks(3)
    assert group.beat() == {}
    assert durable_state(group.group()) == state
    group.finish(0, 10_000)
    group.looks(1)
    assert group.beat() == {1: (1,), 2: (2,), 3: (3,)}


def test_a_look_whose_write_fails_is_repeated_at_the_next_one() -> None:
    group = Balanced()
    group.looks(2)
    group.produce(0, 10_000)
    group.looks(1)
    epoch = group.group().group_epoch
    group.log.failing = True
    group.looks(1)
    group.log.failing = False
    assert group.group().group_epoch == epoch
    group.looks(1)
    assert group.group().group_epoch == epoch + 1
