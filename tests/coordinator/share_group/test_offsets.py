"""AlterShareGroupOffsets and DeleteShareGroupOffsets, in the group coordinator."""

from uuid import UUID

import pytest

from barnabas.coordinator.share_group.offsets import (
    AlteredTopic,
    DeletedTopic,
    PartitionOutcome,
    TopicOffsets,
)
from barnabas.coordinator.share_group.share_group import ShareGroupState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.share_group_records import ShareGroupMetadataKey, ShareGroupStatePartitionMetadataKey
from tests.coordinator.share_group.simulated_coordinator import GROUP, TOPIC, Simulation, failed_deletion
from tests.coordinator.simulated_log import error_of

UNKNOWN = ErrorCode.unknown_topic_or_partition


def _alter(simulation: Simulation, *topics: TopicOffsets) -> list[AlteredTopic]:
    return simulation.coordinator.alter_offsets(GROUP, topics, wall_ms=simulation.wall_ms).result()


def test_altering_an_unknown_group_creates_it_empty_at_epoch_1() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 3)
    outcomes = _alter(simulation, TopicOffsets(TOPIC, [(0, 7), (2, -5)]))
    assert outcomes == [AlteredTopic(TOPIC, topic_id, [PartitionOutcome(0), PartitionOutcome(2)])]
    group = simulation.group()
    assert (group.group_epoch, group.state, group.state_partitions.initialised[topic_id].partitions) == (
        1,
        ShareGroupState.EMPTY,
        (0, 2),
    )
    assert [made[1:] for made in simulation.share_state.made] == [
        (group.incarnation, topic_id, 0, 7, 1),
        (group.incarnation, topic_id, 2, -5, 1),
    ]
    assert [type(key) for key, _ in simulation.log.records()] == [
        ShareGroupMetadataKey,
        ShareGroupStatePartitionMetadataKey,
    ]


def test_partitions_not_altered_keep_to_the_reset_policy() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    _alter(simulation, TopicOffsets(TOPIC, [(0, 7)]))
    result = simulation.join("a")
    assert (result.member_epoch, result.assignment) == (2, {topic_id: (0, 1)})
    assert simulation.share_state.made[-1][3:] == (1, -1, 2)


def test_altering_again_begins_the_state_anew_at_the_groups_epoch() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.join("a")
    simulation.leave("a")
    before = len(simulation.log.batches)
    _alter(simulation, TopicOffsets(TOPIC, [(0, 100_000)]))
    assert simulation.share_state.made[-1][3:] == (0, 100_000, 3)
    # Nothing about the group changed.
    assert len(simulation.log.batches) == before


def test_unknown_topics_and_partitions_are_refused_one_by_one() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 1)
    simulation.share_state.failing_partitions = set()
    outcomes = _alter(
        simulation, TopicOffsets("absent", [(0, 0)]), TopicOffsets(TOPIC, [(0, 0), (1, 0), (-1, 0)])
    )
    assert (outcomes[0].topic_id, outcomes[1].topic_id) == (UUID(int=0), topic_id)
    codes = [outcome.error_code for topic in outcomes for outcome in topic.partitions]
    assert codes == [UNKNOWN, ErrorCode.none, UNKNOWN, UNKNOWN]


def test_an_alter_that_changes_nothing_creates_no_group() -> None:
    simulation = Simulation()
    _alter(simulation, TopicOffsets("absent", [(0, 0)]))
    assert simulation.coordinator.list_groups() == []


def test_a_partition_whose_state_fails_is_answered_and_not_listed() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.share_state.failing_partitions = {1}
    (topic,) = _alter(simulation, TopicOffsets(TOPIC, [(0, 0), (1, 0)]))
    assert [outcome.error_code for outcome in topic.partitions] == [
        ErrorCode.none,
        ErrorCode.kafka_storage_error,
    ]
    assert simulation.group().state_partitions.initialised[topic_id].partitions == (0,)


@pytest.mark.parametrize("group_id", ["", "billing", GROUP])
def test_alter_is_refused_for_nameless_other_and_live_groups(group_id: str) -> None:
    simulation = Simulation()
    simulation.occupy("billing")
    simulation.join("a")
    codes = {
        "": ErrorCode.invalid_group_id,
        "billing": ErrorCode.group_id_not_found,
        GROUP: ErrorCode.non_empty_group,
    }
    assert error_of(simulation.coordinator.alter_offsets(group_id, [], wall_ms=0)) is codes[group_id]


@pytest.mark.parametrize("group_id", ["", "absent", GROUP])
def test_delete_is_refused_for_nameless_unknown_and_live_groups(group_id: str) -> None:
    simulation = Simulation()
    simulation.join("a")
    codes = {
        "": ErrorCode.invalid_group_id,
        "absent": ErrorCode.group_id_not_found,
        GROUP: ErrorCode.non_empty_group,
    }
    assert error_of(simulation.coordinator.delete_offsets(group_id, [TOPIC])) is codes[group_id]


def test_deleting_offsets_forgets_all_partitions_of_the_topic() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    other_id = simulation.catalog.create("other", 1)
    simulation.join("a", TOPIC, "other")
    simulation.leave("a")
    before = len(simulation.log.batches)
    assert simulation.coordinator.delete_offsets(GROUP, [TOPIC]).result() == [DeletedTopic(TOPIC, topic_id)]
    assert simulation.share_state.deleted == [(GROUP, topic_id, 0), (GROUP, topic_id, 1)]
    group = simulation.group()
    assert (set(group.state_partitions.initialised), group.state_partitions.deleting) == ({other_id}, {})
    # Marked, deleted, unmarked.
    assert len(simulation.log.batches) == before + 2


def test_topics_without_offsets_are_answered_in_place() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC)
    simulation.catalog.create("unread")
    simulation.join("a")
    simulation.leave("a")
    outcomes = simulation.coordinator.delete_offsets(GROUP, ["unread", TOPIC, "absent"]).result()
    assert [(topic.topic_name, topic.topic_id, topic.error_code) for topic in outcomes] == [
        ("unread", UUID(int=0), UNKNOWN),
        (TOPIC, topic_id, ErrorCode.none),
        ("absent", UUID(int=0), UNKNOWN),
    ]
    assert outcomes[0].error_message == "There is no offset information to delete."


def test_a_deletion_that_failed_stays_marked_and_may_be_repeated() -> None:
    simulation, topic_id = failed_deletion()
    assert (
        simulation.group().state_partitions.initialised,
        simulation.group().state_partitions.deleting,
    ) == ({}, {topic_id: TOPIC})
    simulation.share_state.failing_partitions = set()
    assert simulation.coordinator.delete_offsets(GROUP, [TOPIC]).result() == [DeletedTopic(TOPIC, topic_id)]
    assert simulation.group().state_partitions.deleting == {}


def test_a_topic_being_deleted_that_is_read_again_is_initialised_anew() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 1)
    simulation.join("a")
    simulation.leave("a")
    simulation.share_state.failing_partitions = {0}
    simulation.coordinator.delete_offsets(GROUP, [TOPIC]).result()
    simulation.share_state.failing_partitions = set()
    simulation.advance(1_000)
    assert simulation.join("b").assignment == {topic_id: (0,)}
    assert simulation.share_state.made[-1].start_offset == -1
    assert simulation.group().state_partitions.deleting == {}


def test_offsets_stay_while_records_are_acknowledged_in_a_transaction() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 2)
    _alter(simulation, TopicOffsets(TOPIC, [(0, 7)]))
    simulation.share_state.partitions_in_transactions.add(0)
    before = len(simulation.log.batches)
    coordinator, wall_ms = simulation.coordinator, simulation.wall_ms
    in_partition_0 = [TopicOffsets(TOPIC, [(1, 3), (0, 9)])]
    for refused in (
        coordinator.alter_offsets(GROUP, in_partition_0, wall_ms=wall_ms),
        coordinator.delete_offsets(GROUP, [TOPIC]),
        coordinator.delete_group(GROUP),
    ):
        assert error_of(refused) is ErrorCode.concurrent_transactions
    assert len(simulation.log.batches) == before
    assert len(simulation.share_state.made) == 1
    assert _alter(simulation, TopicOffsets(TOPIC, [(1, 3)]))[0].partitions == [PartitionOutcome(1)]
