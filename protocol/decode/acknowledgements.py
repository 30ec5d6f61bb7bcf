"""The topics of ShareFetch and ShareAcknowledge requests with their acknowledgement batches (KIP-932).

A client that acknowledges record by record sends hundreds of batches a request, nearly all of one shape:
two offsets, one type, no tagged fields, 19 bytes. Those are read many at a time, all others one by one.
Whether offsets and types make sense is not looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Final, NamedTuple, cast
from uuid import UUID

from barnabas.protocol.decode.reader import FlexibleReader

_ONE_TYPE: Final = struct.Struct(">qqB1sB")
"""First and last offset, one more than the count of types, the only type, the count of tagged fields."""
_ONE_TYPE_BYTES: Final = _ONE_TYPE.size
_ONE_TYPE_ALONE: Final = struct.Struct(">qqx1sx")
_TYPE_COUNT_AT: Final = 16
_TAG_COUNT_AT: Final = 18
_ALIKE_MAX: Final = 128
"""Batches that are looked at together, in vain if the first of them has another shape."""


class AckBatch(NamedTuple):
    """One acknowledgement batch: both offsets inclusive, one type for all of them or one for each.

    `types` are bytes if they come from a request: a negative type, which there is none of, is above 127.
    """

    first_offset: int
    last_offset: int
    types: Sequence[int]


class AckPartition(NamedTuple):
    """One partition that is named, and what of it is acknowledged, if anything."""

    partition_index: int
    acknowledgement_batches: list[AckBatch]


class AckTopic(NamedTuple):
    """The id that is all zeros is passed on as it came."""

    topic_id: UUID
    partitions: list[AckPartition]


_new_batch = cast(
    "Callable[[type[AckBatch], tuple[int, int, bytes]], AckBatch]", tuple[int, int, bytes].__new__
)
"""What `AckBatch._make` calls, which for hundreds of batches takes twice the time."""


def read_ack_topics(reader: FlexibleReader) -> list[AckTopic]:
    """An array of topics. Raises as the reader does."""
    return reader.array(_read_topic)


def _read_topic(reader: FlexibleReader) -> AckTopic:
    topic = AckTopic(reader.topic_id(), reader.array(_read_partition))
    reader.tagged_fields()
    return topic


def _read_partition(reader: FlexibleReader) -> AckPartition:
    partition = AckPartition(reader.int32(), _read_batches(reader))
    reader.tagged_fields()
    return partition


def _read_batches(reader: FlexibleReader) -> list[AckBatch]:
    count = reader.count()
    if count == 1:
        return [_read_batch(reader)]
    batches: list[AckBatch] = []
    while len(batches) < count:
        batches += _read_alike(reader, min(count - len(batches), _ALIKE_MAX))
        if len(batches) < count:
            batches.append(_read_batch(reader))
    return batches


def _read_alike(reader: FlexibleReader, count_max: int) -> list[AckBatch]:
    """The next batches up to the first one of another shape, which may be the very next."""
    ahead = reader.frame[reader.position : reader.position + count_max * _ONE_TYPE_BYTES]
    type_counts = bytes(ahead[_TYPE_COUNT_AT::_ONE_TYPE_BYTES])
    tag_counts = bytes(ahead[_TAG_COUNT_AT::_ONE_TYPE_BYTES])
    alike_count = min(_leading_count(type_counts, b"\x02"), _leading_count(tag_counts, b"\x00"))
    alike_bytes = alike_count * _ONE_TYPE_BYTES
    reader.position += alike_bytes
    return list(map(_new_batch, repeat(AckBatch), _ONE_TYPE_ALONE.iter_unpack(ahead[:alike_bytes])))


def _leading_count(values: bytes, value: bytes) -> int:
    """How many of the values before the first other one are `value`."""
    return len(values) - len(values.lstrip(value))


def _read_batch(reader: FlexibleReader) -> AckBatch:
    """The next batch, whatever its shape.

    The shortest has 18 bytes, but its partition's tagged fields follow: 19 are always there.
    """
    start = reader.position
    first_offset, last_offset, type_count, ack_type, tag_count = _ONE_TYPE.unpack_from(reader.frame, start)
    if type_count == 2 and not tag_count:
        reader.position = start + _ONE_TYPE_BYTES
        return _new_batch(AckBatch, (first_offset, last_offset, ack_type))
    reader.position = start + _TYPE_COUNT_AT
    types = bytes(reader.take(reader.count()))
    reader.tagged_fields()
    return AckBatch(first_offset, last_offset, types)
