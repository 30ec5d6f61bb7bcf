"""The records of transactional ids, made from their state, and decoded."""

from __future__ import annotations

from typing import TypeAlias
from uuid import UUID

from barnabas.coordinator.transaction.transaction import Transaction, TransactionState
from barnabas.protocol.identity import SharePartitionKey, TopicNamePartition, by_topic
from barnabas.protocol.transaction_log_records import (
    AcknowledgedPartitions,
    TransactionLogKey,
    TransactionLogValue,
    TransactionPartitions,
    decode_transaction_record,
    encode_transaction_key,
    encode_transaction_value,
)
from barnabas.protocol.varint import Buffer, RecordFormatError

TransactionRecord: TypeAlias = tuple[str, Transaction | None]
"""A transactional id and its state; None if the id is deleted."""


def record_of(transaction: Transaction) -> TransactionRecord:
    return transaction.transactional_id, transaction


def encode_record(record: TransactionRecord, transaction_version: int) -> tuple[bytes, bytes | None]:
    """Key and value, for the level of `transaction.version` in force."""
    transactional_id, transaction = record
    key = encode_transaction_key(TransactionLogKey(transactional_id=transactional_id))
    if transaction is None:
        return key, None
    return key, encode_transaction_value(_value_of(transaction), transaction_version)


def decode_record(key: Buffer, value: Buffer | None) -> TransactionRecord | None:
    """The record; None if its type is unknown. RecordFormatError if it is malformed."""
    decoded = decode_transaction_record(key, value)
    if decoded is None:
        return None
    record_key, record_value = decoded
    transactional_id = record_key.transactional_id
    return transactional_id, None if record_value is None else _state_of(transactional_id, record_value)


def _value_of(transaction: Transaction) -> TransactionLogValue:
    is_empty = transaction.state is TransactionState.EMPTY
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.value,
        transaction_partitions=None if is_empty else _partitions_of(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_at_ms,
        transaction_start_timestamp_ms=transaction.started_at_ms,
        client_transaction_version=transaction.client_version,
        acknowledgements=_acknowledgements_of(transaction.acknowledgements),
    )


def _partitions_of(partitions: frozenset[TopicNamePartition]) -> tuple[TransactionPartitions, ...]:
    return tuple(
        TransactionPartitions(topic=topic, partition_ids=tuple(partition_ids))
        for topic, partition_ids in by_topic(partitions).items()
    )


def _acknowledgements_of(keys: frozenset[SharePartitionKey]) -> tuple[AcknowledgedPartitions, ...]:
    indexes: dict[tuple[str, UUID], list[int]] = {}
    for group_id, topic_id, partition in sorted(keys):
        indexes.setdefault((group_id, topic_id), []).append(partition)
    return tuple(
        AcknowledgedPartitions(group_id=group_id, topic_id=topic_id, partition_ids=tuple(of_topic))
        for (group_id, topic_id), of_topic in indexes.items()
    )


def _state_of(transactional_id: str, value: TransactionLogValue) -> Transaction:
    try:
        state = TransactionState(value.transaction_status)
    except ValueError as error:
        raise RecordFormatError(
            f"A transaction's record has the state {value.transaction_status}."
        ) from error
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicNamePartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        acknowledgements=_share_partitions_in(value),
        started_at_ms=value.transaction_start_timestamp_ms,
        updated_at_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _share_partitions_in(value: TransactionLogValue) -> frozenset[SharePartitionKey]:
    return frozenset(
        SharePartitionKey(acknowledged.group_id, acknowledged.topic_id, partition)
        for acknowledged in value.acknowledgements
        for partition in acknowledged.partition_ids
    )
