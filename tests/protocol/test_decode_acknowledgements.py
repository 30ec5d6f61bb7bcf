"""The common properties of the decoders of ShareFetch and ShareAcknowledge requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.codec import decode_request
from barnabas.protocol.decode.share_acknowledge import decode_share_acknowledge
from barnabas.protocol.decode.share_fetch import decode_share_fetch
from barnabas.protocol.errors import FrameError
from tests.protocol.acknowledgement_requests import (
    TOPICS,
    VERSIONS,
    StricterThanKafka,
    damaged,
    kio_topics,
    read_by_kio,
    request_class,
    share_acknowledge_body,
    share_fetch_body,
    without_bytes,
)
from tests.protocol.filled_messages import filled, from_the_future, read, written
from tests.protocol.recorded_frames import RecordedFrame, served_frames

DAMAGES_OF_A_REQUEST = 4
"""To make a request takes longer than to read it."""


class Decoder(NamedTuple):
    """One of the two decoders, and the conversion of kio's request into its tuples."""

    api: ApiKey
    decode: Callable[[int, bytes, int], Any]
    as_body: Callable[[Any], Any]


DECODERS = {
    "share fetch": Decoder(ApiKey.SHARE_FETCH, decode_share_fetch, share_fetch_body),
    "share acknowledge": Decoder(ApiKey.SHARE_ACKNOWLEDGE, decode_share_acknowledge, share_acknowledge_body),
}
RECORDED = [
    pytest.param(decoder, recorded, id=recorded.title)
    for decoder in DECODERS.values()
    for recorded in served_frames("request", decoder.api)
]
each_decoder = pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)


@pytest.mark.parametrize(("decoder", "recorded"), RECORDED)
def test_recorded_requests_are_decoded_like_kio(decoder: Decoder, recorded: RecordedFrame) -> None:
    body = decoder.decode(recorded.version, recorded.frame, recorded.body_offset)

    assert without_bytes(body) == decoder.as_body(
        read(request_class(decoder.api, recorded.version), recorded.body)
    )


@each_decoder
@pytest.mark.parametrize("version", VERSIONS)
def test_the_codec_returns_bodies(decoder: Decoder, version: int) -> None:
    request = filled(request_class(decoder.api, version))

    body = decode_request(decoder.api, version, b"header" + written(request), 6)

    assert without_bytes(body) == decoder.as_body(request)


@each_decoder
@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_tagged_fields_are_skipped(decoder: Decoder, version: int) -> None:
    request = filled(request_class(decoder.api, version))

    decoded = decoder.decode(version, written(from_the_future(request)), 0)
    assert without_bytes(decoded) == decoder.as_body(request)


@each_decoder
@settings(max_examples=150)
@given(version=st.sampled_from(VERSIONS), topics=TOPICS, is_newer=st.booleans(), data=st.data())
def test_damaged_requests_are_decoded_like_kio_or_refused(
    decoder: Decoder, version: int, topics: Any, is_newer: bool, data: st.DataObject
) -> None:
    kio_class = request_class(decoder.api, version)
    request: Any = filled(kio_class)
    request = dataclasses.replace(request, topics=request.topics + kio_topics(kio_class, topics))
    whole = written(from_the_future(request) if is_newer else request)
    for _ in range(DAMAGES_OF_A_REQUEST):
        body = damaged(whole, data)
        with suppress(StricterThanKafka):
            check_decoded(decoder, version, body, read_by_kio(kio_class, body))


def check_decoded(decoder: Decoder, version: int, body: bytes, expected: Any) -> None:
    """The request is refused if `expected` is None."""
    if expected is not None:
        assert without_bytes(decoder.decode(version, body, 0)) == decoder.as_body(expected)
    else:
        with pytest.raises(FrameError):
            decoder.decode(version, body, 0)
