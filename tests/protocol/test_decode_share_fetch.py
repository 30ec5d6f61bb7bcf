from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.codec import decode_request, message_class
from barnabas.protocol.decode.share_fetch import ShareFetchBody, decode_share_fetch
from barnabas.protocol.errors import FrameError
from barnabas.protocol.primitive import milliseconds, to_milliseconds
from tests.protocol.acknowledgement_requests import (
    INT32S,
    NAMES,
    TOPICS,
    ZERO_ID,
    as_ack_topics,
    damaged,
    kio_topics,
    read_by_kio,
)
from tests.protocol.filled_messages import filled, from_the_future, made, read, written
from tests.protocol.recorded_frames import RecordedFrame, served_frames

VERSIONS = (1, 2)


def as_body(request: Any) -> ShareFetchBody:
    """What kio has read, in the decoder's own tuples."""
    return ShareFetchBody(
        request.group_id,
        request.member_id,
        request.share_session_epoch,
        to_milliseconds(request.max_wait),
        request.min_bytes,
        request.max_bytes,
        request.max_records,
        request.batch_size,
        getattr(request, "share_acquire_mode", 0),
        getattr(request, "is_renew_ack", False),
        as_ack_topics(request.topics),
        [(topic.topic_id or ZERO_ID, list(topic.partitions)) for topic in request.forgotten_topics_data],
    )


def request_class(version: int) -> Any:
    return message_class(ApiKey.SHARE_FETCH, version, "request")


@pytest.mark.parametrize(
    "recorded", served_frames("request", ApiKey.SHARE_FETCH), ids=lambda recorded: recorded.title
)
def test_recorded_requests_are_read_as_kio_reads_them(recorded: RecordedFrame) -> None:
    body = decode_share_fetch(recorded.version, recorded.frame, recorded.body_offset)

    assert body == as_body(read(request_class(recorded.version), recorded.body))


@settings(deadline=None)
@given(
    version=st.sampled_from(VERSIONS),
    topics=TOPICS,
    forgotten=st.lists(st.tuples(st.uuids() | st.just(ZERO_ID), st.lists(INT32S)), max_size=3),
    group_id=NAMES,
    member_id=NAMES,
    share_session_epoch=INT32S,
    max_wait=INT32S.map(milliseconds),
    min_bytes=INT32S,
    max_bytes=INT32S,
    max_records=INT32S,
    batch_size=INT32S,
    share_acquire_mode=st.integers(-128, 127),
    is_renew_ack=st.booleans(),
)
def test_requests_are_read_as_kio_wrote_them(
    version: int, topics: Any, forgotten: Any, **values: Any
) -> None:
    kio_class = request_class(version)
    request = made(
        kio_class,
        topics=kio_topics(kio_class, topics),
        forgotten_topics_data=forgotten_topics(kio_class, forgotten),
        **values,
    )

    assert decode_share_fetch(version, written(request), 0) == as_body(request)


def forgotten_topics(kio_class: type, forgotten: Any) -> Any:
    topic_class = import_module(kio_class.__module__).ForgottenTopic
    return tuple(topic_class(topic_id=topic_id, partitions=tuple(indexes)) for topic_id, indexes in forgotten)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_codec_hands_out_bodies(version: int) -> None:
    request = filled(request_class(version))

    body = decode_request(ApiKey.SHARE_FETCH, version, b"header" + written(request), 6)

    assert body == as_body(request)


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_tagged_fields_are_skipped(version: int) -> None:
    request = filled(request_class(version))

    assert decode_share_fetch(version, written(from_the_future(request)), 0) == as_body(request)


def test_version_1_renews_nothing() -> None:
    body = decode_share_fetch(1, written(filled(request_class(1))), 0)

    assert body.share_acquire_mode == 0
    assert not body.is_renew_ack


@settings(max_examples=500, deadline=None)
@given(version=st.sampled_from(VERSIONS), topics=TOPICS, is_newer=st.booleans(), data=st.data())
def test_damaged_requests_are_read_as_kio_reads_them_or_refused(
    version: int, topics: Any, is_newer: bool, data: st.DataObject
) -> None:
    kio_class = request_class(version)
    request: Any = filled(kio_class)
    request = dataclasses.replace(request, topics=request.topics + kio_topics(kio_class, topics))
    body = damaged(written(from_the_future(request) if is_newer else request), data)

    expected = read_by_kio(kio_class, body)

    if expected is not None:
        assert decode_share_fetch(version, body, 0) == as_body(expected)
    else:
        with pytest.raises(FrameError):
            decode_share_fetch(version, body, 0)


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"\x00" + b"\x01\x00", id="topics"),
        pytest.param(b"\x01" + b"\x00" + b"\x00", id="forgotten topics"),
        pytest.param(b"\x01" + b"\x02" + bytes(16) + b"\x00" + b"\x00\x00", id="forgotten partitions"),
    ],
)
def test_null_arrays_are_refused(rest: bytes) -> None:
    with pytest.raises(FrameError, match="null"):
        decode_share_fetch(1, bytes(26) + rest, 0)
