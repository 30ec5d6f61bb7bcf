"""Partitions that members of a consumer group share by ranges of keys' hashes. Pure.

Members that commit offsets individually can share a partition. They do so when there are more of them than
partitions left for them: then each of them reads one partition, and the sharers of a partition get even,
disjoint ranges that cover all hashes. Other members keep whole partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import HashRange, even_ranges

Shares: TypeAlias = Mapping[TopicIdPartition, HashRange]
"""The partitions of a member that it shares with others, and its ranges of them."""

NO_SHARES: Final[Shares] = MappingProxyType({})


class Sharer(NamedTuple):
    """A member that commits offsets individually."""

    topic_ids: Collection[UUID]
    """The existing topics that it reads."""
    previous: Assignment
    """Its partitions in the last target assignment, whole or shared."""
    previous_shares: Shares = NO_SHARES


class Reading(NamedTuple):
    """The partitions that a member is to read."""

    assignment: Assignment
    """All of them, whole or shared."""
    shares: Shares = NO_SHARES


def exclusive_part(previous: Reading) -> Assignment:
    """The partitions of a last target without shares, except the first share of each partition: so each
    partition has one former owner.
    """
    others = {partition for partition, share in previous.shares.items() if share.first_hash > 0}
    if not others:
        return previous.assignment
    parts = {
        topic_id: tuple(
            partition for partition in partitions if TopicIdPartition(topic_id, partition) not in others
        )
        for topic_id, partitions in previous.assignment.items()
    }
    return {topic_id: partitions for topic_id, partitions in parts.items() if partitions}


def share_out(
    sharers: Mapping[str, Sharer], partitions: Sequence[TopicIdPartition]
) -> dict[str, Reading] | None:
    """The partitions of each sharer; None if there are enough `partitions` to give each sharer a whole one,
    or none at all.

    Members stay at their partition as far as the sizes allow, and keep their order there. The sizes differ by
    one at most if all sharers read the same topics.
    """
    if not 0 < len(partitions) < len(sharers):
        return None
    members = _spread(sharers, partitions)
    shared: dict[str, Reading] = {member_id: Reading({}, NO_SHARES) for member_id in sharers}
    for partition, member_ids in members.items():
        ranges = even_ranges(len(member_ids)) if member_ids else []
        for member_id, hash_range in zip(member_ids, ranges, strict=True):
            shares = NO_SHARES if len(member_ids) == 1 else {partition: hash_range}
            shared[member_id] = Reading({partition.topic_id: (partition.partition,)}, shares)
    return shared


def _spread(
    sharers: Mapping[str, Sharer], partitions: Sequence[TopicIdPartition]
) -> dict[TopicIdPartition, list[str]]:
    """The members of each partition: first those that stay, then the others one after another, each at the
    partition with the fewest.
    """
    former = {partition: _former_members(sharers, partition) for partition in partitions}
    sizes = _sizes(former, len(sharers))
    members: dict[TopicIdPartition, list[str]] = {partition: [] for partition in partitions}
    placed: set[str] = set()
    for partition, member_ids in former.items():
        staying = [member_id for member_id in member_ids if member_id not in placed][: sizes[partition]]
        members[partition] += staying
        placed.update(staying)
    for member_id, sharer in sharers.items():
        readable = [partition for partition in partitions if partition.topic_id in sharer.topic_ids]
        if member_id in placed or not readable:
            continue
        with_room = [
            partition for partition in readable if len(members[partition]) < sizes[partition]
        ] or readable
        members[min(with_room, key=lambda partition: len(members[partition]))].append(member_id)
    return members


def _former_members(sharers: Mapping[str, Sharer], partition: TopicIdPartition) -> list[str]:
    """The members that had the partition or a share of it and still read the topic, by their ranges."""
    former = [
        member_id
        for member_id, sharer in sharers.items()
        if partition.partition in sharer.previous.get(partition.topic_id, ())
        and partition.topic_id in sharer.topic_ids
    ]
    return sorted(former, key=lambda member_id: _first_hash(sharers[member_id].previous_shares, partition))


def _first_hash(shares: Shares, partition: TopicIdPartition) -> int:
    return shares[partition].first_hash if partition in shares else 0


def _sizes(
    former: Mapping[TopicIdPartition, Sequence[str]], member_count: int
) -> dict[TopicIdPartition, int]:
    """The number of members of each partition. If they differ, partitions with more former members get one
    more.
    """
    size, rest = divmod(member_count, len(former))
    by_former = sorted(former, key=lambda partition: -len(former[partition]))
    return {partition: size + (index < rest) for index, partition in enumerate(by_former)}
