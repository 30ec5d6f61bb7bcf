"""DescribeCluster (key 60, versions 0 to 2; KIP-700, KIP-919, KIP-1073): the brokers of the cluster.

There is one broker, and it is never fenced. Its endpoint is one for brokers, so a client that asks for
controllers gets MISMATCHED_ENDPOINT_TYPE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_cluster.v2.response import DescribeClusterBroker, DescribeClusterResponse

from barnabas.broker.handlers.metadata import CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import BrokerId, i8, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext

_BROKERS, _CONTROLLERS = 1, 2


class Parts(NamedTuple):
    cluster_id: str
    node_id: int


def handle_describe_cluster(parts: Parts, context: RequestContext, request: DescribeClusterRequest) -> Reply:
    if request.endpoint_type == _CONTROLLERS:
        return _refused(
            ErrorCode.mismatched_endpoint_type,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        message = f"Unsupported endpoint type {request.endpoint_type}"
        return _refused(ErrorCode.unsupported_endpoint_type, message)
    asked = request.include_cluster_authorized_operations
    node_id, listener = BrokerId(parts.node_id), context.listener
    return DescribeClusterResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        endpoint_type=i8(_BROKERS),
        cluster_id=parts.cluster_id,
        controller_id=node_id,
        brokers=(
            DescribeClusterBroker(
                broker_id=node_id,
                host=listener.advertised_host,
                port=i32(listener.advertised_port),
                is_fenced=False,
            ),
        ),
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else OPERATIONS_NOT_ASKED,
    )


def _refused(error_code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        throttle_time=milliseconds(0), error_code=error_code, error_message=message, cluster_id="", brokers=()
    )
