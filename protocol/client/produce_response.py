"""Produce responses, versions 9 to 12, for a producer (KIP-467, KIP-951).

The inverse of `encode.produce`, with the encoder's partition results. Unknown tagged fields are skipped.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from barnabas.protocol.client.leaders import leader_of, read_endpoints
from barnabas.protocol.decode.reader import FlexibleReader, read_whole
from barnabas.protocol.encode.produce import ProducePartitionResult
from barnabas.protocol.errors import FrameError
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.varint import Buffer

_PARTITION: Final = struct.Struct(">ihqqq")
_CURRENT_LEADER_TAG: Final = 0


class ProduceReply(NamedTuple):
    """A produce response: the partitions' results by topic name."""

    topics: list[tuple[str, list[ProducePartitionResult]]]
    throttle_time_ms: int
    node_endpoints: list[NodeEndpoint]


def decode_produce_response(version: int, frame: Buffer, body_offset: int) -> ProduceReply:
    """The response whose body starts at `body_offset` of `frame`; `FrameError` if it is malformed."""
    reader = FlexibleReader(memoryview(frame), body_offset)
    return read_whole("A produce response", _read_body, reader, version)


def _read_body(reader: FlexibleReader, _version: int) -> ProduceReply:
    topics = reader.array(_read_topic)
    throttle_time_ms = reader.int32()
    return ProduceReply(topics, throttle_time_ms, read_endpoints(reader))


def _read_topic(reader: FlexibleReader) -> tuple[str, list[ProducePartitionResult]]:
    name = reader.nullable_string()
    if name is None:
        raise FrameError("A produce response's topic has no name.")
    topic = name, reader.array(_read_partition)
    reader.tagged_fields()
    return topic


def _read_partition(reader: FlexibleReader) -> ProducePartitionResult:
    index, error_code, base_offset, log_append_time_ms, log_start_offset = reader.fields(_PARTITION)
    record_errors, message = reader.array(_read_record_error), reader.nullable_string()
    return ProducePartitionResult(
        index,
        error_code,
        base_offset,
        log_append_time_ms,
        log_start_offset,
        record_errors,
        message,
        leader_of(reader.tags(), _CURRENT_LEADER_TAG),
    )


def _read_record_error(reader: FlexibleReader) -> tuple[int, str | None]:
    error = reader.int32(), reader.nullable_string()
    reader.tagged_fields()
    return error
