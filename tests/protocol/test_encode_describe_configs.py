"""DescribeConfigs responses assembled from their settings equal the whole message, byte for byte."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.codec import encode_response
from barnabas.protocol.encode.describe_configs import (
    encode_end,
    encode_resource,
    encode_response_start,
    setting_encoder,
)
from barnabas.protocol.primitive import milliseconds
from tests.protocol.filled_messages import filled

SPEC = APIS[ApiKey.DESCRIBE_CONFIGS]


def encoded(version: int, response: Any) -> bytes:
    buffers = [encode_response_start(version, len(response.results))]
    for one in response.results:
        buffers += encode_resource(
            version,
            one.error_code,
            one.error_message,
            one.resource_type,
            one.resource_name,
            list(map(setting_encoder(version), one.configs)),
        )
    return b"".join([*buffers, encode_end(version)])


@pytest.mark.parametrize("version", range(SPEC.min_version, SPEC.max_version + 1))
def test_parts_make_a_response_of_every_version(version: int) -> None:
    response: Any = dataclasses.replace(filled(DescribeConfigsResponse), throttle_time=milliseconds(0))
    undocumented = dataclasses.replace(response.results[0].configs[0], value=None, documentation=None)
    bare = dataclasses.replace(
        response.results[0], configs=(undocumented,), error_message="", resource_type=-1
    )
    response = dataclasses.replace(response, results=(*response.results, bare))

    assert [encoded(version, response)] == encode_response(SPEC.key, version, response)
