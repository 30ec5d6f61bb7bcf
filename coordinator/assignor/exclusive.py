"""The common parts of the assignors of consumer groups: each partition goes to one member (KIP-848).

`consumer_assignors` lists them. Pure: no clock, no chance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment


class ExclusiveMember(NamedTuple):
    """A member, as an assignor sees it."""

    topic_ids: Collection[UUID]
    """The existing topics that it reads, each once."""
    previous: Assignment
    """Its partitions in the last target assignment."""
    instance_id: str | None = None


PartitionCounts: TypeAlias = Mapping[UUID, int]
"""The number of partitions of each topic that a member reads."""

ExclusiveAssignor: TypeAlias = Callable[
    [Mapping[str, ExclusiveMember], PartitionCounts, bool], dict[str, Assignment]
]
"""Called with the members by id, in hash map order, the topics, and whether all members read the same topics.
The result may leave out members without partitions.
"""


def as_assignment(partitions: Mapping[UUID, Collection[int]]) -> Assignment:
    """Partitions by topic, in any order, as an assignment."""
    return {topic_id: tuple(sorted(ones)) for topic_id, ones in partitions.items() if ones}
