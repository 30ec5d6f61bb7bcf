"""Produce requests (key 0, versions 3 to 13), with their records as views.

kio copies each partition's records out of the request. Here they are views of it, so that a produced batch is
not copied between the socket and the file. Topics are named up to version 12 and have ids from version 13 on
(KIP-516). Unknown tagged fields are skipped. The records are not checked; see `record_batch`.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.decode.reader import MALFORMED, FlexibleReader, Reader, malformed
from barnabas.protocol.errors import FrameError
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer

FLEXIBLE_VERSION: Final = 9
TOPIC_ID_VERSION: Final = 13

_ACKS_AND_TIMEOUT: Final = struct.Struct(">hi")
_INT32: Final = struct.Struct(">i")
_NO_TAGS: Final = 0
"""The encoding of no tagged fields."""


class ProducePartition(NamedTuple):
    """The records for one partition; `records` is a view of the request, None if the client sent null."""

    partition_index: int
    records: memoryview | None


class ProduceTopic(NamedTuple):
    """One topic with either a name or an id. An id of all zeros is passed on unchanged."""

    name: str | None
    topic_id: UUID | None
    partitions: list[ProducePartition]


class ProduceBody(NamedTuple):
    """A produce request of any version. `acks` is 0, 1 or -1 unless the client violates the protocol."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]


_new_partition, _new_topic, _new_body = maker(ProducePartition), maker(ProduceTopic), maker(ProduceBody)


def decode_produce(version: int, frame: Buffer, body_offset: int) -> ProduceBody:
    """The request in `frame`; its records are views of `frame`. `FrameError` if it is malformed."""
    reader = (FlexibleReader if version >= FLEXIBLE_VERSION else Reader)(memoryview(frame), body_offset)
    try:
        return _read_body(reader, version)
    except MALFORMED as error:
        raise malformed("A produce request", error) from None


def _read_body(reader: Reader, version: int) -> ProduceBody:
    frame = reader.frame
    is_flexible = version >= FLEXIBLE_VERSION
    transactional_id = reader.nullable_string()
    acks, timeout_ms = _ACKS_AND_TIMEOUT.unpack_from(frame, reader.position)
    reader.position += _ACKS_AND_TIMEOUT.size
    topics: list[ProduceTopic] = []
    for _ in range(reader.count()):
        name = topic_id = None
        if version >= TOPIC_ID_VERSION:
            topic_id, partition_count = reader.topic_start()
        else:
            name, partition_count = reader.nullable_string(), reader.count()
            if name is None:
                raise FrameError("A produce request's topic has no name.")
        partitions: list[ProducePartition] = []
        for _ in range(partition_count):
            (index,) = _INT32.unpack_from(frame, reader.position)
            reader.position += _INT32.size
            records = reader.nullable_bytes()
            partitions.append(_new_partition((index, None if records is None else memoryview(records))))
            if is_flexible and frame[reader.position] == _NO_TAGS:
                reader.position += 1
            else:
                reader.tagged_fields()
        topics.append(_new_topic((name, topic_id, partitions)))
        if is_flexible and frame[reader.position] == _NO_TAGS:
            reader.position += 1
        else:
            reader.tagged_fields()
    reader.tagged_fields()
    return _new_body((transactional_id, acks, timeout_ms, topics))
