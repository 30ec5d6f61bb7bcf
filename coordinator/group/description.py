"""Groups of every type as administrators see them: the common types of ListGroups and the describing
requests.
"""

from typing import NamedTuple
from uuid import UUID


class ListedGroup(NamedTuple):
    """A group in a list."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


class DescribedTopic(NamedTuple):
    """Partitions of one topic, ascending."""

    topic_id: UUID
    topic_name: str
    partitions: tuple[int, ...]
