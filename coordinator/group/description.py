"""Groups of every type as administrators see them: the common types of ListGroups and the describing
requests.
"""

from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

MemberT = TypeVar("MemberT")


class ListedGroup(NamedTuple):
    """A group in a list."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str
    member_count: int


class DescribedTopic(NamedTuple):
    """Partitions of one topic, ascending."""

    topic_id: UUID
    topic_name: str
    partitions: tuple[int, ...]


class DescribedGroup(NamedTuple, Generic[MemberT]):
    """A share group or a consumer group; `state` is the name of its state."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: list[MemberT]
