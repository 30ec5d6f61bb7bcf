"""Sets the throttle time in an encoded response.

In nearly all responses with this field it is the first. In Produce it is the last, followed only by tagged
fields, which this broker never writes there. In ApiVersions and OffsetDelete it has another position.
"""

import dataclasses
from collections.abc import Sequence
from functools import cache
from typing import Final

from barnabas.protocol.api import ApiKey
from barnabas.protocol.encode.produce import FLEXIBLE_VERSION
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.message_parts import INT32, NO_TAGS
from barnabas.protocol.varint import Buffer

_NO_FIELD: Final = -1


def can_be_throttled_later(api_key: int, version: int) -> bool:
    """Whether `with_throttle_time` knows the position of the field, or there is no such field."""
    return api_key == ApiKey.PRODUCE or _position_of_throttle_time(api_key, version) <= 0


def with_throttle_time(
    api_key: int, version: int, buffers: Sequence[Buffer], throttle_time_ms: int
) -> list[Buffer]:
    """Replaces a throttle time of 0 milliseconds; old versions lack the field and stay unchanged."""
    if _position_of_throttle_time(api_key, version) == _NO_FIELD:
        return [*buffers]
    assert can_be_throttled_later(api_key, version), "the throttle time has another position"
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
def _position_of_throttle_time(api_key: int, version: int) -> int:
    """Its position among the fields of the response."""
    names = [field.name for field in dataclasses.fields(message_class(api_key, version, "response"))]
    return names.index("throttle_time") if "throttle_time" in names else _NO_FIELD
