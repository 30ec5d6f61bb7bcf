"""DeleteGroups (key 42, KIP-229, KIP-1331): the messages of version 3."""

from barnabas.protocol.newer.delete_groups_v3 import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

__all__ = [
    "DeletableGroupResult",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
]
