"""The assignor named "range" (KIP-848): of each topic, a member gets consecutive partitions.

Members are in the order of their instance ids; members without one follow in the order of their member ids.
So members that read the same topics get the same partitions of all topics with equal partition counts, which
joins need. Earlier assignments do not matter. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.exclusive import ExclusiveMember, PartitionCounts

NAME: Final = "range"


def assign(
    members: Mapping[str, ExclusiveMember], partition_counts: PartitionCounts, homogeneous: bool
) -> dict[str, Assignment]:
    """Assign the partitions of the topics that members read. The result does not depend on `homogeneous`."""
    readers: dict[UUID, list[str]] = {}
    for member_id in sorted(members, key=lambda member_id: _place(member_id, members[member_id].instance_id)):
        for topic_id in members[member_id].topic_ids:
            readers.setdefault(topic_id, []).append(member_id)
    assigned: dict[str, dict[UUID, tuple[int, ...]]] = {member_id: {} for member_id in members}
    for topic_id, member_ids in readers.items():
        least, extra = divmod(partition_counts[topic_id], len(member_ids))
        start = 0
        for number, member_id in enumerate(member_ids):
            end = start + least + (number < extra)
            if end > start:
                assigned[member_id][topic_id] = tuple(range(start, end))
            start = end
    return dict(assigned)


def _place(member_id: str, instance_id: str | None) -> tuple[bool, bytes]:
    # Java compares strings by their UTF-16 code units.
    name = member_id if instance_id is None else instance_id
    return instance_id is None, name.encode("utf-16-be", "surrogatepass")
