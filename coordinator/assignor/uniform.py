"""The assignor named "uniform" (KIP-848): about as many partitions for each member, with few moves.

Members that read the same topics share one pool (this module). Otherwise each topic is spread over its
readers, and the loads are evened out (`uniform_mixed`). Both break ties as Apache Kafka does, so that a group
gets the same assignment from both brokers. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.coordinator.assignor import uniform_mixed
from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.exclusive import ExclusiveMember, PartitionCounts, as_assignment
from barnabas.coordinator.assignor.java_hash_map import (
    copied_capacity,
    default_capacity,
    int_walk_order,
    uuid_hash,
    walk_order,
)

NAME: Final = "uniform"


def assign(
    members: Mapping[str, ExclusiveMember], partition_counts: PartitionCounts, homogeneous: bool
) -> dict[str, Assignment]:
    """Assign the partitions of the topics that members read; empty without such topics."""
    if not any(member.topic_ids for member in members.values()):
        return {}
    if not homogeneous:
        return uniform_mixed.assign(members, partition_counts)
    topic_ids = next(iter(members.values())).topic_ids
    topics = walk_order(topic_ids, uuid_hash, copied_capacity(len(topic_ids)))
    return _Pool(members, {topic_id: partition_counts[topic_id] for topic_id in topics}).assign()


class _Room(NamedTuple):
    """A member that is to get more partitions, and how many."""

    member_id: str
    partition_count: int


class _Pool:
    """All partitions, for members that read all topics; members with too many give some up."""

    def __init__(self, members: Mapping[str, ExclusiveMember], partition_counts: PartitionCounts) -> None:
        self._members = members
        self._topics = partition_counts
        self._free = list(self._never_assigned())
        self._kept: dict[str, dict[UUID, set[int]]] = {}
        self._least, self._extras = divmod(sum(partition_counts.values()), len(members))

    def assign(self) -> dict[str, Assignment]:
        rooms: list[_Room] = []
        for number, (member_id, member) in enumerate(self._members.items()):
            room = self._keep(member_id, member.previous, is_last=self._is_last(number))
            if room > 0:
                rooms.append(_Room(member_id, room))
        free = iter(self._free)
        for member_id, partition_count in rooms:
            for _, (topic_id, partition) in zip(range(partition_count), free, strict=False):
                self._kept[member_id].setdefault(topic_id, set()).add(partition)
        return {member_id: as_assignment(kept) for member_id, kept in self._kept.items()}

    def _never_assigned(self) -> Iterator[tuple[UUID, int]]:
        taken: dict[UUID, set[int]] = {}
        for member in self._members.values():
            for topic_id, partitions in member.previous.items():
                taken.setdefault(topic_id, set()).update(partitions)
        for topic_id, partition_count in self._topics.items():
            for partition in range(partition_count):
                if partition not in taken.get(topic_id, ()):
                    yield topic_id, partition

    def _is_last(self, number: int) -> bool:
        """Whether the members from this one on are at most as many as the extra partitions that are left."""
        return len(self._members) - number <= self._extras

    def _keep(self, member_id: str, previous: Assignment, *, is_last: bool) -> int:
        """The partitions that a member keeps; returns how many more it is to get."""
        may_have_extra = self._extras > 0
        room = self._least + may_have_extra
        kept = self._kept[member_id] = {}
        for topic_id, partitions in _walked(previous):
            if topic_id not in self._topics:
                continue
            kept_count = min(room, len(partitions))
            room -= kept_count
            kept[topic_id] = set(partitions[:kept_count])
            self._free.extend((topic_id, partition) for partition in partitions[kept_count:])
        if may_have_extra and room > 0 and not is_last:
            # A member that already has the extra partition keeps it.
            may_have_extra = False
            room -= 1
        self._extras -= may_have_extra
        return room


def _walked(assignment: Assignment) -> Iterable[tuple[UUID, Sequence[int]]]:
    """Topics and partitions in the order of Kafka's hash maps."""
    for topic_id in walk_order(assignment, uuid_hash, default_capacity(len(assignment))):
        partitions = assignment[topic_id]
        yield topic_id, int_walk_order(partitions, copied_capacity(len(partitions)))
