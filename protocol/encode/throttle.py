"""The throttle time in a response that is encoded already, by the own encoders of `encode`.

It is the first field of all of them but Produce's, where it is the last: only tagged fields follow, of which
this broker writes none there.
"""

from collections.abc import Sequence

from barnabas.protocol.api import ApiKey
from barnabas.protocol.encode.parts import INT32, NO_TAGS
from barnabas.protocol.encode.produce import FLEXIBLE_VERSION
from barnabas.protocol.varint import Buffer


def with_throttle_time(
    api_key: int, version: int, buffers: Sequence[Buffer], throttle_time_ms: int
) -> list[Buffer]:
    """The buffers of a body that says 0 milliseconds, made to say others."""
    first, *rest = buffers
    body = bytearray(first)
    position = 0
    if api_key == ApiKey.PRODUCE:
        tags = len(NO_TAGS) if version >= FLEXIBLE_VERSION else 0
        assert body[len(body) - tags :] == NO_TAGS[:tags], "Produce was answered with tagged fields"
        position = len(body) - tags - INT32.size
    INT32.pack_into(body, position, throttle_time_ms)
    return [body, *rest]
