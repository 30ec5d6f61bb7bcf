"""The contents of tags that name many ranges: numbers side by side, without lengths between them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.errors import ApiError, ErrorCode

RANGE_BYTES: Final = 16
"""The size of one range of offsets."""

_RANGE: Final = struct.Struct(">qq")


def pack_ranges(ranges: Iterable[tuple[int, int]]) -> bytes:
    """First and last offset of each range, both inclusive."""
    return b"".join([_RANGE.pack(*one) for one in ranges])


def unpack_ranges(packed: bytes) -> list[OffsetRange]:
    """The ranges. INVALID_REQUEST if the size does not fit."""
    if len(packed) % RANGE_BYTES:
        message = f"The ranges have {len(packed)} bytes, not a multiple of {RANGE_BYTES}."
        raise ApiError(ErrorCode.invalid_request, message)
    return list(map(OffsetRange._make, _RANGE.iter_unpack(packed)))
