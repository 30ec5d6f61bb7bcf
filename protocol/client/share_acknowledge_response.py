"""ShareAcknowledge responses, versions 1 and 2 (KIP-932), for a client.

The inverse of `encode.share_acknowledge`. Version 2 adds the duration of locks (KIP-1222). Unknown tagged
fields are skipped.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.client.share_fetch_response import (
    INDEX_AND_ERROR,
    LEADER,
    THROTTLE_AND_ERROR,
    read_endpoint,
)
from barnabas.protocol.decode.reader import FlexibleReader, read_whole
from barnabas.protocol.encode.share_acknowledge import (
    LOCK_TIMEOUT_VERSION,
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
)
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.varint import Buffer


class ShareAcknowledgeReply(NamedTuple):
    """A share acknowledge response. The duration of locks is 0 in version 1."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    topics: list[ShareAcknowledgeTopicResult]
    node_endpoints: list[NodeEndpoint]


def decode_share_acknowledge_response(version: int, frame: Buffer, body_offset: int) -> ShareAcknowledgeReply:
    """The response whose body starts at `body_offset` of `frame`; `FrameError` if it is malformed."""
    return read_whole(
        "A share acknowledge response", _read_body, FlexibleReader(memoryview(frame), body_offset), version
    )


def _read_body(reader: FlexibleReader, version: int) -> ShareAcknowledgeReply:
    throttle_time_ms, error_code = reader.fields(THROTTLE_AND_ERROR)
    message = reader.nullable_string()
    lock_timeout_ms = reader.int32() if version >= LOCK_TIMEOUT_VERSION else 0
    topics, endpoints = reader.array(_read_topic), reader.array(read_endpoint)
    reader.tagged_fields()
    return ShareAcknowledgeReply(throttle_time_ms, error_code, message, lock_timeout_ms, topics, endpoints)


def _read_topic(reader: FlexibleReader) -> ShareAcknowledgeTopicResult:
    topic = ShareAcknowledgeTopicResult(reader.topic_id(), reader.array(_read_partition))
    reader.tagged_fields()
    return topic


def _read_partition(reader: FlexibleReader) -> ShareAcknowledgePartitionResult:
    index, error_code = reader.fields(INDEX_AND_ERROR)
    message = reader.nullable_string()
    leader_id, leader_epoch = reader.fields(LEADER)
    reader.tagged_fields()
    reader.tagged_fields()
    return ShareAcknowledgePartitionResult(index, error_code, message, leader_id, leader_epoch)
