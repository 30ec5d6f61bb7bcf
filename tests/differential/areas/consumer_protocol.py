"""The content of JoinGroup and SyncGroup by classic members of a consumer group: Kafka's ConsumerProtocol."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_NO_USER_DATA = -1
_GENERATION_UNKNOWN = -1


def subscription(
    topics: Sequence[str], owned: Mapping[str, Sequence[int]] | None = None, *, version: int = 1
) -> bytes:
    """A subscription of version 1 to 3, to topics in ascending order."""
    parts = [struct.pack(">hi", version, len(topics)), *map(_text, topics), struct.pack(">i", _NO_USER_DATA)]
    parts.append(_partitions(owned or {}))
    if version >= 2:
        parts.append(struct.pack(">i", _GENERATION_UNKNOWN))
    if version >= 3:
        parts.append(struct.pack(">h", -1))
    return b"".join(parts)


def assignment(partitions: Mapping[str, Sequence[int]], *, version: int = 1) -> bytes:
    """An assignment without user data."""
    return struct.pack(">h", version) + _partitions(partitions) + struct.pack(">i", _NO_USER_DATA)


def read_assignment(data: bytes) -> dict[str, list[int]]:
    """The partitions of an assignment by topic; none for an empty one."""
    if not data:
        return {}
    (topic_count,) = struct.unpack_from(">i", data, 2)
    partitions: dict[str, list[int]] = {}
    position = 6
    for _ in range(topic_count):
        (length,) = struct.unpack_from(">h", data, position)
        position += 2 + length
        topic = data[position - length : position].decode()
        (count,) = struct.unpack_from(">i", data, position)
        partitions[topic] = list(struct.unpack_from(f">{count}i", data, position + 4))
        position += 4 + 4 * count
    return partitions


def _partitions(partitions: Mapping[str, Sequence[int]]) -> bytes:
    parts = [struct.pack(">i", len(partitions))]
    for topic, indexes in partitions.items():
        parts += [_text(topic), struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)]
    return b"".join(parts)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data
