"""ShareGroupHeartbeat rule by rule: checks and their order, epochs, targets, answers, records."""

import pytest

from barnabas.coordinator.share_group.heartbeat import HeartbeatRequest, HeartbeatResult, validate_heartbeat
from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartitionsInfo,
)
from barnabas.protocol.topic_partitions import TopicPartitions
from tests.coordinator.share_group.simulated_coordinator import FIRST_WALL_MS, GROUP, TOPIC, Simulation
from tests.coordinator.simulated_log import error_of

VALID = HeartbeatRequest("group", "member", 0, None, ["topic"], "client", "/127.0.0.1")


def refusal(request_: HeartbeatRequest) -> ErrorCode | None:
    try:
        validate_heartbeat(request_)
    except ApiError as refused:
        return refused.code
    return None


@pytest.mark.parametrize(
    "request_",
    [
        VALID._replace(member_id=""),
        VALID._replace(member_id="m" * 37),
        VALID._replace(group_id=""),
        VALID._replace(group_id="ä" * 16_384),
        VALID._replace(rack_id=""),
        VALID._replace(subscribed_topic_names=None),
        VALID._replace(subscribed_topic_names=[]),
        VALID._replace(member_epoch=-2),
    ],
)
def test_requests_that_no_group_could_accept_are_invalid(request_: HeartbeatRequest) -> None:
    assert refusal(request_) is ErrorCode.invalid_request


@pytest.mark.parametrize(
    "request_",
    [
        VALID,
        VALID._replace(member_id="m" * 36, rack_id="rack"),
        VALID._replace(member_epoch=5, subscribed_topic_names=None),
        VALID._replace(member_epoch=5, subscribed_topic_names=[]),
        VALID._replace(member_epoch=-1, subscribed_topic_names=None),
    ],
)
def test_valid_requests_pass(request_: HeartbeatRequest) -> None:
    assert refusal(request_) is None


def test_the_first_member_of_a_new_group_gets_its_partitions_at_once_with_epoch_2() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 3)
    assert simulation.join("a") == HeartbeatResult("a", 2, 5_000, {topic_id: (0, 1, 2)})
    group = simulation.group()
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)


def test_the_first_join_writes_kafkas_records_in_kafkas_order() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    partitions = (TopicPartitions(topic_id=topic_id, partitions=(0, 1)),)
    group_value = ShareGroupMetadataValue(
        group_epoch=2, metadata_hash=simulation.group().metadata_hash, group_incarnation=FIRST_WALL_MS
    )
    assert group_value.metadata_hash != 0
    assert len(simulation.log.batches) == 1
    assert simulation.log.records() == [
        (
            ShareGroupMemberMetadataKey(group_id=GROUP, member_id="a"),
            ShareGroupMemberMetadataValue(
                rack_id=None, client_id="client", client_host="/127.0.0.1", subscribed_topic_names=(TOPIC,)
            ),
        ),
        (ShareGroupMetadataKey(group_id=GROUP), group_value),
        (
            ShareGroupTargetAssignmentMemberKey(group_id=GROUP, member_id="a"),
            ShareGroupTargetAssignmentMemberValue(topic_partitions=partitions),
        ),
        (
            ShareGroupTargetAssignmentMetadataKey(group_id=GROUP),
            ShareGroupTargetAssignmentMetadataValue(
                assignment_epoch=2, assignment_timestamp_ms=FIRST_WALL_MS
            ),
        ),
        (
            ShareGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a"),
            ShareGroupCurrentMemberAssignmentValue(
                member_epoch=2, previous_member_epoch=0, state=0, assigned_partitions=partitions
            ),
        ),
        (
            ShareGroupStatePartitionMetadataKey(group_id=GROUP),
            ShareGroupStatePartitionMetadataValue(
                initializing_topics=(),
                initialized_topics=(
                    TopicPartitionsInfo(topic_id=topic_id, topic_name=TOPIC, partitions=(0, 1)),
                ),
                deleting_topics=(),
            ),
        ),
    ]


def test_a_steady_heartbeat_writes_nothing_and_tells_no_assignment() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 3)
    simulation.join("a")
    for _ in range(4):
        simulation.advance(5_000)
        assert simulation.heartbeat("a", 2) == HeartbeatResult("a", 2, 5_000, None)
    assert len(simulation.log.batches) == 1


@pytest.mark.parametrize(
    ("member_epoch", "code"),
    [
        (0, ErrorCode.none),
        (4, ErrorCode.none),
        (3, ErrorCode.none),
        (2, ErrorCode.fenced_member_epoch),
        (5, ErrorCode.fenced_member_epoch),
    ],
)
def test_a_member_may_send_its_epoch_the_one_before_or_0(member_epoch: int, code: ErrorCode) -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.join("a")
    for epoch, name in ((2, "b"), (3, "c")):
        simulation.advance(1_000)
        simulation.join(name)
        assert simulation.heartbeat("a", epoch).member_epoch == epoch + 1
    reply = simulation.submit("a", member_epoch, [TOPIC] if member_epoch == 0 else None)
    assert error_of(reply) is code
    if code is ErrorCode.none:
        assert reply.result().member_epoch == 4


def test_epoch_0_rejoins_in_place_and_always_tells_the_assignment() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.advance(10_000)
    assert simulation.join("a") == HeartbeatResult("a", 2, 5_000, {topic_id: (0, 1)})
    assert len(simulation.log.batches) == 1


@pytest.mark.parametrize("topics", [[TOPIC], [TOPIC, TOPIC]])
def test_a_full_request_is_answered_with_the_assignment(topics: list[str]) -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC)
    simulation.join("a")
    assert simulation.heartbeat("a", 2, topics).assignment == {topic_id: (0,)}


def test_an_empty_topic_list_unsubscribes_and_is_answered_with_an_empty_assignment() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.join("a")
    simulation.advance(1_000)
    assert simulation.heartbeat("a", 2, []) == HeartbeatResult("a", 3, 5_000, {})


@pytest.mark.parametrize(
    ("group_id", "member_id", "code"),
    [("absent", "a", ErrorCode.group_id_not_found), (GROUP, "absent", ErrorCode.unknown_member_id)],
)
@pytest.mark.parametrize("member_epoch", [-1, 2])
def test_unknown_groups_and_members_have_different_errors(
    group_id: str, member_id: str, code: ErrorCode, member_epoch: int
) -> None:
    simulation = Simulation()
    simulation.join("a")
    assert error_of(simulation.submit(member_id, member_epoch, group_id=group_id)) is code


@pytest.mark.parametrize("member_epoch", [-1, 0, 2])
def test_a_group_of_another_type_is_no_share_group(member_epoch: int) -> None:
    simulation = Simulation()
    simulation.occupy("billing")
    reply = simulation.submit("a", member_epoch, [TOPIC], group_id="billing")
    assert error_of(reply) is ErrorCode.group_id_not_found


@pytest.mark.parametrize(
    ("member_id", "member_epoch", "code"),
    [
        ("c", 0, ErrorCode.group_max_size_reached),
        # Kafka looks at the size before it looks for the member.
        ("c", 5, ErrorCode.group_max_size_reached),
        ("c", -1, ErrorCode.unknown_member_id),
        ("a", 0, ErrorCode.none),
        ("a", 2, ErrorCode.none),
    ],
)
def test_a_full_group_accepts_only_its_members(member_id: str, member_epoch: int, code: ErrorCode) -> None:
    simulation = Simulation(ShareGroupSettings(max_size=2))
    simulation.join("a")
    simulation.join("b")
    assert error_of(simulation.submit(member_id, member_epoch, [TOPIC])) is code


def test_three_joins_within_the_assignment_interval_move_together_after_it() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 3)
    assert simulation.join("a").assignment == {topic_id: (0, 1, 2)}
    simulation.advance(300)
    assert simulation.join("b") == HeartbeatResult("b", 2, 5_000, {})
    simulation.advance(300)
    assert simulation.join("c") == HeartbeatResult("c", 2, 5_000, {})
    assert (simulation.group().group_epoch, simulation.group().assignment_epoch) == (4, 2)
    simulation.advance(399)
    assert simulation.heartbeat("a", 2) == HeartbeatResult("a", 2, 5_000, None)
    simulation.advance(1)
    results = [simulation.heartbeat(name, 2) for name in "abc"]
    assert [result.member_epoch for result in results] == [4, 4, 4]
    assert sorted(result.assignment[topic_id] for result in results if result.assignment) == [
        (0,),
        (1,),
        (2,),
    ]


def test_a_member_that_joins_after_the_interval_gets_partitions_at_once() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.advance(1_000)
    result = simulation.join("b")
    assert result.member_epoch == 3
    assert result.assignment is not None and len(result.assignment[topic_id]) == 1


def test_an_interval_of_0_never_batches() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.configs.assignment_interval = 0
    assert simulation.join("b").member_epoch == 3


@pytest.mark.parametrize("shift_ms", [-60_000, 60_000])
def test_the_assignment_interval_is_the_same_if_the_wall_clock_is_set(shift_ms: int) -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.wall_shift_ms = shift_ms
    simulation.advance(999)
    assert simulation.join("b").member_epoch == 2
    simulation.advance(1)
    assert simulation.heartbeat("b", 2).member_epoch == 3


def test_a_last_assignment_in_the_future_of_a_restart_holds_up_the_next_one_for_its_interval_only() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.wall_shift_ms = -60_000
    simulation.restart()
    assert simulation.join("b").member_epoch == 2
    simulation.advance(1_000)
    assert simulation.heartbeat("b", 2).member_epoch == 3


def test_a_changed_subscription_bumps_the_epoch_once_and_moves_the_assignment() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 2)
    other_id = simulation.catalog.create("other", 1)
    simulation.join("a")
    simulation.advance(1_000)
    assert simulation.heartbeat("a", 2, ["other"]) == HeartbeatResult("a", 3, 5_000, {other_id: (0,)})


def test_a_topic_left_within_the_interval_is_taken_away_at_once() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC)
    simulation.catalog.create("other")
    simulation.join("a", TOPIC, "other")
    assert simulation.heartbeat("a", 2, [TOPIC]) == HeartbeatResult("a", 2, 5_000, {topic_id: (0,)})
    assert simulation.group().group_epoch == 3


def test_a_new_rack_client_id_or_host_is_recorded_without_a_new_epoch() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.join("a")
    told: dict[str, str] = {}
    for field, value in (("rack_id", "r1"), ("client_id", "renamed"), ("client_host", "/127.0.0.2")):
        simulation.submit("a", 2, **told).result()  # Changes nothing, so the member is steady after it.
        told[field] = value
        assert simulation.submit("a", 2, **told).result().member_epoch == 2
        assert getattr(simulation.group().members["a"], field) == value
    assert simulation.group().group_epoch == 2


def test_unknown_topics_are_accepted_and_assigned_when_they_are_created() -> None:
    simulation = Simulation()
    assert simulation.join("a") == HeartbeatResult("a", 2, 5_000, {})
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.coordinator.on_metadata_changed([TOPIC])
    simulation.advance(1_000)
    assert simulation.heartbeat("a", 2) == HeartbeatResult("a", 3, 5_000, {topic_id: (0, 1)})


def test_growth_is_assigned_at_the_next_heartbeat_after_the_interval_and_starts_at_0() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 1)
    simulation.join("a")
    simulation.catalog.grow(TOPIC, 3)
    simulation.coordinator.on_metadata_changed([TOPIC])
    assert simulation.heartbeat("a", 2) == HeartbeatResult("a", 2, 5_000, None)
    assert simulation.group().group_epoch == 3
    simulation.advance(1_000)
    assert simulation.heartbeat("a", 2) == HeartbeatResult("a", 3, 5_000, {topic_id: (0, 1, 2)})
    assert [
        (made.partition, made.start_offset, made.state_epoch) for made in simulation.share_state.made
    ] == [
        (0, -1, 2),
        (1, -1, 3),
        (2, -1, 3),
    ]
    starts = [SharePartitionKey(GROUP, topic_id, partition) for partition in range(3)]
    assert [simulation.coordinator.starts_at_zero(key) for key in starts] == [False, True, True]


def test_an_assignment_that_is_due_takes_growth_in() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 1)
    simulation.join("a")
    simulation.join("b")
    assert simulation.group().group_epoch == 3
    simulation.advance(1_000)
    simulation.catalog.grow(TOPIC, 2)
    simulation.coordinator.on_metadata_changed([TOPIC])
    results = [simulation.heartbeat("a", 2), simulation.heartbeat("b", 2)]
    assert [result.member_epoch for result in results] == [4, 4]
    members = simulation.group().members.values()
    assert sorted(member.assigned[topic_id] for member in members) == [(0,), (1,)]


def test_a_deleted_topic_leaves_the_next_assignment() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    other_id = simulation.catalog.create("other")
    simulation.join("a", TOPIC, "other")
    gone = simulation.catalog.delete(TOPIC)
    simulation.coordinator.on_topics_deleted([gone])
    simulation.coordinator.on_metadata_changed([TOPIC])
    assert set(simulation.group().state_partitions.initialised) == {other_id}
    simulation.advance(1_000)
    assert simulation.heartbeat("a", 2) == HeartbeatResult("a", 3, 5_000, {other_id: (0,)})


def test_a_topic_made_again_under_its_name_is_a_new_subscription() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.join("a")
    gone = simulation.catalog.delete(TOPIC)
    again = simulation.catalog.create(TOPIC)
    simulation.coordinator.on_topics_deleted([gone])
    simulation.coordinator.on_metadata_changed([TOPIC])
    simulation.advance(1_000)
    assert simulation.heartbeat("a", 2).assignment == {again: (0,)}
    assert simulation.share_state.made[-1].start_offset == -1


def test_a_leave_is_answered_bare_and_bumps_the_epoch() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.join("a")
    before = len(simulation.log.batches)
    assert simulation.leave("a") == HeartbeatResult("a", -1, 0, None)
    records = simulation.log.records(before)
    assert records[:3] == [
        (ShareGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a"), None),
        (ShareGroupTargetAssignmentMemberKey(group_id=GROUP, member_id="a"), None),
        (ShareGroupMemberMetadataKey(group_id=GROUP, member_id="a"), None),
    ]
    assert records[3:] == [
        (
            ShareGroupMetadataKey(group_id=GROUP),
            ShareGroupMetadataValue(group_epoch=3, metadata_hash=0, group_incarnation=FIRST_WALL_MS),
        ),
        (
            ShareGroupTargetAssignmentMetadataKey(group_id=GROUP),
            ShareGroupTargetAssignmentMetadataValue(assignment_epoch=3, assignment_timestamp_ms=0),
        ),
    ]
    assert simulation.coordinator.next_deadline_ms() is None


def test_a_member_that_joins_an_empty_group_is_assigned_at_once() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC)
    simulation.join("a")
    simulation.leave("a")
    assert simulation.join("b").assignment == {topic_id: (0,)}


def test_the_partitions_of_a_member_that_leaves_go_to_the_others() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.advance(1_000)
    simulation.join("b")
    assert simulation.heartbeat("a", 2).member_epoch == 3
    simulation.leave("b")
    simulation.advance(1_000)
    assert simulation.heartbeat("a", 3) == HeartbeatResult("a", 4, 5_000, {topic_id: (0, 1)})


def test_a_session_without_heartbeats_ends_like_a_leave() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.join("a")
    simulation.advance(44_999)
    assert simulation.has_member("a")
    simulation.advance(1)
    assert not simulation.has_member("a")
    assert simulation.group().group_epoch == 3
    assert error_of(simulation.submit("a", 2)) is ErrorCode.unknown_member_id


def test_epochs_go_on_after_a_group_was_empty() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC)
    simulation.join("a")
    simulation.leave("a")
    simulation.advance(1_000)
    assert simulation.join("b") == HeartbeatResult("b", 4, 5_000, {topic_id: (0,)})
    assert len(simulation.share_state.made) == 1


def test_intervals_are_read_anew_for_each_heartbeat() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.configs.heartbeat_interval = 7_000
    simulation.configs.session_timeout = 60_000
    assert simulation.heartbeat("a", 2).heartbeat_interval_ms == 7_000
    simulation.advance(59_999)
    assert simulation.has_member("a")
    simulation.advance(1)
    assert not simulation.has_member("a")
