"""Fetch responses, versions 4 to 18 (KIP-98, KIP-227, KIP-516, KIP-595, KIP-630, KIP-951).

The package describes the common properties of these encoders. There is no preferred read replica, because
consumers read from the leader.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.message_parts import (
    INT32,
    NO_TAGS,
    NODE_ENDPOINTS_TAG,
    NodeEndpoint,
    compact_count,
    compact_endpoints,
    compact_string,
    size_bytes,
    string,
    tagged_fields,
)
from barnabas.protocol.thread_switch import SWITCH_MASK, switch_threads
from barnabas.protocol.varint import Buffer

LOG_START_VERSION: Final = 5
SESSION_VERSION: Final = 7
PREFERRED_REPLICA_VERSION: Final = 11
FLEXIBLE_VERSION: Final = 12
TOPIC_ID_VERSION: Final = 13
ENDPOINTS_VERSION: Final = 16

_THROTTLE: Final = struct.Struct(">i")
_THROTTLE_ERROR_SESSION: Final = struct.Struct(">ihi")
_PARTITION: Final = struct.Struct(">ihqq")
_PARTITION_AND_LOG_START: Final = struct.Struct(">ihqqq")
_PLAIN_PARTITION: Final = struct.Struct(">ihqqqbi")
"""In a flexible version, without aborted transactions, up to the size of the records."""
_ABORTED: Final = struct.Struct(">qq")
_COMPACT_ABORTED: Final = struct.Struct(">qqx")
_DIVERGING: Final = struct.Struct(">iqx")
_LEADER: Final = struct.Struct(">iix")
_SNAPSHOT: Final = struct.Struct(">qix")
_LOOKED_UNTIL: Final = struct.Struct(">q")
_NO_ABORTED: Final = 0
_NO_REPLICA: Final = -1
_NO_PREFERRED_REPLICA: Final = INT32.pack(_NO_REPLICA)
_DIVERGING_TAG: Final = 0
_CURRENT_LEADER_TAG: Final = 1
_SNAPSHOT_TAG: Final = 2
LOOKED_UNTIL_TAG: Final = 10_000


class FetchPartitionResult(NamedTuple):
    """The result of one partition.

    `aborted` are (producer id, first offset) of aborted transactions, None for a reader that does not ask
    only for committed records. `records` are whole batches, one after another. `diverging` is the (leader
    epoch, end offset) from which the reader's log differs. `current_leader` is (node id, leader epoch) of
    another leader. `snapshot_id` is the (end offset, epoch) of the snapshot that a follower of the metadata
    log must read first. Versions before 12 cannot carry the last three.

    `looked_until` is for a reader that named a hash range: there are no records in the range before this
    offset except `records`.
    """

    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[tuple[int, int]] | None
    records: Sequence[Buffer]
    diverging: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None
    snapshot_id: tuple[int, int] | None = None
    looked_until: int | None = None


class FetchTopicResult(NamedTuple):
    """One topic with its name and its id; the version decides which of them is sent."""

    topic_name: str
    topic_id: UUID
    partitions: Sequence[FetchPartitionResult]


_TAGGED: Final = 7
_NONE_TAGGED: Final = (None, None, None, None)
"""The tagged fields of most partitions: the elements of a `FetchPartitionResult` from `_TAGGED` on."""


def encode_fetch_response(
    version: int,
    error_code: int,
    session_id: int,
    topics: Sequence[FetchTopicResult],
    *,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Buffer]:
    """The body's buffers.

    Versions before 7 have no error code and no session, versions before 16 no endpoints.
    """
    flexible = version >= FLEXIBLE_VERSION
    count = compact_count if flexible else INT32.pack
    buffers: list[Buffer] = []
    part = bytearray()
    if version >= SESSION_VERSION:
        part += _THROTTLE_ERROR_SESSION.pack(0, error_code, session_id)
    else:
        part += _THROTTLE.pack(0)
    part += count(len(topics))
    for number, topic in enumerate(topics):
        if number & SWITCH_MASK == SWITCH_MASK:
            switch_threads()
        part += (
            topic.topic_id.int.to_bytes(16) if version >= TOPIC_ID_VERSION else _topic_name(version, topic)
        )
        part += count(len(topic.partitions))
        for number_in_topic, partition in enumerate(topic.partitions):
            if number_in_topic & SWITCH_MASK == SWITCH_MASK:
                switch_threads()
            part += _before_records(version, partition)
            if partition.records:
                buffers.append(part)
                buffers += partition.records
                part = bytearray()
            if flexible:
                part += NO_TAGS if partition[_TAGGED:] == _NONE_TAGGED else _partition_tags(partition)
        if flexible:
            part += NO_TAGS
    if node_endpoints and version >= ENDPOINTS_VERSION:
        part += tagged_fields([(NODE_ENDPOINTS_TAG, compact_endpoints(node_endpoints))])
    elif flexible:
        part += NO_TAGS
    buffers.append(part)
    return buffers


def _count(count: int, flexible: bool) -> bytes:
    return compact_count(count) if flexible else INT32.pack(count)


def _topic_name(version: int, topic: FetchTopicResult) -> bytes:
    return compact_string(topic.topic_name) if version >= FLEXIBLE_VERSION else string(topic.topic_name)


def _before_records(version: int, partition: FetchPartitionResult) -> bytes:
    index, error_code, high_watermark, last_stable_offset, log_start_offset, aborted, records = partition[:7]
    if aborted is None and version >= FLEXIBLE_VERSION:
        offsets = high_watermark, last_stable_offset, log_start_offset
        head = _PLAIN_PARTITION.pack(index, error_code, *offsets, _NO_ABORTED, _NO_REPLICA)
        return head + compact_count(size_bytes(records))
    if version >= LOG_START_VERSION:
        head = _PARTITION_AND_LOG_START.pack(
            index, error_code, high_watermark, last_stable_offset, log_start_offset
        )
    else:
        head = _PARTITION.pack(index, error_code, high_watermark, last_stable_offset)
    head += _aborted(version, aborted)
    if version >= PREFERRED_REPLICA_VERSION:
        head += _NO_PREFERRED_REPLICA
    return head + _count(size_bytes(records), version >= FLEXIBLE_VERSION)


def _aborted(version: int, aborted: Sequence[tuple[int, int]] | None) -> bytes:
    flexible = version >= FLEXIBLE_VERSION
    if not aborted:
        return _count(-1 if aborted is None else 0, flexible)
    entry = _COMPACT_ABORTED if flexible else _ABORTED
    return _count(len(aborted), flexible) + b"".join([entry.pack(*transaction) for transaction in aborted])


def _partition_tags(partition: FetchPartitionResult) -> bytes:
    tags: list[tuple[int, bytes]] = []
    if partition.diverging is not None:
        tags.append((_DIVERGING_TAG, _DIVERGING.pack(*partition.diverging)))
    if partition.current_leader is not None:
        tags.append((_CURRENT_LEADER_TAG, _LEADER.pack(*partition.current_leader)))
    if partition.snapshot_id is not None:
        tags.append((_SNAPSHOT_TAG, _SNAPSHOT.pack(*partition.snapshot_id)))
    if partition.looked_until is not None:
        tags.append((LOOKED_UNTIL_TAG, _LOOKED_UNTIL.pack(partition.looked_until)))
    return tagged_fields(tags)
