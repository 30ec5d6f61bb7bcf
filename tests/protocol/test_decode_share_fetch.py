"""The decoder of ShareFetch requests, compared with kio."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.decode.share_fetch import decode_share_fetch
from barnabas.protocol.errors import FrameError
from barnabas.protocol.primitive import milliseconds
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
def test_requests_of_kio_are_decoded(version: int, topics: Any, forgotten: Any, **values: Any) -> None:
    kio_class = request_class(ApiKey.SHARE_FETCH, version)
    request = made(
        kio_class,
        topics=kio_topics(kio_class, topics),
        forgotten_topics_data=forgotten_topics(kio_class, forgotten),
        **values,
    )

    assert decode_share_fetch(version, written(request), 0) == share_fetch_body(request)


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
    body = b"\x02g\x02m" + bytes(24) + b"\x00\x00" + b"\x01\x01" + tags
    assert decode_share_fetch(2, body, 0).without_records is expected


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
