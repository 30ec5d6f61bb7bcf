"""Groups without members are deleted after their time, with their state, and no other groups."""

from __future__ import annotations

import pytest

from barnabas.coordinator.share_group.empty_groups import (
    DELETIONS_PER_LOOK_MAX,
    LOOK_INTERVAL_MAX_MS,
    EmptyGroups,
)
from barnabas.coordinator.share_group.offsets import TopicOffsets
from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.coordinator.share_group.share_group import ShareGroup
from tests.coordinator.share_group.simulated_coordinator import GROUP, TOPIC, Simulation

HOUR_MS = 3_600_000
RETENTION_MS = 24 * HOUR_MS
LATE_MS = LOOK_INTERVAL_MAX_MS + 1


def simulation(retention_ms: int = RETENTION_MS) -> Simulation:
    made = Simulation(ShareGroupSettings(empty_retention_ms=retention_ms))
    made.catalog.create(TOPIC, 2)
    return made


def emptied(retention_ms: int = RETENTION_MS) -> Simulation:
    """A group that has just lost its one member."""
    made = simulation(retention_ms)
    made.join("member")
    made.leave("member")
    return made


def exists(made: Simulation, group_id: str = GROUP) -> bool:
    return made.coordinator.incarnation(group_id) is not None


def test_an_empty_group_goes_after_its_time_with_its_state() -> None:
    made = emptied()
    made.advance(RETENTION_MS - 1)
    assert exists(made)
    made.advance(LATE_MS)
    assert not exists(made)
    assert sorted(partition for _, _, partition in made.share_state.deleted) == [0, 1]
    assert made.replayed().get(GROUP) is None


def test_by_default_groups_are_kept_for_ever() -> None:
    made = emptied(retention_ms=-1)
    made.advance(30 * RETENTION_MS)
    assert exists(made)
    assert made.coordinator.next_deadline_ms() is None


def test_no_time_at_all_takes_them_with_the_next_look() -> None:
    made = emptied(retention_ms=0)
    made.advance(1)
    assert not exists(made)


def test_a_group_with_a_member_stays() -> None:
    made = simulation()
    member = made.join("member")
    for _ in range(3 * RETENTION_MS // 40_000):
        made.advance(40_000)
        made.heartbeat("member", member.member_epoch)
    assert exists(made)


def test_a_member_that_came_and_went_begins_the_time_anew() -> None:
    made = emptied()
    made.advance(RETENTION_MS - HOUR_MS)
    made.join("another")
    made.leave("another")
    made.advance(RETENTION_MS - HOUR_MS)
    assert exists(made)
    made.advance(HOUR_MS + LATE_MS)
    assert not exists(made)


def test_the_time_counts_from_the_end_of_a_members_session() -> None:
    made = simulation()
    made.join("member")
    made.advance(made.configs.session_timeout + RETENTION_MS - 1)
    assert exists(made)
    made.advance(LATE_MS)
    assert not exists(made)


def test_offsets_set_by_an_administrator_begin_the_time_anew() -> None:
    made = emptied()
    made.advance(RETENTION_MS - HOUR_MS)
    topic_offsets = [TopicOffsets(TOPIC, [(0, 5)])]
    made.coordinator.alter_offsets(GROUP, topic_offsets, wall_ms=made.wall_ms).result()
    made.advance(RETENTION_MS - HOUR_MS)
    assert exists(made)


def test_the_time_begins_anew_with_the_broker() -> None:
    made = emptied()
    made.advance(RETENTION_MS - HOUR_MS)
    made.restart()
    made.advance(RETENTION_MS - 1)
    assert exists(made)
    made.advance(LATE_MS)
    assert not exists(made)


def test_a_group_whose_state_cannot_be_deleted_stays_until_it_can() -> None:
    made = emptied()
    made.share_state.failing_partitions = {1}
    made.advance(RETENTION_MS + 5 * LATE_MS)
    assert exists(made)
    made.share_state.failing_partitions = set()
    made.advance(LATE_MS)
    assert not exists(made)


def test_a_deletion_under_way_is_not_begun_again() -> None:
    made = emptied()
    made.log.held = True
    made.advance(RETENTION_MS + 5 * LATE_MS)
    held = len(made.share_state.deleted)
    made.advance(5 * LATE_MS)
    assert len(made.share_state.deleted) == held


@pytest.mark.parametrize("count", [DELETIONS_PER_LOOK_MAX + 1])
def test_a_bounded_number_is_deleted_at_a_time_and_the_others_later(count: int) -> None:
    made = simulation()
    group_ids = [f"group-{number}" for number in range(count)]
    for group_id in group_ids:
        made.join("member", group_id=group_id)
        made.leave("member", group_id=group_id)
    made.advance(RETENTION_MS)
    assert sum(exists(made, group_id) for group_id in group_ids) == 1
    made.advance(LATE_MS)
    assert not any(exists(made, group_id) for group_id in group_ids)


def looks(count: int, *, endless: bool) -> list[list[str]]:
    """The groups that each of four checks takes, if their deletions fail or never end."""
    empty_groups = EmptyGroups(0)
    empty_groups.begin(0)
    groups = [ShareGroup(f"group-{number:02}") for number in range(count)]
    taken: list[list[str]] = []
    for now_ms in range(1, 5):
        taken.append(empty_groups.due(groups, now_ms))
        for group_id in taken[-1]:
            if not endless:
                empty_groups.ended(group_id)
    return taken


def test_groups_that_cannot_be_deleted_take_turns() -> None:
    first, second, third, fourth = looks(30, endless=False)
    ids = [f"group-{number:02}" for number in range(30)]
    assert first == ids[:20]
    assert second == [*ids[20:], *ids[:10]]
    assert third == ids[10:]
    assert fourth == first


def test_groups_whose_deletion_does_not_end_hold_up_no_other() -> None:
    assert [len(taken) for taken in looks(30, endless=True)] == [20, 10, 0, 0]


def test_groups_that_cannot_be_deleted_keep_no_other_from_going() -> None:
    made = simulation()
    made.share_state.failing_partitions = {1}
    stuck = [f"a-{number:02}" for number in range(DELETIONS_PER_LOOK_MAX)]
    for group_id in stuck:
        made.join("member", group_id=group_id)
        made.leave("member", group_id=group_id)
    made.catalog.create("another", 1)
    topic_offsets = [TopicOffsets("another", [(0, 5)])]
    made.coordinator.alter_offsets("b", topic_offsets, wall_ms=made.wall_ms).result()
    made.advance(RETENTION_MS + 2 * LATE_MS)
    assert all(exists(made, group_id) for group_id in stuck)
    assert not exists(made, "b")
