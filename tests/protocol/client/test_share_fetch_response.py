"""A client's decoder of ShareFetch responses, from this project's encoder and from Apache Kafka."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.share_fetch_response import ShareFetchReply, decode_share_fetch_response
from barnabas.protocol.encode.share_fetch import (
    ShareFetchPartitionResult,
    ShareFetchTopicResult,
    encode_share_fetch_response,
)
from barnabas.protocol.encode.throttle import with_throttle_time
from barnabas.protocol.errors import FrameError
from barnabas.protocol.extended.runs import RunKind, Runs, unpack_runs
from tests.protocol.recorded_frames import RecordedFrame, served_frames
from tests.protocol.result_strategies import endpoints, error_codes, messages, numbers

PARTITIONS = st.builds(
    ShareFetchPartitionResult,
    numbers(31),
    error_codes,
    messages,
    error_codes,
    messages,
    st.just(()) | st.tuples(st.binary(min_size=1, max_size=300)),
    st.lists(st.tuples(numbers(63), numbers(63), numbers(15)), max_size=200),
    numbers(31),
    numbers(31),
    st.none() | st.builds(Runs, st.sampled_from(RunKind), numbers(15)),
)
REPLIES = st.builds(
    ShareFetchReply,
    numbers(31),
    error_codes,
    messages,
    numbers(31),
    st.lists(st.builds(ShareFetchTopicResult, st.uuids(), st.lists(PARTITIONS, max_size=2)), max_size=2),
    endpoints,
)


def encoded(reply: ShareFetchReply, version: int = 2) -> bytes:
    buffers = encode_share_fetch_response(
        version,
        reply.error_code,
        reply.error_message,
        reply.acquisition_lock_timeout_ms,
        reply.topics,
        node_endpoints=reply.node_endpoints,
    )
    return b"".join(with_throttle_time(ApiKey.SHARE_FETCH, version, buffers, reply.throttle_time_ms))


@given(REPLIES, st.sampled_from([1, 2]))
def test_a_response_survives_encoding_and_decoding(reply: ShareFetchReply, version: int) -> None:
    assert decode_share_fetch_response(version, encoded(reply, version), 0) == reply


@pytest.mark.parametrize(
    "recorded", [pytest.param(one, id=one.title) for one in served_frames("response", ApiKey.SHARE_FETCH)]
)
def test_responses_of_apache_kafka_are_read(recorded: RecordedFrame) -> None:
    reply = decode_share_fetch_response(recorded.version, recorded.frame, recorded.body_offset)
    assert encoded(reply, recorded.version) == recorded.body


def test_records_are_a_view_of_the_frame() -> None:
    partition = ShareFetchPartitionResult(0, 0, None, 0, None, (b"records",), [(0, 0, 1)])
    body = encoded(ShareFetchReply(0, 0, None, 0, [ShareFetchTopicResult(UUID(int=7), [partition])], []))
    (records,) = decode_share_fetch_response(2, body, 0).topics[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records.obj is body


def test_an_unknown_kind_of_runs_is_ignored() -> None:
    assert unpack_runs(b"\1\0\5") == Runs(RunKind.KEYS, 5)
    assert unpack_runs(b"\3\0\5") is None


def test_a_description_of_runs_of_another_size_is_refused() -> None:
    with pytest.raises(FrameError):
        unpack_runs(b"\1\0")


@given(st.data())
def test_a_response_that_is_cut_short_is_refused(data: st.DataObject) -> None:
    body = encoded(data.draw(REPLIES))
    with pytest.raises(FrameError):
        decode_share_fetch_response(2, body[: data.draw(st.integers(0, len(body) - 1))], 0)
