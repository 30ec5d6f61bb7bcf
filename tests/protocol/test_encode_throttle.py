"""The throttle time put into responses that are encoded already; the encoders' tests say where it belongs."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.encode.throttle import with_throttle_time


def test_what_follows_the_first_buffer_is_passed_on() -> None:
    records = b"records"
    assert with_throttle_time(ApiKey.FETCH, 12, [bytes(8), records], 1)[1] is records
