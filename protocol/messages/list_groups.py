"""ListGroups (key 16, KIP-518, KIP-848): the messages of version 5.

Filters that a version lacks arrive empty, which filters nothing.
"""

from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListedGroup, ListGroupsResponse

__all__ = [
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListedGroup",
]
