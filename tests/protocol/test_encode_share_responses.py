"""The encoders of ShareFetch and ShareAcknowledge responses write the same bytes as kio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.encode.share_acknowledge import encode_share_acknowledge_response
from barnabas.protocol.encode.share_fetch import encode_share_fetch_response
from barnabas.protocol.encode.throttle import with_throttle_time
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.primitive import milliseconds, to_milliseconds
from barnabas.protocol.varint import Buffer
from tests.protocol.filled_messages import read, written
from tests.protocol.recorded_frames import RecordedFrame, served_frames
from tests.protocol.result_strategies import endpoints, error_codes, messages, numbers
from tests.protocol.share_responses import (
    acknowledge_response,
    acknowledge_results,
    acknowledge_topics,
    fetch_response,
    fetch_results,
    fetch_topics,
    lock_timeout_ms,
)


class Encoder(NamedTuple):
    """One of the two encoders, conversions between its tuples and kio's classes, and its topics."""

    api: ApiKey
    encode: Callable[..., list[Buffer]]
    as_results: Callable[[Any], Any]
    as_kio: Callable[..., Any]
    topics: st.SearchStrategy[Any]


ENCODERS = {
    "share fetch": Encoder(
        ApiKey.SHARE_FETCH, encode_share_fetch_response, fetch_results, fetch_response, fetch_topics
    ),
    "share acknowledge": Encoder(
        ApiKey.SHARE_ACKNOWLEDGE,
        encode_share_acknowledge_response,
        acknowledge_results,
        acknowledge_response,
        acknowledge_topics,
    ),
}
RECORDED = [
    pytest.param(encoder, recorded, id=recorded.title)
    for encoder in ENCODERS.values()
    for recorded in served_frames("response", encoder.api)
]
each_encoder = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)


@pytest.mark.parametrize(("encoder", "recorded"), RECORDED)
def test_recorded_responses_are_written_byte_by_byte(encoder: Encoder, recorded: RecordedFrame) -> None:
    response: Any = read(message_class(encoder.api, recorded.version, "response"), recorded.body)

    encoded = encoder.encode(
        recorded.version,
        response.error_code,
        response.error_message,
        lock_timeout_ms(response),
        encoder.as_results(response),
        node_endpoints=[
            NodeEndpoint(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints
        ],
    )
    throttle_time_ms = to_milliseconds(response.throttle_time)
    buffers = with_throttle_time(encoder.api, recorded.version, encoded, throttle_time_ms)

    assert b"".join(buffers) == recorded.body


@each_encoder
@given(
    data=st.data(),
    version=st.sampled_from([1, 2]),
    error_code=error_codes,
    error_message=messages,
    timeout_ms=numbers(31),
    throttle_time_ms=numbers(31),
    nodes=endpoints,
)
def test_responses_equal_those_of_kio(
    encoder: Encoder,
    data: st.DataObject,
    version: int,
    error_code: int,
    error_message: str | None,
    timeout_ms: int,
    throttle_time_ms: int,
    nodes: list[NodeEndpoint],
) -> None:
    topics = data.draw(encoder.topics)
    expected = encoder.as_kio(
        version,
        topics,
        timeout_ms,
        nodes,
        throttle_time=milliseconds(throttle_time_ms),
        error_code=ErrorCode(error_code),
        error_message=error_message,
    )

    encoded = encoder.encode(version, error_code, error_message, timeout_ms, topics, node_endpoints=nodes)
    buffers = with_throttle_time(encoder.api, version, encoded, throttle_time_ms)

    assert b"".join(buffers) == written(expected)


@each_encoder
@pytest.mark.parametrize("version", [0, 3])
def test_other_versions_are_an_assertion_error(encoder: Encoder, version: int) -> None:
    with pytest.raises(AssertionError):
        encoder.encode(version, 0, None, 0, [])
