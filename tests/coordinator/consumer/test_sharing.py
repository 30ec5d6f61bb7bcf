"""Partitions that members share: who shares which, and which ranges they get."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.consumer.sharing import Reading, Sharer, share_out
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange, even_ranges

TOPIC, OTHER = UUID(int=1), UUID(int=2)


def partitions(count: int, topic_id: UUID = TOPIC) -> list[TopicIdPartition]:
    return [TopicIdPartition(topic_id, index) for index in range(count)]


def new(*names: str) -> dict[str, Sharer]:
    return {name: Sharer({TOPIC}, {}) for name in names}


def again(names: str, before: Mapping[str, Reading]) -> dict[str, Sharer]:
    """The same members after a target; names that it lacks are new."""
    return {name: Sharer({TOPIC}, *before[name]) if name in before else Sharer({TOPIC}, {}) for name in names}


def shared(sharers: Mapping[str, Sharer], partition_count: int) -> dict[str, Reading]:
    found = share_out(sharers, partitions(partition_count))
    assert found is not None
    return found


def places(found: Mapping[str, Reading]) -> dict[int, list[str]]:
    """The members of each partition, in the order of their ranges."""
    by_partition: dict[int, list[tuple[HashRange, str]]] = {}
    for name, (assignment, shares) in found.items():
        for topic_id, indexes in assignment.items():
            for index in indexes:
                hash_range = shares.get(TopicIdPartition(topic_id, index), ALL_HASHES)
                by_partition.setdefault(index, []).append((hash_range, name))
    return {index: [name for _, name in sorted(ones)] for index, ones in sorted(by_partition.items())}


def test_five_members_over_three_partitions_are_two_two_and_one() -> None:
    found = shared(new(*"abcde"), 3)
    assert places(found) == {0: ["a", "d"], 1: ["b", "e"], 2: ["c"]}
    assert found["d"].shares == {TopicIdPartition(TOPIC, 0): even_ranges(2)[1]}
    assert found["c"].shares == {}


def test_members_that_can_have_a_whole_partition_share_none() -> None:
    assert share_out(new(*"abc"), partitions(3)) is None
    assert share_out(new(*"abc"), []) is None


def test_members_stay_when_another_joins() -> None:
    before = shared(new(*"abcde"), 3)
    assert places(shared(again("abcdef", before), 3)) == {0: ["a", "d"], 1: ["b", "e"], 2: ["c", "f"]}


def test_members_stay_when_another_leaves() -> None:
    before = shared(new(*"abcdef"), 3)
    assert places(shared(again("bcdef", before), 3)) == {0: ["d"], 1: ["b", "e"], 2: ["c", "f"]}


def test_the_owner_of_a_whole_partition_stays_when_others_come() -> None:
    before = {"b": Reading({TOPIC: (0,)}, {}), "a": Reading({TOPIC: (1,)}, {})}
    assert places(shared(again("abc", before), 2)) == {0: ["b", "c"], 1: ["a"]}


def test_a_member_shares_only_topics_that_it_reads() -> None:
    sharers = {**new("a", "b"), "c": Sharer({OTHER}, {}), "d": Sharer({UUID(int=3)}, {})}
    found = share_out(sharers, [*partitions(1), *partitions(1, OTHER)])
    assert found is not None
    assert {name: list(one.assignment) for name, one in found.items()} == {
        "a": [TOPIC],
        "b": [TOPIC],
        "c": [OTHER],
        "d": [],
    }


@given(st.integers(1, 6), st.lists(st.text("abcdefghijklmnop", min_size=1, max_size=16), max_size=5))
def test_ranges_always_cover_each_partition_once(partition_count: int, stories: list[str]) -> None:
    before: dict[str, Reading] = {}
    for names in stories:
        found = share_out(again("".join(sorted(set(names))), before), partitions(partition_count))
        if found is None:
            continue
        sharers: dict[TopicIdPartition, list[HashRange]] = {}
        for assignment, shares in found.values():
            ((topic_id, (index,)),) = assignment.items()
            partition = TopicIdPartition(topic_id, index)
            sharers.setdefault(partition, []).append(shares.get(partition, ALL_HASHES))
        assert len(sharers) == partition_count
        sizes = [len(ranges) for ranges in sharers.values()]
        assert max(sizes) - min(sizes) <= 1
        assert all(sorted(ranges) == even_ranges(len(ranges)) for ranges in sharers.values())
        before = found
