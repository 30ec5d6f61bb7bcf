"""DescribeCluster: one broker, and clients that ask for controllers."""

import pytest
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest

from barnabas.broker.handlers.describe_cluster import handle_describe_cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8
from tests.broker.handlers.admin_broker import AdminBroker, ask


def request(endpoint_type: int = 1, *, operations: bool = False) -> DescribeClusterRequest:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=operations,
        endpoint_type=i8(endpoint_type),
        include_fenced_brokers=False,
    )


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_cluster_is_this_broker(broker: AdminBroker, version: int) -> None:
    response = await ask(broker, handle_describe_cluster, request(), version=version)
    assert (response.error_code, response.error_message) == (ErrorCode.none, None)
    assert (response.cluster_id, response.controller_id) == ("cluster", 1)
    assert [(one.broker_id, one.host, one.port, one.rack, one.is_fenced) for one in response.brokers] == [
        (1, "broker.example", 19092, None, False)
    ]
    assert response.cluster_authorized_operations == -(2**31)


async def test_authorized_operations_are_those_of_kafka_without_an_authorizer(broker: AdminBroker) -> None:
    response = await ask(broker, handle_describe_cluster, request(operations=True))
    assert response.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.mismatched_endpoint_type), (9, ErrorCode.unsupported_endpoint_type)],
)
async def test_other_endpoints_are_refused(broker: AdminBroker, endpoint_type: int, code: ErrorCode) -> None:
    response = await ask(broker, handle_describe_cluster, request(endpoint_type))
    assert (response.error_code, response.cluster_id, response.brokers) == (code, "", ())
