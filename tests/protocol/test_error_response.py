"""Every response can carry one error code, in every served version."""

from __future__ import annotations

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v11.response import ListOffsetsResponse
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.codec import OWN_DECODERS, encode_response, shape_version
from barnabas.protocol.error_response import error_response
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.primitive import BrokerId, TopicName, i8, i32, i64, milliseconds

CODE = ErrorCode.not_leader_or_follower


@pytest.mark.parametrize("api", [one for one in APIS if one not in OWN_DECODERS], ids=lambda one: one.name)
def test_a_response_of_each_version_can_be_made_and_encoded(api: ApiKey) -> None:
    for version in range(APIS[api].min_version, APIS[api].max_version + 1):
        shape = shape_version(api, version)
        request = error_response(message_class(api, shape, "request"), None, ErrorCode.none)
        response = error_response(message_class(api, shape, "response"), request, CODE)
        assert encode_response(api, version, response)


def test_a_response_with_a_code_of_its_own_has_nothing_else() -> None:
    response = error_response(ShareGroupHeartbeatResponse, None, CODE)
    assert response.error_code is CODE
    assert response.assignment is None


def test_each_partition_of_the_request_gets_the_code() -> None:
    partitions = tuple(
        ListOffsetsPartition(partition_index=i32(index), timestamp=i64(-1)) for index in (0, 3)
    )
    request = ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=i8(0),
        topics=(ListOffsetsTopic(name=TopicName("orders"), partitions=partitions),),
        timeout=milliseconds(0),
    )
    (topic,) = error_response(ListOffsetsResponse, request, CODE).topics
    assert topic.name == "orders"
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [(0, CODE), (3, CODE)]


def test_each_key_of_a_plain_list_gets_the_code() -> None:
    request = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=("a", "b"))
    found = error_response(FindCoordinatorResponse, request, CODE).coordinators
    assert [(one.key, one.error_code) for one in found] == [("a", CODE), ("b", CODE)]
