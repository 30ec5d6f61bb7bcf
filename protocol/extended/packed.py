"""The contents of tags that name many ranges: numbers side by side, without lengths between them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import Final
from uuid import UUID

from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange

_RANGE: Final = struct.Struct(">qq")
_SHARE: Final = struct.Struct(">iii")
_HASHES: Final = struct.Struct(">ii")

RANGE_BYTES: Final = _RANGE.size
"""The size of one range of offsets."""


def pack_ranges(ranges: Iterable[tuple[int, int]]) -> bytes:
    """First and last offset of each range, both inclusive."""
    return b"".join(starmap(_RANGE.pack, ranges))


def unpack_ranges(packed: bytes) -> list[OffsetRange]:
    """The ranges. INVALID_REQUEST if the size does not fit."""
    if len(packed) % _RANGE.size:
        raise _misfit(packed, _RANGE)
    return list(map(OffsetRange._make, _RANGE.iter_unpack(packed)))


def pack_shares(shares: Mapping[int, HashRange]) -> bytes:
    """The index of each partition, and the first and last hash of the member's share, both inclusive."""
    return b"".join([_SHARE.pack(partition, *hashes) for partition, hashes in shares.items()])


def shares_of_topic(
    topic_id: UUID, partitions: Iterable[int], shares: Mapping[TopicIdPartition, HashRange]
) -> bytes | None:
    """The packed shares of one topic's partitions; None if the member shares none of them."""
    if not shares:
        return None
    of_topic = {
        partition: hashes
        for partition in partitions
        if (hashes := shares.get(TopicIdPartition(topic_id, partition))) is not None
    }
    return pack_shares(of_topic) or None


def unpack_shares(packed: bytes) -> dict[int, HashRange]:
    """The shares by partition. INVALID_REQUEST if the size does not fit."""
    if len(packed) % _SHARE.size:
        raise _misfit(packed, _SHARE)
    return {partition: HashRange(first, last) for partition, first, last in _SHARE.iter_unpack(packed)}


def pack_hash_range(hashes: HashRange) -> bytes:
    """The first and last hash, both inclusive."""
    return _HASHES.pack(*hashes)


def unpack_hash_range(packed: bytes) -> HashRange:
    """The range. INVALID_REQUEST if the size does not fit, or if it is no range of hashes."""
    if len(packed) != _HASHES.size:
        message = f"A hash range has {len(packed)} bytes, not {_HASHES.size}."
        raise ApiError(ErrorCode.invalid_request, message)
    first, last = _HASHES.unpack(packed)
    if not ALL_HASHES.first_hash <= first <= last:
        message = f"The hash range from {first} to {last} is none: give two hashes, the lower one first."
        raise ApiError(ErrorCode.invalid_request, message)
    return HashRange(first, last)


def _misfit(packed: bytes, entry: struct.Struct) -> ApiError:
    message = f"A packed field has {len(packed)} bytes, not a multiple of {entry.size}."
    return ApiError(ErrorCode.invalid_request, message)
