"""Produce requests, versions 9 to 12, with topic names and compact lengths (KIP-98, KIP-482).

The inverse of `decode.produce`, with the decoder's body.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.decode.produce import ProduceBody, ProducePartition
from barnabas.protocol.message_parts import INT32, NO_TAGS, compact_count, compact_string
from barnabas.protocol.varint import Buffer

_ACKS_AND_TIMEOUT: Final = struct.Struct(">hi")
_NULL: Final = b"\x00"


def encode_produce_request(_version: int, body: ProduceBody) -> bytes:
    """The body of a Produce request. The versions 9 to 12 have the same layout."""
    parts: list[Buffer] = [
        compact_string(body.transactional_id),
        _ACKS_AND_TIMEOUT.pack(body.acks, body.timeout_ms),
        compact_count(len(body.topics)),
    ]
    for topic in body.topics:
        parts += (compact_string(topic.name), compact_count(len(topic.partitions)))
        for partition in topic.partitions:
            parts += _partition(partition)
        parts.append(NO_TAGS)
    parts.append(NO_TAGS)
    return b"".join(parts)


def _partition(partition: ProducePartition) -> tuple[Buffer, ...]:
    index = INT32.pack(partition.partition_index)
    if partition.records is None:
        return index, _NULL, NO_TAGS
    return index, compact_count(len(partition.records)), partition.records, NO_TAGS
