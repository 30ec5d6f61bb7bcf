"""The records of `__transaction_state`, in Kafka's schemas (KIP-98, KIP-890).

A record has the state of a transactional id's newest transaction. The key has the type 0. Values are read in
the versions 0 and 1. The version for writing depends on transaction.version: 1 from level 1 on; its tagged
fields record a raised epoch. A transaction with acknowledgements of share groups, an extension, is always
written in version 1: Kafka skips the tagged field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from barnabas.protocol import schema
from barnabas.protocol.record_prefix import PREFIX_BYTES, prefix, read_prefix
from barnabas.protocol.schema import Int8, Int16, Int32, Int64, String, Tag, Uuid
from barnabas.protocol.varint import Buffer, RecordFormatError

_KEY_TYPE = 0
_PLAIN_VERSION, _FLEXIBLE_VERSION = 0, 1
_SUBJECT = "A transaction's record"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogKey:
    transactional_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPartitions:
    """Partitions of one topic that take part in a transaction."""

    topic: String
    partition_ids: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedPartitions:
    """Partitions of one topic whose records a share group acknowledges in a transaction."""

    group_id: String
    topic_id: Uuid
    partition_ids: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlainValue:
    """The fields of version 0."""

    producer_id: Int64
    producer_epoch: Int16
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: tuple[TransactionPartitions, ...] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogValue:
    """A transactional id's state; times are wall-clock times, -1 for none.

    Partitions are None in state Empty.

    `next_producer_id` replaces `producer_id` when the transaction has ended, -1 if it does not change.
    """

    producer_id: Int64
    previous_producer_id: Annotated[Int64, Tag(0)] = -1
    next_producer_id: Annotated[Int64, Tag(1)] = -1
    producer_epoch: Int16
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: tuple[TransactionPartitions, ...] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Annotated[Int16, Tag(2)] = 0
    acknowledgements: Annotated[tuple[AcknowledgedPartitions, ...], Tag(10_000)] = ()


def encode_transaction_key(key: TransactionLogKey) -> bytes:
    """The record's key, with its type in front."""
    return prefix(_KEY_TYPE) + schema.encode(key, 0, flexible=False)


def encode_transaction_value(value: TransactionLogValue, transaction_version: int) -> bytes:
    """The record's value, with its version in front, for the current level of `transaction.version`."""
    if transaction_version >= 1 or value.acknowledgements:
        return prefix(_FLEXIBLE_VERSION) + schema.encode(value, _FLEXIBLE_VERSION)
    plain = _PlainValue(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        transaction_timeout_ms=value.transaction_timeout_ms,
        transaction_status=value.transaction_status,
        transaction_partitions=value.transaction_partitions,
        transaction_last_update_timestamp_ms=value.transaction_last_update_timestamp_ms,
        transaction_start_timestamp_ms=value.transaction_start_timestamp_ms,
    )
    return prefix(_PLAIN_VERSION) + schema.encode(plain, _PLAIN_VERSION, flexible=False)


def decode_transaction_record(
    key: Buffer, value: Buffer | None
) -> tuple[TransactionLogKey, TransactionLogValue | None] | None:
    """Key and value (None for a tombstone) of a record, or None if the type or version is newer.

    Kafka also skips those, because a reverted upgrade may have left them. RecordFormatError if either is
    malformed.
    """
    if read_prefix(key, _SUBJECT) != _KEY_TYPE:
        return None
    decoded_key = schema.decode(TransactionLogKey, key[PREFIX_BYTES:], 0, flexible=False)
    if value is None:
        return decoded_key, None
    version = read_prefix(value, _SUBJECT)
    body = value[PREFIX_BYTES:]
    if version == _FLEXIBLE_VERSION:
        return decoded_key, schema.decode(TransactionLogValue, body, version)
    if version == _PLAIN_VERSION:
        return decoded_key, _from_plain(schema.decode(_PlainValue, body, version, flexible=False))
    if version < 0:
        raise RecordFormatError(f"{_SUBJECT} has the version {version}.")
    return None


def _from_plain(plain: _PlainValue) -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=plain.producer_id,
        producer_epoch=plain.producer_epoch,
        transaction_timeout_ms=plain.transaction_timeout_ms,
        transaction_status=plain.transaction_status,
        transaction_partitions=plain.transaction_partitions,
        transaction_last_update_timestamp_ms=plain.transaction_last_update_timestamp_ms,
        transaction_start_timestamp_ms=plain.transaction_start_timestamp_ms,
    )
