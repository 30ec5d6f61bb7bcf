"""The decoder of ShareFetch requests, compared with kio."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.decode.acknowledgements import ENCODED_TOPICS_MAX
from barnabas.protocol.decode.share_fetch import decode_share_fetch
from barnabas.protocol.errors import FrameError
from barnabas.protocol.primitive import milliseconds
from barnabas.protocol.varint import unsigned_varint
from tests.protocol.acknowledgement_requests import (
    INT32S,
    NAMES,
    TOPICS,
    VERSIONS,
    ZERO_ID,
    kio_topics,
    request_class,
    share_fetch_body,
)
from tests.protocol.filled_messages import filled, made, written


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
def test_requests_of_kio_are_decoded(version: int, topics: Any, forgotten: Any, **values: Any) -> None:
    kio_class = request_class(ApiKey.SHARE_FETCH, version)
    request = made(
        kio_class,
        topics=kio_topics(kio_class, topics),
        forgotten_topics_data=forgotten_topics(kio_class, forgotten),
        **values,
    )

    decoded = decode_share_fetch(version, written(request), 0)
    assert decoded._replace(encoded_topics=b"") == share_fetch_body(request)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (b"\x00", False),
        (b"\x01\xe2\xc4\x01\x00", True),
        (b"\x02\x07\x03abc\xe2\xc4\x01\x00", True),
        (b"\x02\xe2\xc4\x01\x02xy\xe3\xc4\x01\x00", True),
        (b"\x01\xe3\xc4\x01\x00", False),
    ],
)
def test_the_known_tagged_field_is_found_among_others(tags: bytes, expected: bool) -> None:
    body = _BEFORE_TAGS + tags
    assert decode_share_fetch(2, body, 0).without_records is expected


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (b"\x00", None),
        (b"\x01\x90N\x04\x00\x00\x03\xe8", 1_000),
        (b"\x01\x90N\x04\xff\xff\xff\xff", -1),
        (b"\x02\x90N\x04\x00\x00\x00\x01\xe2\xc4\x01\x00", 1),
    ],
)
def test_the_duration_of_locks_is_a_tagged_field(tags: bytes, expected: int | None) -> None:
    assert decode_share_fetch(1, _BEFORE_TAGS_V1 + tags, 0).lock_duration_ms == expected
    assert decode_share_fetch(2, _BEFORE_TAGS + tags, 0).lock_duration_ms == expected


@pytest.mark.parametrize("content", [b"", b"\x00\x00\x03", b"\x00\x00\x00\x03\xe8"])
def test_a_duration_of_another_size_is_malformed(content: bytes) -> None:
    with pytest.raises(FrameError, match=f"A duration of locks has {len(content)} bytes instead of 4"):
        decode_share_fetch(2, _BEFORE_TAGS + b"\x01\x90N" + bytes([len(content)]) + content, 0)


_BEFORE_TAGS = b"\x02g\x02m" + bytes(24) + b"\x00\x00" + b"\x01\x01"
_BEFORE_TAGS_V1 = b"\x02g\x02m" + bytes(24) + b"\x01\x01"


def forgotten_topics(kio_class: type, forgotten: Any) -> Any:
    topic_class = import_module(kio_class.__module__).ForgottenTopic
    return tuple(topic_class(topic_id=topic_id, partitions=tuple(indexes)) for topic_id, indexes in forgotten)


def test_version_1_renews_nothing() -> None:
    body = decode_share_fetch(1, written(filled(request_class(ApiKey.SHARE_FETCH, 1))), 0)

    assert body.share_acquire_mode == 0
    assert not body.is_renew_ack


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


def test_the_topics_are_kept_as_they_were_sent() -> None:
    topics = b"\x02" + bytes(16) + b"\x02" + bytes(4) + b"\x01\x00\x00" + b"\x01"
    frame = b"\x02g\x02m" + bytes(24) + b"\x00\x00" + topics + b"\x00"
    assert decode_share_fetch(2, frame, 0).encoded_topics == topics


def test_many_topics_are_not_copied() -> None:
    partition = bytes(4) + b"\x01\x00"
    count = ENCODED_TOPICS_MAX // len(partition) + 1
    topics = b"\x02" + bytes(16) + unsigned_varint(count + 1) + partition * count + b"\x00\x01"
    body = decode_share_fetch(2, b"\x02g\x02m" + bytes(24) + b"\x00\x00" + topics + b"\x00", 0)
    assert (body.encoded_topics, len(body.topics[0].partitions)) == (b"", count)
