"""The topics of ShareFetch and ShareAcknowledge requests with their acknowledgement batches (KIP-932).

A client that acknowledges record by record sends hundreds of batches in a request, nearly all with the same
layout: two offsets, one type, no tagged fields, 19 bytes. Those are read many at a time, all others one by
one. The values of offsets and types are not checked.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.decode.reader import FlexibleReader
from barnabas.protocol.extended.release_delays import (
    RELEASE_DELAYS_TAG,
    ReleaseDelay,
    unpack_release_delays,
)
from barnabas.protocol.thread_switch import SWITCH_MASK, switch_threads
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer

_ONE_TYPE: Final = struct.Struct(">qqB1sB")
"""First and last offset, the count of types plus one, the only type, the count of tagged fields."""
_ONE_TYPE_BYTES: Final = _ONE_TYPE.size
_PARTITION_START: Final = struct.Struct(">iBB")
"""A partition's index, the count of its batches plus one, and the byte that follows."""
_BATCHES_AT: Final = 5
_ONE_BATCH: Final = struct.Struct(">qqB1sBB")
"""A batch of one type, and the count of the partition's tagged fields."""
_ONE_BATCH_AND_END: Final = _BATCHES_AT + _ONE_BATCH.size
_ONE_TYPE_ALONE: Final = struct.Struct(">qqx1sx")
_TYPE_COUNT_AT: Final = 16
_TAG_COUNT_AT: Final = 18
ENCODED_TOPICS_MAX: Final = 64 * 1024
"""The most bytes of topics that are copied to recognise a repeated request."""
_ALIKE_MAX: Final = 128
"""Batches that are read together; the effort is wasted if the first of them has another layout."""


class AckBatch(NamedTuple):
    """One acknowledgement batch: both offsets inclusive, one type for all of them or one for each.

    `types` are bytes if they come from a request; a negative type, which is invalid, is then above 127.
    """

    first_offset: int
    last_offset: int
    types: Sequence[int]


class AckPartition(NamedTuple):
    """One partition of a request, with its acknowledgements, if any. The delays are an extension."""

    partition_index: int
    acknowledgement_batches: list[AckBatch]
    release_delays: tuple[ReleaseDelay, ...] = ()


class AckTopic(NamedTuple):
    """An id of all zeros is passed on unchanged."""

    topic_id: UUID
    partitions: list[AckPartition]


_new_batch, _new_partition, _new_topic = maker(AckBatch), maker(AckPartition), maker(AckTopic)


def read_ack_topics(reader: FlexibleReader) -> list[AckTopic]:
    """An array of topics. Raises the errors of the reader.

    Most partitions have no batch, or one of the usual layout, which is read at once.
    """
    frame = reader.frame
    topics: list[AckTopic] = []
    for topic_number in range(reader.count()):
        if topic_number & SWITCH_MASK == SWITCH_MASK:
            switch_threads()
        topic_id, partition_count = reader.topic_start()
        partitions: list[AckPartition] = []
        for number in range(partition_count):
            if number & SWITCH_MASK == SWITCH_MASK:
                switch_threads()
            position = reader.position
            index, batch_count, next_byte = _PARTITION_START.unpack_from(frame, position)
            if batch_count == 1 and next_byte == 0:
                partitions.append(_new_partition((index, [], ())))
                reader.position = position + _PARTITION_START.size
                continue
            if batch_count == 2 and position + _ONE_BATCH_AND_END <= len(frame):
                first_offset, last_offset, type_count, ack_type, tag_count, partition_tag_count = (
                    _ONE_BATCH.unpack_from(frame, position + _BATCHES_AT)
                )
                if type_count == 2 and not tag_count and not partition_tag_count:
                    batch = _new_batch((first_offset, last_offset, ack_type))
                    partitions.append(_new_partition((index, [batch], ())))
                    reader.position = position + _ONE_BATCH_AND_END
                    continue
            partitions.append(_read_partition(reader))
        if frame[reader.position]:
            reader.tagged_fields()
        else:
            reader.position += 1
        topics.append(_new_topic((topic_id, partitions)))
    return topics


def encoded_between(frame: Buffer, start: int, end: int) -> bytes:
    """The topics that were read there, as they were sent: a repeated request has the same bytes. Empty if
    they have more than `ENCODED_TOPICS_MAX` bytes.
    """
    return bytes(frame[start:end]) if end - start <= ENCODED_TOPICS_MAX else b""


def _read_partition(reader: FlexibleReader) -> AckPartition:
    index, batches = reader.int32(), _read_batches(reader)
    delays = reader.tags().get(RELEASE_DELAYS_TAG)
    if delays is None:
        return AckPartition(index, batches)
    return AckPartition(index, batches, unpack_release_delays(bytes(delays)))


def _read_batches(reader: FlexibleReader) -> list[AckBatch]:
    count = reader.count()
    if count == 1:
        return [_read_batch(reader)]
    batches: list[AckBatch] = []
    while len(batches) < count:
        switch_threads()
        batches += _read_alike(reader, min(count - len(batches), _ALIKE_MAX))
        if len(batches) < count:
            batches.append(_read_batch(reader))
    return batches


def _read_alike(reader: FlexibleReader, count_max: int) -> list[AckBatch]:
    """The next batches before the first one with another layout; possibly none."""
    ahead = reader.frame[reader.position : reader.position + count_max * _ONE_TYPE_BYTES]
    type_counts = bytes(ahead[_TYPE_COUNT_AT::_ONE_TYPE_BYTES])
    tag_counts = bytes(ahead[_TAG_COUNT_AT::_ONE_TYPE_BYTES])
    alike_count = min(_leading_count(type_counts, b"\x02"), _leading_count(tag_counts, b"\x00"))
    alike_bytes = alike_count * _ONE_TYPE_BYTES
    reader.position += alike_bytes
    return list(map(_new_batch, _ONE_TYPE_ALONE.iter_unpack(ahead[:alike_bytes])))


def _leading_count(values: bytes, value: bytes) -> int:
    """How many bytes at the start are equal to `value`."""
    return len(values) - len(values.lstrip(value))


def _read_batch(reader: FlexibleReader) -> AckBatch:
    """The next batch with any layout.

    The shortest batch has 18 bytes, but its partition's tagged fields follow, so 19 bytes are always there.
    """
    start = reader.position
    first_offset, last_offset, type_count, ack_type, tag_count = _ONE_TYPE.unpack_from(reader.frame, start)
    if type_count == 2 and not tag_count:
        reader.position = start + _ONE_TYPE_BYTES
        return _new_batch((first_offset, last_offset, ack_type))
    reader.position = start + _TYPE_COUNT_AT
    types = bytes(reader.take(reader.count()))
    reader.tagged_fields()
    return AckBatch(first_offset, last_offset, types)
