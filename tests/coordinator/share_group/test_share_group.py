"""A group's state after the replay of each type of record."""

from uuid import UUID

from barnabas.coordinator.share_group.share_group import (
    ShareGroup,
    ShareGroupState,
    StatePartitions,
    TopicPartitionSet,
    subscriber_counts_after,
)
from barnabas.protocol.share_group_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from barnabas.protocol.topic_partitions import TopicPartitions

TOPIC_ID = UUID(int=7)
PARTITIONS = (TopicPartitions(topic_id=TOPIC_ID, partitions=(1, 0)),)


def _metadata(*topics: str) -> ShareGroupMemberMetadataValue:
    return ShareGroupMemberMetadataValue(
        rack_id="r", client_id="c", client_host="h", subscribed_topic_names=topics
    )


def test_a_new_group_is_empty_at_epoch_1_and_was_never_assigned() -> None:
    group = ShareGroup("group", 5)
    assert (group.group_epoch, group.assignment_epoch, group.assigned_at_ms) == (1, 1, None)
    assert (group.state, group.incarnation) == (ShareGroupState.EMPTY, 5)


def test_group_metadata_sets_epoch_hash_and_incarnation() -> None:
    group = ShareGroup("group")
    group.replay_share_group_metadata(
        ShareGroupMetadataValue(group_epoch=9, metadata_hash=-3, group_incarnation=8)
    )
    assert (group.group_epoch, group.metadata_hash, group.incarnation) == (9, -3, 8)


def test_a_member_comes_with_its_metadata_and_goes_with_its_tombstone() -> None:
    group = ShareGroup("group")
    group.replay_member_metadata("a", _metadata("x", "y"))
    assert group.state is ShareGroupState.STABLE
    assert group.members["a"].member_epoch == 0
    assert group.subscriber_counts == {"x": 1, "y": 1}
    group.replay_member_metadata("b", _metadata("x"))
    group.replay_member_metadata("a", None)
    group.replay_member_metadata("a", None)
    assert group.subscriber_counts == {"x": 1}


def test_a_tombstone_of_the_current_assignment_takes_epochs_and_partitions() -> None:
    group = ShareGroup("group")
    group.replay_member_metadata("a", _metadata("x"))
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=4, previous_member_epoch=3, state=0, assigned_partitions=PARTITIONS
    )
    group.replay_current_member_assignment("a", value)
    member = group.members["a"]
    assert (member.member_epoch, member.previous_member_epoch, member.assigned) == (4, 3, {TOPIC_ID: (0, 1)})
    group.replay_current_member_assignment("a", None)
    member = group.members["a"]
    assert (member.member_epoch, member.previous_member_epoch, member.assigned) == (-1, -1, {})


def test_targets_are_kept_per_member() -> None:
    group = ShareGroup("group")
    group.replay_target_assignment_member(
        "a", ShareGroupTargetAssignmentMemberValue(topic_partitions=PARTITIONS)
    )
    assert group.target == {"a": {TOPIC_ID: (0, 1)}}
    group.replay_target_assignment_member("a", None)
    assert group.target == {}


def test_state_partitions_are_replaced_as_a_whole() -> None:
    group = ShareGroup("group")
    info = TopicPartitionsInfo(topic_id=TOPIC_ID, topic_name="x", partitions=(2, 1))
    gone = TopicInfo(topic_id=UUID(int=8), topic_name="y")
    group.replay_state_partition_metadata(
        ShareGroupStatePartitionMetadataValue(
            initializing_topics=(), initialized_topics=(info,), deleting_topics=(gone,)
        )
    )
    assert group.state_partitions == StatePartitions(
        {TOPIC_ID: TopicPartitionSet("x", (1, 2))}, {}, {UUID(int=8): "y"}
    )
    group.replay_state_partition_metadata(None)
    assert group.state_partitions == StatePartitions()


def test_any_record_of_a_settled_group_makes_it_look_again() -> None:
    group = ShareGroup("group")
    group.soft.settled = True
    group.replay_member_metadata("a", _metadata("x"))
    assert not group.soft.settled


def test_subscriber_counts_follow_one_members_change() -> None:
    counts = {"x": 2, "y": 1}
    assert subscriber_counts_after(counts, frozenset("xy"), frozenset("xz")) == {"x": 2, "z": 1}
    assert counts == {"x": 2, "y": 1}
