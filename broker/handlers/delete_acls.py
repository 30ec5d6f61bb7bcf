"""DeleteAcls (key 31, versions 1 to 3; KIP-140, KIP-290): removes the ACLs that match filters.

The broker has no authorizer, so each filter is SECURITY_DISABLED, as in a Kafka without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.delete_acls.v3.request import DeleteAclsRequest
from kio.schema.delete_acls.v3.response import DeleteAclsFilterResult, DeleteAclsResponse

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext


class Parts(NamedTuple):
    """Nothing: there are no ACLs."""


def handle_delete_acls(parts: Parts, context: RequestContext, request: DeleteAclsRequest) -> Reply:
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.security_disabled,
        error_message="The broker has no authorizer.",
        matching_acls=(),
    )
    return DeleteAclsResponse(throttle_time=milliseconds(0), filter_results=(refused,) * len(request.filters))
