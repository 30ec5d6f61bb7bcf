"""The "uniform" assignor for members that read different topics (KIP-848).

Members keep their partitions of topics that they still read. Partitions without a member are assigned topic
by topic, topics with the most partitions per reader first, to the reader with the least load. Then partitions
of each topic move from its readers with the greatest loads to those with the least, until no move helps or
the rounds are used up. Ties are broken as in Apache Kafka. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.exclusive import ExclusiveMember, PartitionCounts, as_assignment
from barnabas.coordinator.assignor.load_levels import LoadLevels

ROUNDS_MAX: Final = 16
"""Rounds over all topics that even out the loads; groups in use need one or two."""

_NO_OWNER = -1


def assign(
    members: Mapping[str, ExclusiveMember], partition_counts: PartitionCounts
) -> dict[str, Assignment]:
    """Assign the partitions of the topics that members read; there is at least one."""
    return _Mixed(members, partition_counts).assign()


class _Mixed:
    """Members are numbered in the given order."""

    def __init__(self, members: Mapping[str, ExclusiveMember], partition_counts: PartitionCounts) -> None:
        self._members = members
        self._readers: dict[UUID, list[int]] = {}
        for number, member in enumerate(members.values()):
            for topic_id in member.topic_ids:
                self._readers.setdefault(topic_id, []).append(number)
        self._owners = {topic_id: [_NO_OWNER] * partition_counts[topic_id] for topic_id in self._readers}
        self._loads = [0] * len(members)

    def assign(self) -> dict[str, Assignment]:
        self._keep_previous()
        self._hand_out()
        self._even_out()
        assigned: list[dict[UUID, list[int]]] = [{} for _ in self._members]
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                if owner != _NO_OWNER:
                    assigned[owner].setdefault(topic_id, []).append(partition)
        return dict(zip(self._members, map(as_assignment, assigned), strict=True))

    def _keep_previous(self) -> None:
        for number, member in enumerate(self._members.values()):
            for topic_id, partitions in member.previous.items():
                if topic_id in member.topic_ids:
                    for partition in partitions:
                        self._owners[topic_id][partition] = number
                    self._loads[number] += len(partitions)

    def _hand_out(self) -> None:
        free = {
            topic_id: [partition for partition, owner in enumerate(owners) if owner == _NO_OWNER]
            for topic_id, owners in self._owners.items()
            if _NO_OWNER in owners
        }
        for topic_id in self._in_order(free):
            levels = LoadLevels(self._readers[topic_id], self._loads)
            for partition in free[topic_id]:
                self._give(topic_id, partition, levels.next_least())

    def _even_out(self) -> None:
        """Repeat until every topic was tried since the last move."""
        topic_ids = self._in_order(topic for topic, readers in self._readers.items() if len(readers) > 1)
        last_moved = None
        for _ in range(ROUNDS_MAX):
            for topic_id in topic_ids:
                if topic_id == last_moved:
                    return
                if self._even_out_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _even_out_topic(self, topic_id: UUID) -> bool:
        """Returns whether a partition of the topic was moved."""
        levels = LoadLevels(self._readers[topic_id], self._loads)
        if levels.spread <= 1:
            return False
        held: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            held.setdefault(owner, []).append(partition)
        has_moved = False
        while not levels.are_even():
            giver = levels.next_most(lambda number: bool(held.get(number)))
            if giver is None:
                break
            partition = held[giver].pop()
            taker = levels.next_least()
            if levels.are_even():
                break
            self._give(topic_id, partition, taker)
            has_moved = True
        return has_moved

    def _give(self, topic_id: UUID, partition: int, number: int) -> None:
        owners = self._owners[topic_id]
        if owners[partition] != _NO_OWNER:
            self._loads[owners[partition]] -= 1
        owners[partition] = number
        self._loads[number] += 1

    def _in_order(self, topic_ids: Iterable[UUID]) -> list[UUID]:
        """Most partitions per reader first, then fewest readers, then by id."""

        def place(topic_id: UUID) -> tuple[float, int, tuple[int, int]]:
            reader_count = len(self._readers[topic_id])
            return -len(self._owners[topic_id]) / reader_count, reader_count, _signed_halves(topic_id)

        return sorted(topic_ids, key=place)


def _signed_halves(topic_id: UUID) -> tuple[int, int]:
    """Java compares ids by their halves, which are signed."""
    high, low = topic_id.bytes[:8], topic_id.bytes[8:]
    return int.from_bytes(high, "big", signed=True), int.from_bytes(low, "big", signed=True)
