"""The throttle time put into responses that are encoded already; the encoders' tests say where it belongs."""

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.encode.throttle import with_throttle_time


@pytest.mark.parametrize("key", [ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FETCH])
def test_versions_that_cannot_say_it_are_left_as_they_are(key: ApiKey) -> None:
    body = bytes(8)
    assert with_throttle_time(key, 1, [body], 1234) == [body]
    assert with_throttle_time(key, 3, [body], 1234) == [b"\x00\x00\x04\xd2" + bytes(4)]


def test_what_follows_the_first_buffer_is_passed_on() -> None:
    records = b"records"
    assert with_throttle_time(ApiKey.FETCH, 12, [bytes(8), records], 1)[1] is records
