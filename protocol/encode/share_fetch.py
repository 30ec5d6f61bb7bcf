"""ShareFetch responses, versions 1 and 2, which have the same layout (KIP-932, KIP-1206).

The package describes the common properties of these encoders. A response with a top-level error has no
topics.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from functools import cache
from itertools import chain
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.extended.runs import RUNS_TAG, Runs, pack_runs
from barnabas.protocol.message_parts import (
    NO_TAGS,
    NULL_STRING,
    NodeEndpoint,
    compact_count,
    compact_endpoints,
    compact_string,
    tagged_fields,
)
from barnabas.protocol.thread_switch import SWITCH_MASK, switch_threads
from barnabas.protocol.varint import Buffer

_THROTTLE_AND_ERROR: Final = struct.Struct(">ih")
_LOCK_TIMEOUT: Final = struct.Struct(">i")
_PARTITION_WITHOUT_MESSAGES: Final = struct.Struct(">ihxhxiix")
_INDEX_AND_ERROR: Final = struct.Struct(">ih")
_ERROR: Final = struct.Struct(">h")
_LEADER: Final = struct.Struct(">iix")
_ACQUIRED_FORMAT: Final = "qqhx"
_ACQUIRED_AT_ONCE_MAX: Final = 512
"""Entries of acquired records packed by one call: a format is cached for each count up to this."""


class ShareFetchPartitionResult(NamedTuple):
    """The result of one partition.

    `records` are whole batches, one after another. `acquired` are (first offset, last offset, delivery
    count), both offsets inclusive, ascending. Leader id and epoch are 0 unless the error means that another
    node leads.
    """

    partition_index: int
    error_code: int
    error_message: str | None
    acknowledge_error_code: int
    acknowledge_error_message: str | None
    records: Sequence[Buffer]
    acquired: Sequence[tuple[int, int, int]]
    leader_id: int = 0
    leader_epoch: int = 0
    runs: Runs | None = None


class ShareFetchTopicResult(NamedTuple):
    topic_id: UUID
    partitions: list[ShareFetchPartitionResult]


def encode_share_fetch_response(
    version: int,
    error_code: int,
    error_message: str | None,
    acquisition_lock_timeout_ms: int,
    topics: Collection[ShareFetchTopicResult],
    *,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Buffer]:
    """The body's buffers. `version` is 1 or 2."""
    assert version in {1, 2}, version
    buffers: list[Buffer] = []
    part = bytearray(_THROTTLE_AND_ERROR.pack(0, error_code))
    part += NULL_STRING if error_message is None else compact_string(error_message)
    part += _LOCK_TIMEOUT.pack(acquisition_lock_timeout_ms)
    part += compact_count(len(topics))
    for number, (topic_id, partitions) in enumerate(topics):
        if number & SWITCH_MASK == SWITCH_MASK:
            switch_threads()
        part += topic_id.int.to_bytes(16)
        part += compact_count(len(partitions))
        for number_in_topic, partition in enumerate(partitions):
            if number_in_topic & SWITCH_MASK == SWITCH_MASK:
                switch_threads()
            index, error, message, ack_error, ack_message, records, acquired, *leader, runs = partition
            if message is None and ack_message is None:
                part += _PARTITION_WITHOUT_MESSAGES.pack(index, error, ack_error, *leader)
            else:
                part += _INDEX_AND_ERROR.pack(index, error) + compact_string(message)
                part += _ERROR.pack(ack_error) + compact_string(ack_message)
                part += _LEADER.pack(*leader)
            part += compact_count(sum(map(len, records)))
            if records:
                buffers.append(part)
                buffers += records
                part = bytearray()
            part += compact_count(len(acquired))
            for start in range(0, len(acquired), _ACQUIRED_AT_ONCE_MAX):
                some = acquired[start : start + _ACQUIRED_AT_ONCE_MAX]
                part += _acquired_format(len(some)).pack(*chain.from_iterable(some))
            part += NO_TAGS if runs is None else tagged_fields([(RUNS_TAG, pack_runs(runs))])
        part += NO_TAGS
    part += compact_endpoints(node_endpoints) if node_endpoints else compact_count(0)
    part += NO_TAGS
    buffers.append(part)
    return buffers


@cache
def _acquired_format(count: int) -> struct.Struct:
    return struct.Struct(">" + _ACQUIRED_FORMAT * count)
