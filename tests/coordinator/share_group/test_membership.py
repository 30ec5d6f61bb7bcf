"""The work around a heartbeat's decision: share state that cannot be created, retries, the number of groups,
incarnations.
"""

from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.share_group.simulated_coordinator import FIRST_WALL_MS, GROUP, TOPIC, Simulation
from tests.coordinator.simulated_log import error_of


def test_a_partition_whose_state_fails_is_left_out_and_tried_again_later() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 3)
    simulation.share_state.failing_partitions = {1}
    assert simulation.join("a").assignment == {topic_id: (0, 2)}
    assert simulation.coordinator.initialised_partitions(GROUP)[topic_id].partitions == (0, 2)
    simulation.share_state.failing_partitions = set()
    simulation.advance(29_999)
    simulation.heartbeat("a", 2)
    assert len(simulation.share_state.made) == 3
    simulation.advance(1)
    assert simulation.heartbeat("a", 2).assignment == {topic_id: (0, 1, 2)}
    # It was there when the group subscribed, so the reset policy holds for it.
    assert simulation.share_state.made[-1].start_offset == -1


def test_a_group_none_of_whose_partitions_can_be_made_still_forms() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 1)
    simulation.share_state.failing_partitions = {0}
    result = simulation.join("a")
    assert (result.member_epoch, result.assignment) == (2, {})


def test_a_failed_append_leaves_no_group_behind() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 1)
    simulation.log.failing = True
    assert error_of(simulation.submit("a", 0, [TOPIC])) is ErrorCode.coordinator_not_available
    assert simulation.coordinator.list_groups() == []
    assert simulation.coordinator.next_deadline_ms() is None
    simulation.log.failing = False
    assert simulation.join("a").member_epoch == 2
    first, second = simulation.share_state.made
    assert second.group_incarnation > first.group_incarnation


def test_one_group_more_than_the_limit_is_refused_until_one_goes() -> None:
    simulation = Simulation(ShareGroupSettings(max_groups=2))
    simulation.join("a", group_id="g1")
    simulation.join("a", group_id="g2")
    assert error_of(simulation.submit("a", 0, [TOPIC], group_id="g3")) is ErrorCode.group_max_size_reached
    assert simulation.join("b", group_id="g2").member_epoch == 2
    simulation.leave("a", group_id="g1")
    simulation.coordinator.delete_group("g1").result()
    assert simulation.join("a", group_id="g3").member_epoch == 2


def test_a_group_made_again_has_a_greater_incarnation_even_if_the_clock_stands_or_goes_back() -> None:
    simulation = Simulation()
    seen: list[int | None] = []
    for now_ms in (0, 0, -5_000, 10_000):
        simulation.now_ms = now_ms
        simulation.join("a")
        seen.append(simulation.coordinator.incarnation(GROUP))
        simulation.leave("a")
        simulation.coordinator.delete_group(GROUP).result()
    assert seen == [FIRST_WALL_MS, FIRST_WALL_MS + 1, FIRST_WALL_MS + 2, FIRST_WALL_MS + 10_000]
    assert simulation.coordinator.incarnation(GROUP) is None


def test_incarnations_stay_apart_over_a_restart() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.leave("a")
    simulation.coordinator.delete_group(GROUP).result()
    simulation.now_ms = -60_000
    simulation.restart()
    simulation.join("a")
    assert simulation.coordinator.incarnation(GROUP) == FIRST_WALL_MS + 1


def test_a_removal_that_cannot_be_written_is_tried_again() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.log.failing = True
    simulation.advance(45_200)
    assert simulation.has_member("a")
    simulation.log.failing = False
    simulation.advance(300)
    assert not simulation.has_member("a")


def test_a_heartbeat_queued_before_the_end_of_its_session_keeps_the_member() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.advance(40_000)
    simulation.log.held = True
    other = simulation.submit("b", 0, [TOPIC])
    late = simulation.submit("a", 2)
    simulation.log.held = False
    simulation.now_ms += 5_000
    simulation.coordinator.expire(simulation.now_ms)
    simulation.log.release()
    assert other.done and late.result().member_epoch in (2, 3)
    assert simulation.has_member("a")
