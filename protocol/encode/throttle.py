"""The throttle time in a response that is encoded already.

It is the first field of all that have it but Produce's, where it is the last: only tagged fields follow, of
which this broker writes none there.
"""

import dataclasses
from collections.abc import Sequence
from functools import cache

from barnabas.protocol.api import ApiKey
from barnabas.protocol.encode.parts import INT32, NO_TAGS
from barnabas.protocol.encode.produce import FLEXIBLE_VERSION
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.varint import Buffer


def with_throttle_time(
    api_key: int, version: int, buffers: Sequence[Buffer], throttle_time_ms: int
) -> list[Buffer]:
    """The buffers of a body that says 0 milliseconds, made to say others; old versions cannot say it."""
    if not _has_throttle_time(api_key, version):
        return [*buffers]
    first, *rest = buffers
    body = bytearray(first)
    position = 0
    if api_key == ApiKey.PRODUCE:
        tags = len(NO_TAGS) if version >= FLEXIBLE_VERSION else 0
        assert body[len(body) - tags :] == NO_TAGS[:tags], "Produce was answered with tagged fields"
        position = len(body) - tags - INT32.size
    INT32.pack_into(body, position, throttle_time_ms)
    return [body, *rest]


@cache
def _has_throttle_time(api_key: int, version: int) -> bool:
    fields = dataclasses.fields(message_class(api_key, version, "response"))
    return any(field.name == "throttle_time" for field in fields)
