"""What the assignors of consumer groups have in common: each partition goes to one member (KIP-848).

Which of them there are is in `consumer_assignors`. Pure: no clock, no chance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment


class ExclusiveMember(NamedTuple):
    """What an assignor knows of a member."""

    topic_ids: Collection[UUID]
    """The topics that it reads and that exist, without repetition."""
    previous: Assignment
    """Its place in the last target assignment."""
    instance_id: str | None = None


PartitionCounts: TypeAlias = Mapping[UUID, int]
"""How many partitions each topic has that some member reads."""

ExclusiveAssignor: TypeAlias = Callable[
    [Mapping[str, ExclusiveMember], PartitionCounts, bool], dict[str, Assignment]
]
"""Called with the members by id, in hash map order, the topics, and whether all members read the same ones.
Members that get nothing may be left out of the result."""


def as_assignment(partitions: Mapping[UUID, Collection[int]]) -> Assignment:
    """Partitions by topic, in any order, as an assignment."""
    return {topic_id: tuple(sorted(ones)) for topic_id, ones in partitions.items() if ones}
