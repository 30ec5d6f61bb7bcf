"""ShareFetch responses, versions 1 and 2, for a client (KIP-932, KIP-1206); both have the same layout.

The inverse of `encode.share_fetch`, with the encoder's partition results. The records are one view of the
frame, so nothing is copied before decompression. Unknown tagged fields are skipped.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from barnabas.protocol.decode.reader import FlexibleReader, read_whole
from barnabas.protocol.encode.share_fetch import ShareFetchPartitionResult, ShareFetchTopicResult
from barnabas.protocol.errors import FrameError
from barnabas.protocol.extended.runs import RUNS_TAG, unpack_runs
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.varint import Buffer

THROTTLE_AND_ERROR: Final = struct.Struct(">ih")
INDEX_AND_ERROR: Final = struct.Struct(">ih")
LEADER: Final = struct.Struct(">ii")

_ERROR: Final = struct.Struct(">h")
_ACQUIRED: Final = struct.Struct(">qqh")


class ShareFetchReply(NamedTuple):
    """A share fetch response of any version."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    topics: list[ShareFetchTopicResult]
    node_endpoints: list[NodeEndpoint]


def decode_share_fetch_response(version: int, frame: Buffer, body_offset: int) -> ShareFetchReply:
    """The response whose body starts at `body_offset` of `frame`; `FrameError` if it is malformed."""
    return read_whole(
        "A share fetch response", _read_body, FlexibleReader(memoryview(frame), body_offset), version
    )


def read_endpoint(reader: FlexibleReader) -> NodeEndpoint:
    """One of the nodes that a response names as leaders."""
    node_id, host = reader.int32(), reader.nullable_string()
    if host is None:
        raise FrameError("A response names a node without a host.")
    endpoint = NodeEndpoint(node_id, host, reader.int32(), reader.nullable_string())
    reader.tagged_fields()
    return endpoint


def _read_body(reader: FlexibleReader, _version: int) -> ShareFetchReply:
    throttle_time_ms, error_code = reader.fields(THROTTLE_AND_ERROR)
    message, lock_timeout_ms = reader.nullable_string(), reader.int32()
    topics, endpoints = reader.array(_read_topic), reader.array(read_endpoint)
    reader.tagged_fields()
    return ShareFetchReply(throttle_time_ms, error_code, message, lock_timeout_ms, topics, endpoints)


def _read_topic(reader: FlexibleReader) -> ShareFetchTopicResult:
    topic = ShareFetchTopicResult(reader.topic_id(), reader.array(_read_partition))
    reader.tagged_fields()
    return topic


def _read_partition(reader: FlexibleReader) -> ShareFetchPartitionResult:
    index, error_code = reader.fields(INDEX_AND_ERROR)
    message = reader.nullable_string()
    (acknowledge_error_code,) = reader.fields(_ERROR)
    acknowledge_message = reader.nullable_string()
    leader_id, leader_epoch = reader.fields(LEADER)
    reader.tagged_fields()
    size_bytes = max(reader.length(), 0)
    records = (reader.take(size_bytes),) if size_bytes else ()
    acquired = reader.array(_read_acquired)
    runs = reader.tags().get(RUNS_TAG)
    return ShareFetchPartitionResult(
        index,
        error_code,
        message,
        acknowledge_error_code,
        acknowledge_message,
        records,
        acquired,
        leader_id,
        leader_epoch,
        None if runs is None else unpack_runs(runs),
    )


def _read_acquired(reader: FlexibleReader) -> tuple[int, int, int]:
    first_offset, last_offset, delivery_count = reader.fields(_ACQUIRED)
    reader.tagged_fields()
    return first_offset, last_offset, delivery_count
