"""Fetch requests (key 1, versions 4 to 18; KIP-74, KIP-227, KIP-320, KIP-516, KIP-595).

Every consumer sends them continuously, so they are read without kio. Topics are named up to version 12 and
have ids from version 13 on; an id of all zeros is passed on unchanged. Followers identify themselves from
version 15 on; the replica id of older versions is ignored, and so is the rack. From version 13 on, a member
of a consumer group that shares a partition names its hash range (docs/protocol.md). Unknown tagged fields are
skipped. The contents of the fields and their combination are not checked.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.decode.reader import MALFORMED, FlexibleReader, Reader, malformed
from barnabas.protocol.errors import FrameError
from barnabas.protocol.thread_switch import SWITCH_MASK, switch_threads
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer

FLEXIBLE_VERSION: Final = 12
TOPIC_ID_VERSION: Final = 13

_LOG_START_VERSION: Final = 5
_SESSION_VERSION: Final = 7
_LEADER_EPOCH_VERSION: Final = 9
_RACK_VERSION: Final = 11
_REPLICA_STATE_VERSION: Final = 15
_DIRECTORY_ID_VERSION: Final = 17
_HIGH_WATERMARK_VERSION: Final = 18

_NO_SESSION: Final = (0, -1)
"""Session id and epoch of a client without a session."""
_NO_EPOCH: Final = -1
_NO_OFFSET: Final = -1
_NO_REPLICA: Final = -1
_ANY_HIGH_WATERMARK: Final = 2**63 - 1

_CLUSTER_ID_TAG, _REPLICA_STATE_TAG = 0, 1
_DIRECTORY_ID_TAG, _HIGH_WATERMARK_TAG = 0, 1
HASH_RANGE_TAG: Final = 10_000

_REPLICA_ID_BYTES: Final = 4
_REPLICA_STATE: Final = struct.Struct(">iq")
_INT64: Final = struct.Struct(">q")
_ID: Final = struct.Struct("16s")
_LIMITS: Final = struct.Struct(">iiib")
"""The fields from the wait to the isolation level."""
_LIMITS_AND_SESSION: Final = struct.Struct(">iiibii")
_PARTITION: Final = struct.Struct(">iiqiqi")
_PARTITION_WITHOUT_FETCHED_EPOCH: Final = struct.Struct(">iiqqi")
_PARTITION_WITHOUT_EPOCHS: Final = struct.Struct(">iqqi")
_PARTITION_WITHOUT_LOG_START: Final = struct.Struct(">iqi")


class FetchPartition(NamedTuple):
    """The request for one partition: epochs and offsets are -1 if the client did not send them.

    The directory id and the high watermark are sent by followers. `hash_range` is as in the tag (`packed`),
    None for a reader of all records.
    """

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    replica_directory_id: UUID | None = None
    high_watermark: int = _ANY_HIGH_WATERMARK
    hash_range: bytes | None = None


class FetchTopic(NamedTuple):
    """One topic, by its name or its id."""

    reference: str | UUID
    partitions: list[FetchPartition]


class FetchBody(NamedTuple):
    """A fetch request of any version; `forgotten_topics` are names or ids with partition indexes."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten_topics: list[tuple[str | UUID, list[int]]]
    cluster_id: str | None = None
    replica_id: int = _NO_REPLICA


_new_partition, _new_topic, _new_body = maker(FetchPartition), maker(FetchTopic), maker(FetchBody)


def decode_fetch(version: int, frame: Buffer, body_offset: int) -> FetchBody:
    """The request whose body starts at `body_offset` of `frame`; `FrameError` if it is malformed."""
    reader = (FlexibleReader if version >= FLEXIBLE_VERSION else Reader)(bytes(frame), body_offset)
    try:
        return _read_body(reader, version)
    except MALFORMED as error:
        raise malformed("A fetch request", error) from None


def _read_body(reader: Reader, version: int) -> FetchBody:
    if version < _REPLICA_STATE_VERSION:
        reader.take(_REPLICA_ID_BYTES)
    has_session = version >= _SESSION_VERSION
    numbers = reader.fields(_LIMITS_AND_SESSION) if has_session else (*reader.fields(_LIMITS), *_NO_SESSION)
    topics: list[FetchTopic] = []
    for topic_number in range(reader.count()):
        if topic_number & SWITCH_MASK == SWITCH_MASK:
            switch_threads()
        reference, partition_count = _read_topic_start(reader, version)
        partitions: list[FetchPartition] = []
        topics.append(_new_topic((reference, partitions)))
        for number in range(partition_count):
            if number & SWITCH_MASK == SWITCH_MASK:
                switch_threads()
            if version < FLEXIBLE_VERSION:
                partitions.append(_read_old_partition(reader, version))
                continue
            fields = reader.fields(_PARTITION)
            partition = _new_partition((*fields, None, _ANY_HIGH_WATERMARK, None))
            tags = reader.tags()
            partitions.append(_with_partition_tags(partition, tags, version) if tags else partition)
        reader.tagged_fields()
    forgotten_topics: list[tuple[str | UUID, list[int]]] = []
    if has_session:
        count = reader.count()
        if count:
            forgotten_topics = [_read_forgotten_topic(reader, version) for _ in range(count)]
    if version >= _RACK_VERSION:
        reader.nullable_string()
    body = _new_body((*numbers, topics, forgotten_topics, None, _NO_REPLICA))
    tags = reader.tags()
    return _with_tags(body, tags, version) if tags else body


def _with_tags(body: FetchBody, tags: Mapping[int, Buffer], version: int) -> FetchBody:
    cluster_id, replica_state = tags.get(_CLUSTER_ID_TAG), tags.get(_REPLICA_STATE_TAG)
    if cluster_id is not None:
        body = body._replace(cluster_id=FlexibleReader(cluster_id, 0).nullable_string())
    if replica_state is not None and version >= _REPLICA_STATE_VERSION:
        replica_id, _ = _REPLICA_STATE.unpack_from(replica_state)
        body = body._replace(replica_id=replica_id)
    return body


def _read_topic_start(reader: Reader, version: int) -> tuple[str | UUID, int]:
    """The topic's name or id, and the number of its partitions."""
    if version >= TOPIC_ID_VERSION:
        return reader.topic_start()
    name = reader.nullable_string()
    if name is None:
        raise FrameError("A fetch request's topic has no name.")
    return name, reader.count()


def _read_forgotten_topic(reader: Reader, version: int) -> tuple[str | UUID, list[int]]:
    reference, partition_count = _read_topic_start(reader, version)
    indexes = reader.int32s(partition_count)
    reader.tagged_fields()
    return reference, indexes


def _with_partition_tags(
    partition: FetchPartition, tags: Mapping[int, Buffer], version: int
) -> FetchPartition:
    directory_id, high_watermark = tags.get(_DIRECTORY_ID_TAG), tags.get(_HIGH_WATERMARK_TAG)
    if directory_id is not None and version >= _DIRECTORY_ID_VERSION:
        (encoded,) = _ID.unpack_from(directory_id)
        partition = partition._replace(replica_directory_id=UUID(bytes=encoded) if any(encoded) else None)
    if high_watermark is not None and version >= _HIGH_WATERMARK_VERSION:
        partition = partition._replace(high_watermark=_INT64.unpack_from(high_watermark)[0])
    if HASH_RANGE_TAG in tags and version >= TOPIC_ID_VERSION:
        partition = partition._replace(hash_range=_read_hash_range(tags[HASH_RANGE_TAG]))
    return partition


def _read_hash_range(content: Buffer) -> bytes:
    """The content of a tag with bytes: their size comes first."""
    reader = FlexibleReader(content, 0)
    return bytes(reader.take(reader.count()))


def _read_old_partition(reader: Reader, version: int) -> FetchPartition:
    leader_epoch, log_start_offset = _NO_EPOCH, _NO_OFFSET
    if version >= _LEADER_EPOCH_VERSION:
        fields = reader.fields(_PARTITION_WITHOUT_FETCHED_EPOCH)
        index, leader_epoch, fetch_offset, log_start_offset, bytes_max = fields
    elif version >= _LOG_START_VERSION:
        index, fetch_offset, log_start_offset, bytes_max = reader.fields(_PARTITION_WITHOUT_EPOCHS)
    else:
        index, fetch_offset, bytes_max = reader.fields(_PARTITION_WITHOUT_LOG_START)
    return FetchPartition(index, leader_epoch, fetch_offset, _NO_EPOCH, log_start_offset, bytes_max)
