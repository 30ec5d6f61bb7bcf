"""Fetch responses, versions 13 to 18, for a consumer (KIP-516, KIP-951).

The inverse of `encode.fetch`, with the encoder's partition results. The records are one view of the frame, so
nothing is copied before decompression; the last batch may be cut short. Unknown tagged fields and those for
followers are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.protocol.client.leaders import leader_of, read_endpoints
from barnabas.protocol.decode.reader import FlexibleReader, read_whole
from barnabas.protocol.encode.fetch import LOOKED_UNTIL_TAG, FetchPartitionResult, FetchTopicResult
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.varint import Buffer

_HEAD: Final = struct.Struct(">ihi")
_PARTITION: Final = struct.Struct(">ihqqq")
_ABORTED: Final = struct.Struct(">qq")
_LOOKED_UNTIL: Final = struct.Struct(">q")
_CURRENT_LEADER_TAG: Final = 1


class FetchReply(NamedTuple):
    """A fetch response. Topics have only ids: their names are empty."""

    throttle_time_ms: int
    error_code: int
    topics: list[FetchTopicResult]
    node_endpoints: list[NodeEndpoint]


def decode_fetch_response(version: int, frame: Buffer, body_offset: int) -> FetchReply:
    """The response whose body starts at `body_offset` of `frame`; `FrameError` if it is malformed."""
    reader = FlexibleReader(memoryview(frame), body_offset)
    return read_whole("A fetch response", _read_body, reader, version)


def _read_body(reader: FlexibleReader, _version: int) -> FetchReply:
    throttle_time_ms, error_code, _session_id = reader.fields(_HEAD)
    topics = reader.array(_read_topic)
    return FetchReply(throttle_time_ms, error_code, topics, read_endpoints(reader))


def _read_topic(reader: FlexibleReader) -> FetchTopicResult:
    topic = FetchTopicResult("", reader.topic_id(), reader.array(_read_partition))
    reader.tagged_fields()
    return topic


def _read_partition(reader: FlexibleReader) -> FetchPartitionResult:
    index, error_code, high_watermark, last_stable_offset, log_start_offset = reader.fields(_PARTITION)
    aborted = [_read_aborted(reader) for _ in range(max(reader.length(), 0))]
    reader.int32()  # The preferred replica: a consumer without a rack is never redirected to one.
    size_bytes = max(reader.length(), 0)
    records = (reader.take(size_bytes),) if size_bytes else ()
    tags = reader.tags()
    return FetchPartitionResult(
        index,
        error_code,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        aborted,
        records,
        current_leader=leader_of(tags, _CURRENT_LEADER_TAG),
        looked_until=_looked_until(tags),
    )


def _looked_until(tags: Mapping[int, Buffer]) -> int | None:
    """The offset up to which the broker has looked for the hash range of the request."""
    content = tags.get(LOOKED_UNTIL_TAG)
    if content is None:
        return None
    (offset,) = _LOOKED_UNTIL.unpack_from(content)
    return int(offset)


def _read_aborted(reader: FlexibleReader) -> tuple[int, int]:
    producer_id, first_offset = reader.fields(_ABORTED)
    reader.tagged_fields()
    return producer_id, first_offset
