"""DescribeAcls (key 29, versions 1 to 3; KIP-140, KIP-290): the ACLs that match a filter.

The broker has no authorizer, so it answers SECURITY_DISABLED, as a Kafka without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.schema.describe_acls.v3.response import DescribeAclsResponse

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext


class Parts(NamedTuple):
    """Nothing: there are no ACLs."""


def handle_describe_acls(parts: Parts, context: RequestContext, request: DescribeAclsRequest) -> Reply:
    return DescribeAclsResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.security_disabled,
        error_message="The broker has no authorizer.",
        resources=(),
    )
