"""JoinGroup (key 11, KIP-345, KIP-394, KIP-559, KIP-814): the messages of version 9.

Version 0 has no rebalance timeout, which arrives as -1: the session's is both then.
"""

from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse, JoinGroupResponseMember

__all__ = [
    "JoinGroupRequest",
    "JoinGroupRequestProtocol",
    "JoinGroupResponse",
    "JoinGroupResponseMember",
]
