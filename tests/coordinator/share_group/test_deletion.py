"""DeleteGroups, and deleted topics."""

import pytest

from barnabas.coordinator.share_group.offsets import TopicOffsets
from barnabas.coordinator.share_group.record_factory import group_tombstones
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.share_group.simulated_coordinator import GROUP, TOPIC, Simulation, failed_deletion
from tests.coordinator.simulated_log import error_of


def test_deleting_a_group_deletes_its_state_first_and_then_writes_its_tombstones() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.leave("a")
    before = len(simulation.log.batches)
    simulation.coordinator.delete_group(GROUP).result()
    assert simulation.share_state.deleted == [(GROUP, topic_id, 0), (GROUP, topic_id, 1)]
    assert len(simulation.log.batches) == before + 2
    assert simulation.log.records(before)[1:] == group_tombstones(GROUP)
    assert simulation.coordinator.list_groups() == []


@pytest.mark.parametrize(
    ("group_id", "code"),
    [
        ("", ErrorCode.group_id_not_found),
        ("absent", ErrorCode.group_id_not_found),
        ("billing", ErrorCode.group_id_not_found),
        (GROUP, ErrorCode.non_empty_group),
    ],
)
def test_only_an_empty_share_group_can_be_deleted(group_id: str, code: ErrorCode) -> None:
    simulation = Simulation()
    simulation.occupy("billing")
    simulation.join("a")
    assert error_of(simulation.coordinator.delete_group(group_id)) is code


def test_a_group_whose_state_cannot_be_deleted_stays_and_can_be_deleted_later() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.leave("a")
    simulation.share_state.failing_partitions = {1}
    assert error_of(simulation.coordinator.delete_group(GROUP)) is ErrorCode.kafka_storage_error
    assert simulation.group().state_partitions.deleting == {topic_id: TOPIC}
    simulation.share_state.failing_partitions = set()
    simulation.coordinator.delete_group(GROUP).result()
    assert simulation.coordinator.list_groups() == []


def test_a_group_that_never_read_anything_is_deleted_without_touching_share_state() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.leave("a")
    simulation.coordinator.delete_group(GROUP).result()
    assert simulation.share_state.deleted == []


def test_state_of_topics_that_are_gone_is_not_asked_to_be_deleted() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.join("a")
    simulation.leave("a")
    simulation.catalog.delete(TOPIC)
    simulation.coordinator.delete_group(GROUP).result()
    assert simulation.share_state.deleted == []


def test_a_deleted_topic_is_forgotten_by_the_groups_that_had_it_and_no_other() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.catalog.create("other")
    simulation.join("a", group_id="g1")
    simulation.join("a", "other", group_id="g2")
    before = len(simulation.log.batches)
    simulation.coordinator.on_topics_deleted([simulation.catalog.delete(TOPIC)])
    assert [key.group_id for key, _ in simulation.log.records(before)] == ["g1"]
    assert simulation.group("g1").state_partitions.initialised == {}


def test_a_deletion_of_a_topic_that_could_not_be_written_is_made_good_by_a_heartbeat() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC)
    simulation.join("a")
    simulation.log.failing = True
    simulation.catalog.delete(TOPIC)
    simulation.coordinator.on_topics_deleted([topic_id])
    simulation.coordinator.on_metadata_changed([TOPIC])
    simulation.log.failing = False
    assert set(simulation.group().state_partitions.initialised) == {topic_id}
    assert simulation.coordinator.initialised_partitions(GROUP) == {}
    simulation.heartbeat("a", 2)
    assert simulation.group().state_partitions.initialised == {}


def test_a_failed_deletion_is_finished_before_the_group_reads_the_topic_again() -> None:
    simulation, topic_id = failed_deletion()
    simulation.share_state.failing_partitions = set()
    simulation.restart()
    assert simulation.join("a").assignment == {topic_id: (0, 1)}
    assert simulation.share_state.deleted == [(GROUP, topic_id, 0), (GROUP, topic_id, 1)]
    assert [made.start_offset for made in simulation.share_state.made] == [-1, -1]
    assert simulation.group().state_partitions.deleting == {}


def test_a_partition_whose_deletion_fails_again_stays_out_until_it_succeeds() -> None:
    simulation, topic_id = failed_deletion()
    assert simulation.join("a").assignment == {topic_id: (0,)}
    assert [made.partition for made in simulation.share_state.made] == [0]
    assert simulation.group().state_partitions.deleting == {topic_id: TOPIC}
    simulation.restart()
    simulation.share_state.failing_partitions = set()
    simulation.share_state.deleted.clear()
    epoch = simulation.join("a").member_epoch
    simulation.advance(2_000)
    simulation.heartbeat("a", epoch)
    assert simulation.coordinator.initialised_partitions(GROUP)[topic_id].partitions == (0, 1)
    assert simulation.share_state.deleted == [(GROUP, topic_id, 1)]
    assert simulation.share_state.made[-1].start_offset == -1
    assert simulation.group().state_partitions.deleting == {}


def test_setting_one_partitions_offset_leaves_the_others_to_be_deleted() -> None:
    simulation, topic_id = failed_deletion()
    simulation.share_state.failing_partitions = set()
    simulation.coordinator.alter_offsets(
        GROUP, [TopicOffsets(TOPIC, [(0, 7)])], wall_ms=simulation.wall_ms
    ).result()
    assert simulation.group().state_partitions.deleting == {topic_id: TOPIC}
    simulation.join("a")
    assert simulation.share_state.deleted == [(GROUP, topic_id, 1)]
    assert simulation.group().state_partitions.deleting == {}


def test_a_partition_held_back_is_still_deleted_when_its_turn_comes() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.share_state.failing_partitions = {1}
    simulation.join("a")
    simulation.leave("a")
    simulation.coordinator.delete_offsets(GROUP, [TOPIC]).result()
    simulation.share_state.failing_partitions = set()
    simulation.share_state.deleted.clear()
    epoch = simulation.join("a").member_epoch
    assert simulation.share_state.deleted == [(GROUP, topic_id, 0)]
    simulation.advance(30_000)
    simulation.heartbeat("a", epoch)
    assert simulation.share_state.deleted == [(GROUP, topic_id, 0), (GROUP, topic_id, 1)]
    assert simulation.share_state.made[-1].start_offset == -1
