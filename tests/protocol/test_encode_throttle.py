"""The throttle time in encoded responses; the encoders' tests cover its position."""

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.encode.throttle import with_throttle_time


@pytest.mark.parametrize("key", [ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FETCH])
def test_versions_without_the_field_are_unchanged(key: ApiKey) -> None:
    body = bytes(8)
    assert with_throttle_time(key, 1, [body], 1234) == [body]
    assert with_throttle_time(key, 3, [body], 1234) == [b"\x00\x00\x04\xd2" + bytes(4)]


def test_the_buffers_after_the_first_are_passed_through() -> None:
    records = b"records"
    assert with_throttle_time(ApiKey.FETCH, 12, [bytes(8), records], 1)[1] is records
