"""CreateAcls (key 30, versions 1 to 3; KIP-140, KIP-290): adds ACLs.

The broker has no authorizer, so each one is SECURITY_DISABLED, as in a Kafka without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.create_acls.v3.request import CreateAclsRequest
from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext


class Parts(NamedTuple):
    """Nothing: there are no ACLs."""


def handle_create_acls(parts: Parts, context: RequestContext, request: CreateAclsRequest) -> Reply:
    refused = AclCreationResult(
        error_code=ErrorCode.security_disabled, error_message="The broker has no authorizer."
    )
    return CreateAclsResponse(throttle_time=milliseconds(0), results=(refused,) * len(request.creations))
