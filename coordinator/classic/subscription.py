"""Which topics a consumer's metadata names: the little of it that a coordinator reads.

The metadata of protocol type `consumer` is a version (int16) and, in every version, an array of topic names
first (Kafka's ConsumerProtocolSubscription). What follows is the assignor's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.protocol.varint import RecordFormatError

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_VERSION_BYTES: Final = 2
_COUNT_BYTES: Final = 4
_LENGTH_BYTES: Final = 2


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members together; None if one member's metadata cannot be read."""
    topics: set[str] = set()
    try:
        for one in metadata:
            topics.update(_topics(one))
    except (RecordFormatError, UnicodeDecodeError):
        return None
    return frozenset(topics)


def _topics(metadata: bytes) -> list[str]:
    position = _VERSION_BYTES
    count = _integer(metadata, position, _COUNT_BYTES)
    position += _COUNT_BYTES
    topics: list[str] = []
    for _ in range(count):
        length = _integer(metadata, position, _LENGTH_BYTES)
        position += _LENGTH_BYTES
        if length < 0 or position + length > len(metadata):
            raise RecordFormatError("A subscription's topic is cut short.")
        topics.append(metadata[position : position + length].decode())
        position += length
    return topics


def _integer(data: bytes, position: int, size: int) -> int:
    if position + size > len(data):
        raise RecordFormatError("A subscription is cut short.")
    return int.from_bytes(data[position : position + size], "big", signed=True)
