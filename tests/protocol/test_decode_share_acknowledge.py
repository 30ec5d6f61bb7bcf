"""The decoder of ShareAcknowledge requests, compared with kio."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.decode.share_acknowledge import decode_share_acknowledge
from barnabas.protocol.errors import FrameError
from tests.protocol.acknowledgement_requests import (
    INT32S,
    NAMES,
    TOPICS,
    VERSIONS,
    kio_topics,
    request_class,
    share_acknowledge_body,
)
from tests.protocol.filled_messages import filled, made, written


@given(
    version=st.sampled_from(VERSIONS),
    topics=TOPICS,
    group_id=NAMES,
    member_id=NAMES,
    share_session_epoch=INT32S,
    is_renew_ack=st.booleans(),
)
def test_requests_of_kio_are_decoded(version: int, topics: Any, **values: Any) -> None:
    kio_class = request_class(ApiKey.SHARE_ACKNOWLEDGE, version)
    request = made(kio_class, topics=kio_topics(kio_class, topics), **values)

    decoded = decode_share_acknowledge(version, written(request), 0)
    assert decoded._replace(encoded_topics=b"") == share_acknowledge_body(request)


def test_version_1_renews_nothing() -> None:
    body = decode_share_acknowledge(1, written(filled(request_class(ApiKey.SHARE_ACKNOWLEDGE, 1))), 0)

    assert not body.is_renew_ack


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"\x00" + b"\x00", id="topics"),
        pytest.param(b"\x02" + bytes(16) + b"\x00" + b"\x00\x00", id="partitions"),
        pytest.param(b"\x02" + bytes(16) + b"\x02" + bytes(4) + b"\x00" + bytes(3), id="batches"),
        pytest.param(b"\x02" + bytes(16) + b"\x02" + bytes(4) + b"\x02" + bytes(16) + bytes(5), id="types"),
    ],
)
def test_null_arrays_are_refused(rest: bytes) -> None:
    with pytest.raises(FrameError, match="null"):
        decode_share_acknowledge(1, bytes(6) + rest, 0)
