"""The consumer groups in a data directory of Apache Kafka (KIP-848).

Their epochs are imported, so that they continue to grow. Members are not imported: they lost their broker,
and join again. `classic_groups` reads the committed offsets of all groups.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cli.kafka_import.kafka_directory import KafkaDirectory
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.protocol.consumer_group_records import (
    ConsumerGroupKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupValue,
    decode_consumer_group_record,
    encode_consumer_group_key,
    encode_consumer_group_value,
)
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import InvalidDirectory

_WITHOUT_MEMBERS = (ConsumerGroupMetadataKey, ConsumerGroupTargetAssignmentMetadataKey)


class FoundConsumerGroup(NamedTuple):
    """A group and its records to write."""

    group_id: str
    records: list[tuple[bytes, bytes]]


def read_consumer_groups(directory: KafkaDirectory) -> list[FoundConsumerGroup]:
    """The groups, by id. Raises InvalidDirectory."""
    groups: dict[str, dict[ConsumerGroupKey, ConsumerGroupValue]] = {}
    for key, value in _in_force(directory).items():
        groups.setdefault(key.group_id, {})[key] = value
    return [
        FoundConsumerGroup(
            group_id,
            [
                (encode_consumer_group_key(key), encode_consumer_group_value(value))
                for key, value in records.items()
            ],
        )
        for group_id, records in sorted(groups.items())
        if ConsumerGroupMetadataKey(group_id=group_id) in records
    ]


def _in_force(directory: KafkaDirectory) -> dict[ConsumerGroupKey, ConsumerGroupValue]:
    found: dict[ConsumerGroupKey, ConsumerGroupValue] = {}
    for partition in directory.partitions_of(OFFSETS_TOPIC):
        for record in directory.records(OFFSETS_TOPIC, partition):
            try:
                decoded = (
                    None if record.key is None else decode_consumer_group_record(record.key, record.value)
                )
            except RecordFormatError as error:
                place = f"{OFFSETS_TOPIC}-{partition}, offset {record.offset}"
                raise InvalidDirectory(f"{place}, cannot be read: {error}") from error
            if decoded is None or not isinstance(decoded[0], _WITHOUT_MEMBERS):
                continue
            key, value = decoded
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
    return found
