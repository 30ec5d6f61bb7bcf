"""Produce responses, versions 3 to 13 (KIP-98, KIP-467, KIP-516, KIP-951).

The package describes the common properties of these encoders.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.message_parts import (
    INT32,
    NO_TAGS,
    compact_count,
    compact_string,
    string,
    tagged_fields,
)
from barnabas.protocol.varint import Buffer

LOG_START_VERSION: Final = 5
RECORD_ERRORS_VERSION: Final = 8
FLEXIBLE_VERSION: Final = 9
LEADER_VERSION: Final = 10
TOPIC_ID_VERSION: Final = 13

_PARTITION: Final = struct.Struct(">ihqq")
_PARTITION_AND_LOG_START: Final = struct.Struct(">ihqqq")
_LEADER: Final = struct.Struct(">iix")
_CURRENT_LEADER_TAG: Final = 0
_NOTHING_ELSE: Final = compact_count(0) + compact_string(None) + NO_TAGS
"""No record errors, no message, no tags: the end of nearly every partition."""


class ProducePartitionResult(NamedTuple):
    """The result of one partition.

    `base_offset` is the offset of the first record, -1 with an error. `log_append_time_ms` is -1 if the
    client's time counts. `record_errors` are (index in the batch, message) of the records that caused the
    refusal; like `error_message`, they are sent from version 8 on. `current_leader` is (node id, leader
    epoch) of another leader, sent from version 10 on.
    """

    partition_index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None


class ProduceTopicResult(NamedTuple):
    """One topic with its name and its id; the version decides which of them is sent."""

    topic_name: str
    topic_id: UUID
    partitions: Sequence[ProducePartitionResult]


def encode_produce_response(
    version: int,
    topics: Sequence[ProduceTopicResult],
) -> list[Buffer]:
    """The body's buffers. Endpoints of other leaders are never written, because there are none."""
    flexible = version >= FLEXIBLE_VERSION
    count = compact_count if flexible else INT32.pack
    body = bytearray(count(len(topics)))
    for name, topic_id, partitions in topics:
        if version >= TOPIC_ID_VERSION:
            body += topic_id.int.to_bytes(16)
        else:
            body += compact_string(name) if flexible else string(name)
        body += count(len(partitions))
        for partition in partitions:
            index, error_code, base_offset, time_ms, log_start_offset, record_errors, message, _ = partition
            if flexible and not error_code and message is None and not record_errors:
                body += _PARTITION_AND_LOG_START.pack(index, 0, base_offset, time_ms, log_start_offset)
                body += _NOTHING_ELSE
            else:
                body += _partition(version, partition)
        if flexible:
            body += NO_TAGS
    body += INT32.pack(0)
    if flexible:
        body += NO_TAGS
    return [body]


def _string(text: str | None, flexible: bool) -> bytes:
    return compact_string(text) if flexible else string(text)


def _partition(version: int, partition: ProducePartitionResult) -> bytes:
    flexible = version >= FLEXIBLE_VERSION
    index, error_code, base_offset, log_append_time_ms, log_start_offset, record_errors, message, leader = (
        partition
    )
    if version < LOG_START_VERSION:
        return _PARTITION.pack(index, error_code, base_offset, log_append_time_ms)
    encoded = _PARTITION_AND_LOG_START.pack(
        index, error_code, base_offset, log_append_time_ms, log_start_offset
    )
    if version < RECORD_ERRORS_VERSION:
        return encoded
    encoded += _record_errors(record_errors, flexible) + _string(message, flexible)
    if not flexible:
        return encoded
    if leader is None or version < LEADER_VERSION:
        return encoded + NO_TAGS
    return encoded + tagged_fields([(_CURRENT_LEADER_TAG, _LEADER.pack(*leader))])


def _record_errors(record_errors: Sequence[tuple[int, str | None]], flexible: bool) -> bytes:
    parts = [compact_count(len(record_errors)) if flexible else INT32.pack(len(record_errors))]
    for index, message in record_errors:
        parts += (INT32.pack(index), _string(message, flexible))
        if flexible:
            parts.append(NO_TAGS)
    return b"".join(parts)
