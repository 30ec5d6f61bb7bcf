"""Fetch requests of a consumer, versions 13 to 18, which name topics by id (KIP-516, KIP-903, KIP-951).

There is no fetch session: each request is complete, because a reader of one range needs only one partition.
The fields of followers have their defaults; from version 15 on they are tagged and not written. A member that
shares a partition can name its hash range (docs/protocol.md).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.extended.packed import pack_hash_range
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.message_parts import NO_TAGS, compact_count, compact_string, tagged_fields
from barnabas.protocol.record_keys.hash_range import HashRange

REPLICA_STATE_VERSION: Final = 15

_REPLICA_ID: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">iiibii")
"""max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch."""
_PARTITION: Final = struct.Struct(">iiqiqi")
"""partition, leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset, max_bytes."""
_CONSUMER: Final = -1
_UNKNOWN: Final = -1
_NO_SESSION: Final = (0, -1)
_HASH_RANGE_TAG: Final = 10_000


class FetchedPartition(NamedTuple):
    """The position and the size of the next fetch from one partition."""

    partition: TopicIdPartition
    fetch_offset: int
    max_bytes: int
    hashes: HashRange | None = None
    """The broker may leave out batches without a record in this range; None asks for all batches."""


class FetchBody(NamedTuple):
    """A consumer's fetch request. `isolation_level` is 0 for all records, 1 for committed ones."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    partitions: Sequence[FetchedPartition]


def encode_fetch_request(version: int, body: FetchBody) -> bytes:
    """The body of a Fetch request. `version` is 13 to 18."""
    request = bytearray(_REPLICA_ID.pack(_CONSUMER) if version < REPLICA_STATE_VERSION else b"")
    request += _HEAD.pack(
        body.max_wait_ms, body.min_bytes, body.max_bytes, body.isolation_level, *_NO_SESSION
    )
    request += compact_count(len(body.partitions))
    for partition, fetch_offset, max_bytes, hashes in body.partitions:
        request += partition.topic_id.bytes
        request += compact_count(1)
        request += _PARTITION.pack(partition.partition, _UNKNOWN, fetch_offset, _UNKNOWN, _UNKNOWN, max_bytes)
        request += NO_TAGS if hashes is None else _hash_range(hashes)
        request += NO_TAGS
    return bytes(request + compact_count(0) + compact_string("") + NO_TAGS)


def _hash_range(hashes: HashRange) -> bytes:
    packed = pack_hash_range(hashes)
    return tagged_fields([(_HASH_RANGE_TAG, compact_count(len(packed)) + packed)])
