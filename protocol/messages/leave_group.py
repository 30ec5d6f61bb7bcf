"""LeaveGroup (key 13, KIP-345, KIP-800): the messages of versions 2 and 5.

`Single` is versions 0 to 2, one member and one error; `Batch` is 3 to 5, several with an error each.
"""

from kio.schema.leave_group.v2.request import LeaveGroupRequest as LeaveGroupRequestSingle
from kio.schema.leave_group.v2.response import LeaveGroupResponse as LeaveGroupResponseSingle
from kio.schema.leave_group.v5.request import LeaveGroupRequest as LeaveGroupRequestBatch
from kio.schema.leave_group.v5.request import MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse as LeaveGroupResponseBatch
from kio.schema.leave_group.v5.response import MemberResponse

__all__ = [
    "LeaveGroupRequestBatch",
    "LeaveGroupRequestSingle",
    "LeaveGroupResponseBatch",
    "LeaveGroupResponseSingle",
    "MemberIdentity",
    "MemberResponse",
]
