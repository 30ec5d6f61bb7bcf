"""ShareAcknowledge responses, versions 1 and 2 (KIP-932); version 2 adds the duration of locks (KIP-1222).

The package describes the common properties of these encoders.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.message_parts import (
    INT32,
    NO_TAGS,
    NULL_STRING,
    NodeEndpoint,
    compact_count,
    compact_endpoints,
    compact_string,
)
from barnabas.protocol.varint import Buffer

LOCK_TIMEOUT_VERSION: Final = 2

_THROTTLE_AND_ERROR: Final = struct.Struct(">ih")
_INDEX_AND_ERROR: Final = struct.Struct(">ih")
_LEADER_AND_NO_TAGS: Final = struct.Struct(">iixx")


class ShareAcknowledgePartitionResult(NamedTuple):
    """The result of one partition's acknowledgements. Leader id and epoch are 0 unless another node leads."""

    partition_index: int
    error_code: int
    error_message: str | None = None
    leader_id: int = 0
    leader_epoch: int = 0


class ShareAcknowledgeTopicResult(NamedTuple):
    topic_id: UUID
    partitions: list[ShareAcknowledgePartitionResult]


def encode_share_acknowledge_response(
    version: int,
    error_code: int,
    error_message: str | None,
    acquisition_lock_timeout_ms: int,
    topics: Collection[ShareAcknowledgeTopicResult],
    *,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Buffer]:
    """The body's buffers. `version` is 1, which lacks the duration of locks, or 2."""
    assert version in {1, 2}, version
    body = bytearray(_THROTTLE_AND_ERROR.pack(0, error_code))
    body += NULL_STRING if error_message is None else compact_string(error_message)
    if version >= LOCK_TIMEOUT_VERSION:
        body += INT32.pack(acquisition_lock_timeout_ms)
    body += compact_count(len(topics))
    for topic_id, partitions in topics:
        body += topic_id.int.to_bytes(16)
        body += compact_count(len(partitions))
        for index, partition_error, message, leader_id, leader_epoch in partitions:
            body += _INDEX_AND_ERROR.pack(index, partition_error)
            body += NULL_STRING if message is None else compact_string(message)
            body += _LEADER_AND_NO_TAGS.pack(leader_id, leader_epoch)
        body += NO_TAGS
    body += compact_endpoints(node_endpoints) if node_endpoints else compact_count(0)
    body += NO_TAGS
    return [body]
