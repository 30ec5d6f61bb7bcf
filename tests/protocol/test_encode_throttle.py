"""The throttle time put into responses that are encoded already."""

import pytest

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.encode.fetch import encode_fetch_response
from barnabas.protocol.encode.produce import encode_produce_response
from barnabas.protocol.encode.share_acknowledge import encode_share_acknowledge_response
from barnabas.protocol.encode.share_fetch import encode_share_fetch_response
from barnabas.protocol.encode.throttle import with_throttle_time
from barnabas.protocol.varint import Buffer


def encoded(key: ApiKey, version: int, throttle_time_ms: int) -> list[Buffer]:
    match key:
        case ApiKey.PRODUCE:
            return encode_produce_response(version, [], throttle_time_ms=throttle_time_ms)
        case ApiKey.FETCH:
            return encode_fetch_response(version, throttle_time_ms, 0, 5, ())
        case ApiKey.SHARE_FETCH:
            return encode_share_fetch_response(version, 0, None, 9, (), throttle_time_ms=throttle_time_ms)
        case _:
            return encode_share_acknowledge_response(
                version, 0, None, 9, (), throttle_time_ms=throttle_time_ms
            )


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (key, version)
        for key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)
        for version in range(APIS[key].min_version, APIS[key].max_version + 1)
    ],
)
def test_it_is_where_the_encoder_would_have_put_it(key: ApiKey, version: int) -> None:
    throttled = with_throttle_time(key, version, encoded(key, version, 0), 1234)
    assert b"".join(throttled) == b"".join(encoded(key, version, 1234))


@pytest.mark.parametrize("key", [ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FETCH])
def test_versions_that_cannot_say_it_are_left_as_they_are(key: ApiKey) -> None:
    body = bytes(8)
    assert with_throttle_time(key, 1, [body], 1234) == [body]
    assert with_throttle_time(key, 3, [body], 1234) == [b"\x00\x00\x04\xd2" + bytes(4)]


def test_what_follows_the_first_buffer_is_passed_on() -> None:
    records = b"records"
    assert with_throttle_time(ApiKey.FETCH, 12, [bytes(8), records], 1)[1] is records
