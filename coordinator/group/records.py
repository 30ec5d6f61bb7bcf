"""The records in `__consumer_offsets`: of groups of every type, and of committed offsets."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard, cast

from barnabas.protocol.classic_group_records import (
    ClassicGroupRecord,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetRecord,
    decode_classic_record,
    encode_classic_key,
    encode_classic_value,
)
from barnabas.protocol.consumer_group_records import (
    ConsumerGroupKey,
    ConsumerGroupRecord,
    decode_consumer_group_record,
    encode_consumer_group_key,
    encode_consumer_group_value,
)
from barnabas.protocol.offset_range_records import (
    OffsetRangeKey,
    OffsetRangeRecord,
    decode_offset_range_record,
    encode_offset_range_key,
    encode_offset_range_value,
)
from barnabas.protocol.share_group_records import (
    ShareGroupRecord,
    decode_share_group_record,
    encode_share_group_key,
    encode_share_group_value,
)
from barnabas.protocol.varint import Buffer

AnyOffsetRecord: TypeAlias = OffsetRecord | OffsetRangeRecord
"""A record that consumers commit."""

AnyGroupRecord: TypeAlias = ShareGroupRecord | ClassicGroupRecord | ConsumerGroupRecord | AnyOffsetRecord


def is_offset(record: AnyGroupRecord) -> TypeGuard[OffsetRecord]:
    """Whether a record is a committed offset."""
    return isinstance(record[0], OffsetCommitKey)


def is_offset_range(record: AnyGroupRecord) -> TypeGuard[OffsetRangeRecord]:
    """Whether a record is a range of offsets that was committed individually."""
    return isinstance(record[0], OffsetRangeKey)


def is_classic(record: AnyGroupRecord) -> TypeGuard[ClassicGroupRecord]:
    """Whether a record belongs to a classic group."""
    return isinstance(record[0], GroupMetadataKey)


def is_consumer(record: AnyGroupRecord) -> TypeGuard[ConsumerGroupRecord]:
    """Whether a record belongs to a consumer group."""
    return isinstance(record[0], ConsumerGroupKey)


def decode_record(key: Buffer, value: Buffer | None) -> AnyGroupRecord | None:
    """The record; None if its type is unknown. RecordFormatError if it is malformed."""
    return (
        decode_classic_record(key, value)
        or decode_consumer_group_record(key, value)
        or decode_share_group_record(key, value)
        or decode_offset_range_record(key, value)
    )


def encode_record(record: AnyGroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value (None for a tombstone) as they are logged."""
    if is_offset(record) or is_classic(record):
        classic_key, classic_value = record
        encoded = None if classic_value is None else encode_classic_value(classic_value)
        return encode_classic_key(classic_key), encoded
    if is_consumer(record):
        consumer_key, consumer_value = record
        encoded = None if consumer_value is None else encode_consumer_group_value(consumer_value)
        return encode_consumer_group_key(consumer_key), encoded
    if is_offset_range(record):
        range_key, range_value = record
        encoded = None if range_value is None else encode_offset_range_value(range_value)
        return encode_offset_range_key(range_key), encoded
    key, value = cast("ShareGroupRecord", record)
    return encode_share_group_key(key), None if value is None else encode_share_group_value(value)
