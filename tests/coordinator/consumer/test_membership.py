"""Members of consumer groups over time: joining, assignment, revocation, leaving, being late, restarts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.group.group_coordinator import TIMER_RETRY_MS
from barnabas.protocol.consumer_group_records import ConsumerGroupRegularExpressionKey
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.coordinator.classic.classic_bench import TOPIC
from tests.coordinator.consumer.consumer_bench import REBALANCE_MS, SESSION_MS, ConsumerBench
from tests.coordinator.simulated_log import error_of


def _code(bench: ConsumerBench, member_id: str, epoch: int, **changed: Any) -> ErrorCode:
    return error_of(bench.start_heartbeat(member_id, epoch, **changed))


JOINING: dict[str, Any] = {"rebalance_timeout_ms": 1, "subscribed_topic_names": (TOPIC,), "owned": {}}


# Joining


def test_the_first_member_gets_everything_at_once() -> None:
    bench = ConsumerBench()
    result = bench.join("a")
    assert (result.member_epoch, result.assignment) == (2, {bench.topic_id: (0, 1, 2, 3, 4, 5)})
    assert bench.described().state == "Stable"


@pytest.mark.parametrize("shift_ms", [0, -60_000, 60_000])
def test_an_assignment_waits_for_its_interval(shift_ms: int) -> None:
    bench = ConsumerBench(interval_ms=1_000)
    bench.join("a")
    bench.wall_shift_ms = shift_ms
    bench.advance(999)
    assert bench.join("b").assignment == {}
    assert bench.described().state == "Assigning"
    bench.advance(1)
    bench.beat("b")
    assert bench.described().assignment_epoch == 3


def test_a_partition_goes_over_only_when_it_was_given_up() -> None:
    bench = ConsumerBench()
    bench.join("a")
    assert bench.join("b").assignment == {}
    told = bench.beat("a")
    assert (told.member_epoch, told.assignment) == (2, {bench.topic_id: (0, 1, 2)})
    assert bench.beat("b").assignment is None
    assert bench.beat_with("a", {bench.topic_id: [0, 1, 2, 3]}).member_epoch == 2
    assert bench.beat_with("a", {bench.topic_id: [0, 1, 2]}).member_epoch == 3
    assert bench.beat("b").assignment == {bench.topic_id: (3, 4, 5)}
    assert bench.described().state == "Stable"


def test_three_members_share_evenly() -> None:
    bench = ConsumerBench()
    for member_id in "abc":
        bench.join(member_id)
    bench.settle_members("a", "b", "c")
    assert sorted(bench.partitions("a") + bench.partitions("b") + bench.partitions("c")) == list(range(6))
    assert {len(bench.partitions(one)) for one in "abc"} == {2}


def test_most_members_choose_the_assignor() -> None:
    bench = ConsumerBench()
    other = bench.create_topic("other", 6)
    for member_id, assignor in (("a", "range"), ("b", "range"), ("c", "uniform")):
        bench.join(member_id, TOPIC, "other", server_assignor=assignor)
    bench.settle_members("a", "b", "c")
    assert bench.described().assignor_name == "range"
    assert bench.owned("a") == {bench.topic_id: (0, 1), other: (0, 1)}


def test_a_member_without_an_id_is_given_one_in_version_0() -> None:
    bench = ConsumerBench()
    assert len(bench.join("", names_itself=False).member_id) == 22


def test_a_full_group_takes_no_one_else() -> None:
    bench = ConsumerBench(ConsumerSettings(max_size=1))
    bench.join("a")
    assert _code(bench, "b", 0, **JOINING) is ErrorCode.group_max_size_reached
    assert bench.join("a").member_epoch == 2


@pytest.mark.parametrize("leaves", [True, False])
def test_a_full_group_takes_a_static_member_back(leaves: bool) -> None:
    bench = ConsumerBench(ConsumerSettings(max_size=1))
    bench.join("a", instance_id="static")
    if leaves:
        bench.start_heartbeat("a", -2, instance_id="static").result()
        assert bench.join("b", instance_id="static").member_epoch == 2
    else:
        code = _code(bench, "b", 0, instance_id="static", **JOINING)
        assert code is ErrorCode.unreleased_instance_id
    assert _code(bench, "c", 0, instance_id="other", **JOINING) is ErrorCode.group_max_size_reached


def test_another_assignor_of_most_members_is_a_new_epoch() -> None:
    bench = ConsumerBench()
    other = bench.create_topic("other", 3)
    bench.join("a", TOPIC, "other")
    bench.join("b", TOPIC, "other")
    bench.settle_members("a", "b")
    epoch = bench.described().group_epoch
    bench.beat("a", server_assignor="uniform")
    assert bench.described().group_epoch == epoch, "it is the default"
    bench.beat("a", server_assignor="range")
    bench.settle_members("a", "b")
    assert bench.described().group_epoch == epoch + 1
    assert bench.owned("a") == {bench.topic_id: (0, 1, 2), other: (0, 1)}


def test_two_assignors_that_as_many_members_ask_for_leave_the_group_stable() -> None:
    bench = ConsumerBench()
    bench.join("a", server_assignor="range")
    bench.join("b", server_assignor="uniform")
    bench.settle_members("a", "b")
    epoch = bench.described().group_epoch
    for member_id in ("a", "b", "a", "b"):
        bench.beat(member_id)
    assert (bench.described().group_epoch, bench.described().state) == (epoch, "Stable")


def test_the_last_member_leaves_an_assignment_of_the_new_epoch() -> None:
    bench = ConsumerBench(interval_ms=1_000)
    bench.join("a")
    bench.start_heartbeat("a", -1).result()
    described = bench.described()
    assert (described.group_epoch, described.assignment_epoch, described.state) == (3, 3, "Empty")
    assert bench.join("b").assignment == {bench.topic_id: (0, 1, 2, 3, 4, 5)}, "it is due at once"


def test_the_number_of_groups_has_a_bound() -> None:
    bench = ConsumerBench(ConsumerSettings(max_groups=1))
    bench.join("a")
    assert _code(bench, "b", 0, group_id="g2", **JOINING) is ErrorCode.group_max_size_reached


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"member_id": " "}, ErrorCode.invalid_request),
        ({"group_id": ""}, ErrorCode.invalid_request),
        ({"group_id": "g" * 32_768}, ErrorCode.invalid_request),
        ({"instance_id": ""}, ErrorCode.invalid_request),
        ({"rack_id": ""}, ErrorCode.invalid_request),
        ({"rebalance_timeout_ms": -1}, ErrorCode.invalid_request),
        ({"owned": None}, ErrorCode.invalid_request),
        ({"owned": {UUID(int=1): [0]}}, ErrorCode.invalid_request),
        ({"subscribed_topic_names": None}, ErrorCode.invalid_request),
        ({"member_epoch": -3}, ErrorCode.invalid_request),
        ({"member_epoch": -2}, ErrorCode.invalid_request),
        ({"server_assignor": "sticky"}, ErrorCode.unsupported_assignor),
        ({"subscribed_topic_regex": "("}, ErrorCode.invalid_regular_expression),
        ({"member_epoch": 1}, ErrorCode.group_id_not_found),
    ],
)
def test_a_wrong_heartbeat_is_refused(changed: dict[str, Any], code: ErrorCode) -> None:
    bench = ConsumerBench()
    values: dict[str, Any] = {"member_id": "a", "member_epoch": 0, **JOINING, **changed}
    reply = bench.start_heartbeat(values.pop("member_id"), values.pop("member_epoch"), **values)
    assert error_of(reply) is code
    assert bench.log.batches == []


# Epochs


def test_an_epoch_ahead_or_behind_is_fenced() -> None:
    bench = ConsumerBench()
    bench.join("a")
    assert _code(bench, "a", 3) is ErrorCode.fenced_member_epoch
    assert _code(bench, "a", 1) is ErrorCode.fenced_member_epoch
    assert _code(bench, "b", 2) is ErrorCode.unknown_member_id


def test_the_epoch_before_is_taken_while_the_member_knows_nothing_newer() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    bench.settle_members("a", "b")
    owned = {bench.topic_id: [0]}
    assert bench.start_heartbeat("a", 2, owned=owned).result().member_epoch == 3
    assert _code(bench, "a", 2, owned={bench.topic_id: [5]}) is ErrorCode.fenced_member_epoch
    assert _code(bench, "a", 2) is ErrorCode.fenced_member_epoch


# Topics


def test_a_topic_that_grows_is_assigned_anew() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.catalog.grow(TOPIC, 8)
    bench.groups.on_metadata_changed([TOPIC], has_new=False)
    assert bench.beat("a").assignment == {bench.topic_id: tuple(range(8))}


def test_a_topic_that_comes_and_goes() -> None:
    bench = ConsumerBench()
    bench.join("a", "later")
    later = bench.create_topic("later", 2)
    assert bench.beat("a").assignment == {later: (0, 1)}
    bench.catalog.delete("later")
    bench.groups.on_metadata_changed(["later"], has_new=False)
    bench.groups.on_topics_deleted({"later": later})
    assert bench.beat("a").assignment == {}
    assert bench.described().state == "Reconciling"
    bench.beat_with("a", {})
    assert bench.described().state == "Stable"


def test_a_subscription_that_changes_takes_partitions_away_at_once() -> None:
    bench = ConsumerBench(interval_ms=1_000)
    other = bench.create_topic("other", 1)
    bench.join("a", TOPIC, "other")
    result = bench.beat("a", subscribed_topic_names=("other",))
    assert result.assignment == {other: (0,)}
    assert bench.partitions("a") == list(range(6))


# Regular expressions


def test_a_regular_expression_is_resolved_beside_the_heartbeat() -> None:
    bench = ConsumerBench()
    joined = bench.join_by_regex("a", "inv.*")
    assert (joined.member_epoch, joined.assignment) == (1, {})
    assert bench.beat("a").assignment == {bench.topic_id: tuple(range(6))}
    assert bench.member("a").subscribed_topic_regex == "inv.*"


def test_new_topics_are_found_by_the_next_heartbeat_after_a_pause() -> None:
    bench = ConsumerBench()
    bench.join_by_regex("a", "inv.*")
    bench.beat("a")
    more = bench.create_topic("inventory", 1)
    bench.beat("a")
    assert bench.beat("a").assignment is None
    bench.advance(10_001)
    bench.beat("a")
    assert bench.beat("a").assignment == {bench.topic_id: tuple(range(6)), more: (0,)}


def test_two_members_of_one_expression_are_assigned_at_once() -> None:
    bench = ConsumerBench()
    bench.join_by_regex("a", "inv.*")
    bench.beat("a")
    bench.join_by_regex("b", "inv.*")
    bench.settle_members("a", "b")
    assert len(bench.partitions("a")) == len(bench.partitions("b")) == 3


@pytest.mark.parametrize("shift_ms", [-3_600_000, 3_600_000])
def test_expressions_are_resolved_again_in_their_interval_if_the_wall_clock_is_set(shift_ms: int) -> None:
    bench = ConsumerBench()
    bench.join_by_regex("a", "inv.*")
    bench.beat("a")
    bench.wall_shift_ms = shift_ms
    for _ in range(20):
        bench.advance(30_000)
        bench.beat("a")
    assert resolution_count(bench) == 1
    bench.advance(30_000)
    bench.beat("a")
    assert resolution_count(bench) == 2


def resolution_count(bench: ConsumerBench) -> int:
    return sum(isinstance(key, ConsumerGroupRegularExpressionKey) for key, _ in bench.records())


def test_an_unused_expression_is_forgotten() -> None:
    bench = ConsumerBench()
    bench.join_by_regex("a", "inv.*")
    bench.beat("a")
    bench.beat("a", subscribed_topic_regex="", subscribed_topic_names=())
    bench.beat_with("a", {})
    assert bench.partitions("a") == []
    bench.join_by_regex("b", "inv.*")
    bench.leave_group("b")
    bench.restart()
    assert bench.described().members[0].subscribed_topic_regex == ""


# Static members


def test_a_static_member_comes_back_to_its_partitions() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="i")
    assert _code(bench, "a2", 0, instance_id="i", **JOINING) is ErrorCode.unreleased_instance_id
    assert bench.leave_group("a", -2, instance_id="i").member_epoch == -2
    assert bench.member("a").member_epoch == -2
    result = bench.join("a2", instance_id="i")
    assert (result.member_epoch, result.assignment) == (2, {bench.topic_id: tuple(range(6))})
    assert [one.member_id for one in bench.described().members] == ["a2"]
    assert _code(bench, "a", 2, instance_id="i") is ErrorCode.fenced_instance_id
    assert _code(bench, "a2", 2, instance_id="j") is ErrorCode.unknown_member_id


def test_a_static_member_that_stays_away_is_removed() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="i")
    bench.leave_group("a", -2, instance_id="i")
    bench.advance(SESSION_MS)
    assert bench.described().members == []


# Leaving, and being late


def test_the_partitions_of_a_member_that_leaves_go_to_others() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    bench.settle_members("a", "b")
    bench.leave_group("a")
    assert bench.beat("b").assignment == {bench.topic_id: tuple(range(6))}
    assert _code(bench, "a", -1) is ErrorCode.unknown_member_id


def test_a_silent_member_is_removed() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.advance(SESSION_MS - 1)
    bench.beat("a")
    bench.advance(SESSION_MS - 1)
    assert len(bench.described().members) == 1
    bench.advance(1)
    assert bench.described().state == "Empty"


def test_a_member_that_does_not_give_up_its_partitions_is_removed() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    bench.beat("a")
    for _ in range(REBALANCE_MS // 20_000):
        assert len(bench.described().members) == 2
        bench.advance(20_000)
        for member_id in [one.member_id for one in bench.described().members]:
            bench.beat(member_id)
    assert [one.member_id for one in bench.described().members] == ["b"]
    assert bench.partitions("b") == list(range(6))


def test_a_removal_that_cannot_be_written_is_tried_again() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.log.failing = True
    bench.advance(SESSION_MS)
    assert len(bench.described().members) == 1
    bench.log.failing = False
    bench.advance(500)
    assert bench.described().members == []


# Records


def test_a_heartbeat_that_cannot_be_written_changes_nothing() -> None:
    bench = ConsumerBench()
    bench.log.failing = True
    assert _code(bench, "a", 0, **JOINING) is ErrorCode.coordinator_not_available
    bench.log.failing = False
    with pytest.raises(ApiError):
        bench.described()
    assert bench.join("a").member_epoch == 2


def test_a_steady_heartbeat_writes_nothing() -> None:
    bench = ConsumerBench()
    bench.join("a")
    written = len(bench.log.batches)
    assert bench.beat("a").assignment is None
    assert len(bench.log.batches) == written


def test_a_topic_that_changes_while_a_heartbeat_is_written_is_not_missed() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.log.held = True
    reply = bench.start_heartbeat("a", 2, subscribed_topic_names=(TOPIC, "x"))
    bench.catalog.grow(TOPIC, 7)
    bench.groups.on_metadata_changed([TOPIC], has_new=False)
    bench.log.held = False
    bench.log.release()
    assert reply.done
    assert bench.beat("a").assignment == {bench.topic_id: tuple(range(7))}


def test_every_record_is_replayed_as_it_was() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="i", rack_id="r", server_assignor="range")
    bench.join_by_regex("b", "inv.*")
    bench.settle_members("a", "b")
    before = bench.described()
    bench.restart()
    assert bench.described() == before


@pytest.mark.parametrize("step", range(12))
def test_a_restart_in_the_midst_of_a_reconciliation_loses_nothing(step: int) -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    bench.join("c")
    for turn in range(12):
        member_id = "abc"[turn % 3]
        bench.beat_with(member_id, bench.owned(member_id))
        if turn == step:
            before = bench.described()
            bench.restart()
            assert bench.described() == before
    bench.settle_members("a", "b", "c")
    assert sorted(bench.partitions("a") + bench.partitions("b") + bench.partitions("c")) == list(range(6))
    assert bench.described().state == "Stable"


def test_after_a_restart_members_have_a_whole_session_and_time_to_give_up() -> None:
    bench = ConsumerBench()
    bench.join("a", rebalance_timeout_ms=10_000)
    bench.join("b")
    bench.beat("a")
    bench.advance(9_000)
    bench.restart()
    bench.advance(9_999)
    assert len(bench.described().members) == 2
    bench.advance(1)
    assert [one.member_id for one in bench.described().members] == ["b"]


def test_an_unloaded_partition_is_loaded_anew() -> None:
    bench = ConsumerBench()
    bench.join("a")
    before = bench.described()
    bench.reload()
    assert bench.described() == before
    assert bench.beat("a").member_epoch == 2


def test_a_removal_whose_append_fails_late_is_tried_again() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.log.held = True
    bench.advance(SESSION_MS)
    bench.log.fail_waiting()
    assert bench.member("a")
    bench.advance(TIMER_RETRY_MS)
    assert not bench.described().members
