"""Groups that change their protocol with their members (KIP-848)."""

from __future__ import annotations

import pytest

from barnabas.coordinator.assignor.java_hash_map import bucket_of, uuid_hash
from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.coordinator.consumer.migration import encoded_assignment
from barnabas.coordinator.consumer.settings import ConsumerSettings, MigrationPolicy
from barnabas.protocol import consumer_protocol
from barnabas.protocol.consumer_protocol import NamedPartitions
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, TOPIC, Joined, subscription
from tests.coordinator.consumer.consumer_bench import ConsumerBench, assigned_by_name
from tests.coordinator.consumer.test_membership import JOINING
from tests.coordinator.simulated_log import error_of

PROTOCOLS = {"range": subscription(TOPIC) + b"\0\0\0\0"}
"""With an owned partition count of 0, which version 1 has."""


def _assignment(*partitions: int, user_data: bytes | None = None) -> bytes:
    named = NamedPartitions(topic=TOPIC, partitions=partitions)
    assignment = consumer_protocol.Assignment(assigned_partitions=(named,), user_data=user_data)
    return consumer_protocol.encode_assignment(assignment, 1)


def _classic_pair(bench: ConsumerBench) -> list[Joined]:
    """A stable classic group of two that share the topic."""
    member_ids = [bench.new_member_id() for _ in range(2)]
    replies = [bench.start_join(one, protocols=PROTOCOLS) for one in member_ids]
    bench.advance(0)
    results = [reply.result() for reply in replies]
    members = [Joined(one.member_id, one.generation_id) for one in results]
    leader = next(one for one in members if one.member_id == results[0].leader)
    parts = {members[0].member_id: _assignment(0, 1, 2), members[1].member_id: _assignment(3, 4, 5)}
    for member in (leader, *(one for one in members if one is not leader)):
        bench.start_sync(member, parts if member is leader else None)
    return members


def _types(bench: ConsumerBench) -> list[str]:
    return [one.group_type for one in bench.groups.list_groups()]


def test_a_consumer_that_joins_a_classic_group_turns_it_into_a_consumer_group() -> None:
    bench = ConsumerBench()
    classic = _classic_pair(bench)
    bench.join("new")
    assert _types(bench) == ["consumer"]
    assert [one.is_classic for one in bench.described().members] == [True, True, False]
    assert bench.partitions(classic[0].member_id) == [0, 1, 2]
    assert bench.heartbeat(classic[0]) is ErrorCode.rebalance_in_progress


def test_members_of_both_protocols_come_to_one_assignment() -> None:
    bench = ConsumerBench()
    ids = [one.member_id for one in _classic_pair(bench)]
    bench.join("new")
    generations = dict.fromkeys(ids, 1)
    owned: dict[str, tuple[int, ...]] = {ids[0]: (0, 1, 2), ids[1]: (3, 4, 5)}
    for _ in range(4):
        for member_id in ids:
            if bench.beat_classic(member_id, generations[member_id]) is ErrorCode.rebalance_in_progress:
                metadata = subscription(TOPIC)[:-4] + _owned_bytes(owned[member_id])
                joined = bench.join_classic(member_id, protocols={"range": metadata})
                assert (joined.error_code, joined.leader) == (ErrorCode.none, "")
                generations[member_id] = joined.generation_id
                synced = bench.sync_classic(member_id, joined.generation_id)
                owned[member_id] = tuple(assigned_by_name(synced.assignment).get(TOPIC, ()))
        bench.beat_with("new", bench.owned("new"))
    assert bench.described().state == "Stable"
    assert sorted([*owned[ids[0]], *owned[ids[1]], *bench.partitions("new")]) == list(range(6))
    assert {len(owned[ids[0]]), len(owned[ids[1]]), len(bench.partitions("new"))} == {2}


def _owned_bytes(partitions: tuple[int, ...]) -> bytes:
    """The owned partitions in version 1 of a subscription, after empty user data."""
    numbers = b"".join(one.to_bytes(4, "big") for one in partitions)
    name = len(TOPIC).to_bytes(2, "big") + TOPIC.encode()
    return b"\xff\xff\xff\xff" + b"\0\0\0\1" + name + len(partitions).to_bytes(4, "big") + numbers


def test_the_last_consumer_that_leaves_turns_it_back() -> None:
    bench = ConsumerBench()
    classic = _classic_pair(bench)
    bench.join("new")
    bench.leave_group("new")
    assert _types(bench) == ["classic"]
    assert bench.state() is ClassicGroupState.PREPARING_REBALANCE
    assert [one.member_id for one in bench.classic.describe(GROUP).members] == [
        one.member_id for one in classic
    ]
    assert bench.beat_classic(classic[0].member_id, 2) is ErrorCode.rebalance_in_progress


def test_a_consumer_whose_session_ends_turns_it_back_as_well() -> None:
    bench = ConsumerBench()
    classic = _classic_pair(bench)
    bench.join("new")
    for _ in range(9):
        bench.advance(5_000)
        for member in classic:
            bench.heartbeat(member)
    assert _types(bench) == ["classic"]


def test_waiting_classic_members_get_rebalance_in_progress() -> None:
    bench = ConsumerBench()
    classic = _classic_pair(bench)
    waiting = bench.start_join(classic[0].member_id, protocols=PROTOCOLS)
    assert not waiting.done
    bench.join("new")
    assert waiting.result().error_code is ErrorCode.rebalance_in_progress


def test_a_static_member_that_comes_back_with_the_classic_protocol_turns_it_back() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="i")
    assert bench.leave_group("a", -2, instance_id="i").member_epoch == -2
    joined = bench.start_join(instance_id="i", protocols=PROTOCOLS).result()
    assert (joined.error_code, joined.generation_id) == (ErrorCode.none, 2)
    assert _types(bench) == ["classic"]
    synced = bench.start_sync(Joined(joined.member_id, 2, "i")).result()
    assert assigned_by_name(synced.assignment) == {TOPIC: (0, 1, 2, 3, 4, 5)}


def test_an_empty_group_of_either_protocol_gives_way() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.leave_group("a")
    (member,) = bench.stable()
    assert _types(bench) == ["classic"]
    bench.leave(member.identity)
    bench.join("a")
    assert _types(bench) == ["consumer"]


def test_offsets_outlive_the_change_of_protocol_and_a_restart() -> None:
    bench = ConsumerBench()
    assert bench.start_commit(7).result() == [ErrorCode.none]
    bench.join("a")
    assert bench.committed() == 7
    bench.restart()
    assert bench.committed() == 7
    assert _types(bench) == ["consumer"]


def test_a_restart_between_the_protocols_loses_no_member() -> None:
    bench = ConsumerBench()
    classic = _classic_pair(bench)
    bench.join("new")
    before = bench.described()
    bench.restart()
    assert bench.described() == before
    assert bench.heartbeat(classic[1]) is ErrorCode.rebalance_in_progress
    bench.leave_group("new")
    bench.restart()
    assert len(bench.classic.describe(GROUP).members) == 2


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_a_policy_may_forbid_to_turn_a_classic_group(policy: MigrationPolicy) -> None:
    bench = ConsumerBench(ConsumerSettings(migration_policy=policy))
    _classic_pair(bench)
    assert error_of(bench.start_heartbeat("new", 0, **JOINING)) is ErrorCode.group_id_not_found
    assert _types(bench) == ["classic"]


def test_a_policy_may_forbid_to_turn_it_back() -> None:
    bench = ConsumerBench(ConsumerSettings(migration_policy=MigrationPolicy.UPGRADE))
    _classic_pair(bench)
    bench.join("new")
    bench.leave_group("new")
    assert _types(bench) == ["consumer"]


def test_without_migration_no_classic_member_joins_a_consumer_group() -> None:
    bench = ConsumerBench(ConsumerSettings(migration_policy=MigrationPolicy.DISABLED))
    bench.join("a")
    assert bench.start_join(protocols=PROTOCOLS).result().error_code is ErrorCode.inconsistent_group_protocol


def test_topics_stand_in_an_assignment_in_the_order_of_kafkas_hash_maps() -> None:
    bench = ConsumerBench()
    names = {bench.create_topic(f"t{number}", 1): f"t{number}" for number in range(8)}
    by_bucket = {bucket_of(uuid_hash(topic_id), 16): topic_id for topic_id in names}
    in_order = [by_bucket[bucket] for bucket in sorted(by_bucket)]
    for given in (in_order, in_order[::-1]):
        data = encoded_assignment(dict.fromkeys(given, (0,)), PROTOCOLS["range"], bench.catalog)
        assert list(assigned_by_name(data)) == [names[topic_id] for topic_id in in_order]


def test_an_assignor_of_their_own_keeps_a_group_classic() -> None:
    bench = ConsumerBench()
    reply = bench.start_join(bench.new_member_id(), protocols=PROTOCOLS)
    bench.advance(0)
    joined = Joined(reply.result().member_id, 1)
    bench.start_sync(joined, {joined.member_id: _assignment(0, user_data=b"weights")})
    assert error_of(bench.start_heartbeat("new", 0, **JOINING)) is ErrorCode.group_id_not_found


@pytest.mark.parametrize(
    "options",
    [
        {"protocol_type": "connect"},
        {"protocols": {"sticky": subscription(TOPIC)}},
        {"protocols": {"range": b"?"}},
    ],
)
def test_a_classic_member_that_does_not_fit_in_is_refused(options: dict[str, object]) -> None:
    bench = ConsumerBench()
    _classic_pair(bench)
    bench.join("new")
    reply = bench.start_join("any", **options)  # type: ignore[arg-type]
    assert reply.result().error_code is ErrorCode.inconsistent_group_protocol


def test_a_classic_member_that_does_not_join_again_in_time_is_removed() -> None:
    bench = ConsumerBench()
    classic = _classic_pair(bench)
    bench.join("new")
    for _ in range(12):
        for member in classic:
            bench.heartbeat(member)
        bench.beat_with("new", bench.owned("new"))
        bench.advance(5_000)
    assert [one.member_id for one in bench.described().members] == ["new"]


def test_a_classic_member_leaves_and_a_stranger_cannot() -> None:
    bench = ConsumerBench()
    classic = _classic_pair(bench)
    bench.join("new")
    stranger = Joined("stranger", 1)
    left = bench.leave(classic[0].identity, stranger.identity)
    assert [one.error_code for one in left] == [ErrorCode.none, ErrorCode.unknown_member_id]
    assert len(bench.described().members) == 2
    assert bench.heartbeat(stranger) is ErrorCode.unknown_member_id
    assert bench.beat_classic(classic[1].member_id, 9) is ErrorCode.illegal_generation
