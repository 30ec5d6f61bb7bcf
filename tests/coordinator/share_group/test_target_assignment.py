"""The target in Kafka's hash map order, and the part of it that a member may have."""

from barnabas.coordinator.share_group.share_group import ShareGroup, ShareGroupMember, TopicPartitionSet
from barnabas.coordinator.share_group.target_assignment import assigned_within_subscription, compute_target
from tests.coordinator.share_group.simulated_coordinator import TOPIC, SimulatedCatalog


def _member(member_id: str, *topics: str) -> ShareGroupMember:
    return ShareGroupMember(member_id, subscribed_topic_names=frozenset(topics))


def _group(*members: ShareGroupMember) -> ShareGroup:
    group = ShareGroup("group")
    group.members = {member.member_id: member for member in members}
    return group


def test_members_are_numbered_by_the_order_of_a_java_hash_map() -> None:
    catalog = SimulatedCatalog()
    topic_id = catalog.create(TOPIC, 3)
    group = _group(_member("b", TOPIC), _member("q", TOPIC))
    initialised = {topic_id: TopicPartitionSet(TOPIC, (0, 1, 2))}
    target = compute_target(group, _member("a", TOPIC), {TOPIC: 3}, initialised, catalog, None)
    # One-letter strings hash to their code: "q" (113) and "a" (97) share bucket 1 of 16, where who is new
    # comes last; "b" (98) is in bucket 2.
    assert list(target) == ["q", "a", "b"]


def test_only_initialised_partitions_of_existing_topics_are_handed_out() -> None:
    catalog = SimulatedCatalog()
    topic_id = catalog.create(TOPIC, 3)
    initialised = {topic_id: TopicPartitionSet(TOPIC, (0, 2))}
    target = compute_target(
        _group(), _member("a", TOPIC, "absent"), {TOPIC: 1, "absent": 1}, initialised, catalog, None
    )
    assert target == {"a": {topic_id: (0, 2)}}


def test_members_with_different_topics_get_only_their_own() -> None:
    catalog = SimulatedCatalog()
    ids = [catalog.create(name, 2) for name in ("x", "y")]
    initialised = {
        topic_id: TopicPartitionSet(name, (0, 1)) for topic_id, name in zip(ids, "xy", strict=True)
    }
    target = compute_target(
        _group(_member("a", "x")), _member("b", "y"), {"x": 1, "y": 1}, initialised, catalog, None
    )
    assert target == {"a": {ids[0]: (0, 1)}, "b": {ids[1]: (0, 1)}}


def test_a_group_without_subscription_has_an_empty_target_for_each_member() -> None:
    target = compute_target(_group(_member("a")), _member("b"), {}, {}, SimulatedCatalog(), None)
    assert target == {"a": {}, "b": {}}


def test_a_target_is_cut_to_existing_subscribed_topics() -> None:
    catalog = SimulatedCatalog()
    kept, left = catalog.create("kept"), catalog.create("left")
    gone = catalog.create("gone")
    catalog.delete("gone")
    target = {kept: (0,), left: (0,), gone: (0,)}
    assert assigned_within_subscription(target, frozenset({"kept", "gone"}), catalog) == {kept: (0,)}
    assert assigned_within_subscription({kept: (0,)}, frozenset({"kept"}), catalog) == {kept: (0,)}
