"""The topics that a classic group's members read, if their metadata can be decoded."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.consumer_protocol import decode_topics
from barnabas.protocol.varint import RecordFormatError


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members together; None if one member's metadata cannot be read."""
    topics: set[str] = set()
    try:
        for encoded in metadata:
            topics.update(decode_topics(encoded))
    except RecordFormatError:
        return None
    return frozenset(topics)
