"""FindCoordinator responses assembled from keys and nodes equal the whole message, byte for byte."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.codec import encode_response
from barnabas.protocol.encode.find_coordinator import (
    RESPONSE_END,
    encode_coordinator_of,
    encode_node,
    encode_response_start,
)
from barnabas.protocol.primitive import milliseconds
from tests.protocol.filled_messages import filled

BATCH_FROM = 4


@pytest.mark.parametrize("version", range(BATCH_FROM, APIS[ApiKey.FIND_COORDINATOR].max_version + 1))
def test_parts_make_a_response_of_every_version(version: int) -> None:
    response: Any = dataclasses.replace(filled(FindCoordinatorResponse), throttle_time=milliseconds(0))

    buffers = [encode_response_start(len(response.coordinators))]
    for one in response.coordinators:
        node = encode_node(one.node_id, one.host, one.port, one.error_code, one.error_message)
        buffers.append(encode_coordinator_of(one.key, node))

    assert [b"".join([*buffers, RESPONSE_END])] == encode_response(ApiKey.FIND_COORDINATOR, version, response)
