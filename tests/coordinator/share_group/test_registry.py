"""Replay by the registry: the group of each record, and records that compaction leaves without a group."""

import pytest

from barnabas.coordinator.share_group.record_factory import group_tombstones, member_tombstones
from barnabas.coordinator.share_group.registry import ShareGroupRegistry
from barnabas.protocol.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupRecord,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from barnabas.runtime.moment import written_at
from tests.coordinator.share_group.simulated_coordinator import GROUP, TOPIC, Simulation


def _registry(*records: ShareGroupRecord) -> ShareGroupRegistry:
    registry = ShareGroupRegistry("share", max_groups=10, other_group_type=lambda _: None)
    for record in records:
        registry.replay(record, written_at(7))
    return registry


@pytest.mark.parametrize("record", [*member_tombstones(GROUP, "a"), *group_tombstones(GROUP)])
def test_tombstones_of_unknown_groups_are_ignored(record: ShareGroupRecord) -> None:
    assert _registry(record).get(GROUP) is None


@pytest.mark.parametrize("record", member_tombstones(GROUP, "a"))
def test_tombstones_of_unknown_members_are_ignored(record: ShareGroupRecord) -> None:
    group_record = (
        ShareGroupMetadataKey(group_id=GROUP),
        ShareGroupMetadataValue(group_epoch=9, metadata_hash=1),
    )
    registry = _registry(group_record, record)
    assert registry.existing(GROUP).members == {}
    assert registry.existing(GROUP).group_epoch == 9


def test_a_members_epochs_may_come_before_its_metadata() -> None:
    registry = _registry(
        (
            ShareGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a"),
            ShareGroupCurrentMemberAssignmentValue(
                member_epoch=5, previous_member_epoch=4, state=0, assigned_partitions=()
            ),
        ),
        (
            ShareGroupMemberMetadataKey(group_id=GROUP, member_id="a"),
            ShareGroupMemberMetadataValue(
                rack_id=None, client_id="c", client_host="h", subscribed_topic_names=(TOPIC,)
            ),
        ),
    )
    member = registry.existing(GROUP).members["a"]
    assert (member.member_epoch, member.previous_member_epoch, member.client_id) == (5, 4, "c")
    assert registry.groups_of_topic(TOPIC) == {GROUP}


def test_the_target_assignments_epoch_and_time_are_replayed_and_deleted() -> None:
    key = ShareGroupTargetAssignmentMetadataKey(group_id=GROUP)
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=10, assignment_timestamp_ms=1_700_000_000_000
    )
    registry = _registry((key, value))
    group = registry.existing(GROUP)
    assert (group.assignment_epoch, group.assigned_at_ms) == (10, 7)
    registry.replay((key, None), written_at(8))
    assert (group.assignment_epoch, group.assigned_at_ms) == (-1, None)


def test_groups_are_found_by_topic_as_long_as_a_member_subscribes() -> None:
    simulation = Simulation()
    simulation.join("a", TOPIC, "other")
    simulation.join("b", TOPIC)
    assert (simulation.replayed().groups_of_topic(TOPIC), simulation.replayed().groups_of_topic("other")) == (
        {GROUP},
        {GROUP},
    )
    simulation.leave("a")
    assert (
        len(simulation.replayed().groups_of_topic(TOPIC)),
        simulation.replayed().groups_of_topic("other"),
    ) == (
        1,
        (),
    )


def test_a_value_of_another_kind_than_its_key_is_our_bug() -> None:
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=1)
    with pytest.raises(AssertionError):
        _registry((ShareGroupMetadataKey(group_id=GROUP), value))


def test_a_group_deleted_with_its_members_still_listed_leaves_no_trace() -> None:
    simulation = Simulation()
    simulation.join("a")
    registry = simulation.replayed()
    for record in group_tombstones(GROUP):
        registry.replay(record, written_at(7))
    assert registry.get(GROUP) is None
    assert registry.groups_of_topic(TOPIC) == ()
