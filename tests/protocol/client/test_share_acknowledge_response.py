"""A client's decoder of ShareAcknowledge responses, from this project's encoder and from Apache Kafka."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.share_acknowledge_response import (
    ShareAcknowledgeReply,
    decode_share_acknowledge_response,
)
from barnabas.protocol.encode.share_acknowledge import (
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
    encode_share_acknowledge_response,
)
from barnabas.protocol.encode.throttle import with_throttle_time
from barnabas.protocol.errors import FrameError
from tests.protocol.recorded_frames import RecordedFrame, served_frames
from tests.protocol.result_strategies import endpoints, error_codes, messages, numbers

PARTITIONS = st.builds(
    ShareAcknowledgePartitionResult, numbers(31), error_codes, messages, numbers(31), numbers(31)
)
TOPICS = st.lists(
    st.builds(ShareAcknowledgeTopicResult, st.uuids(), st.lists(PARTITIONS, max_size=2)), max_size=2
)
REPLIES = st.builds(ShareAcknowledgeReply, numbers(31), error_codes, messages, numbers(31), TOPICS, endpoints)


def encoded(reply: ShareAcknowledgeReply, version: int = 2) -> bytes:
    buffers = encode_share_acknowledge_response(
        version,
        reply.error_code,
        reply.error_message,
        reply.acquisition_lock_timeout_ms,
        reply.topics,
        node_endpoints=reply.node_endpoints,
    )
    return b"".join(with_throttle_time(ApiKey.SHARE_ACKNOWLEDGE, version, buffers, reply.throttle_time_ms))


@given(REPLIES)
def test_a_response_survives_encoding_and_decoding(reply: ShareAcknowledgeReply) -> None:
    assert decode_share_acknowledge_response(2, encoded(reply), 0) == reply
    older = reply._replace(acquisition_lock_timeout_ms=0)
    assert decode_share_acknowledge_response(1, encoded(reply, 1), 0) == older


@pytest.mark.parametrize(
    "recorded",
    [pytest.param(one, id=one.title) for one in served_frames("response", ApiKey.SHARE_ACKNOWLEDGE)],
)
def test_responses_of_apache_kafka_are_read(recorded: RecordedFrame) -> None:
    reply = decode_share_acknowledge_response(recorded.version, recorded.frame, recorded.body_offset)
    assert encoded(reply, recorded.version) == recorded.body


@given(st.data())
def test_a_response_that_is_cut_short_is_refused(data: st.DataObject) -> None:
    body = encoded(data.draw(REPLIES))
    with pytest.raises(FrameError):
        decode_share_acknowledge_response(2, body[: data.draw(st.integers(0, len(body) - 1))], 0)
