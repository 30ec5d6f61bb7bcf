"""The transactional ids in a data directory of Apache Kafka, and the offsets in open transactions.

They are imported unchanged: the next start ends transactions that were about to end; open ones continue or
time out. Their records are in the partitions of topics, which are imported anyway.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cli.kafka_import.kafka_directory import KafkaDirectory
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import KeyValue
from barnabas.protocol.transaction_log_records import decode_transaction_record
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import InvalidDirectory


class FoundTransaction(NamedTuple):
    """A transactional id and its newest record."""

    transactional_id: str
    record: KeyValue


class PendingOffsets(NamedTuple):
    """The offsets of an open transaction in a partition of `__consumer_offsets`."""

    partition: int
    producer: ProducerIdentity
    records: list[KeyValue]


def read_transactions(directory: KafkaDirectory) -> list[FoundTransaction]:
    """The transactional ids, ascending. Raises InvalidDirectory."""
    newest: dict[str, KeyValue] = {}
    for partition in directory.partitions_of(TRANSACTION_STATE_TOPIC):
        for record in directory.records(TRANSACTION_STATE_TOPIC, partition):
            try:
                decoded = decode_transaction_record(record.key or b"", record.value)
            except RecordFormatError as error:
                raise InvalidDirectory(
                    f"The record at {record.offset} of {TRANSACTION_STATE_TOPIC}-{partition} cannot be read: "
                    f"{error}"
                ) from error
            if decoded is None:
                continue
            transactional_id = decoded[0].transactional_id
            newest.pop(transactional_id, None)
            if record.value is not None:
                newest[transactional_id] = record.key, record.value
    return [FoundTransaction(transactional_id, record) for transactional_id, record in sorted(newest.items())]


def read_pending_offsets(directory: KafkaDirectory) -> list[PendingOffsets]:
    """The offsets of open transactions, by partition, in the order of the commits."""
    return [
        PendingOffsets(partition, producer, [(record.key, record.value) for record in records])
        for partition in directory.partitions_of(OFFSETS_TOPIC)
        for producer, records in directory.open_records(OFFSETS_TOPIC, partition).items()
    ]
