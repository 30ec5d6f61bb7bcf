"""The classic groups in a data directory of Apache Kafka, and all committed offsets.

Members are not imported: they lost their broker, and join again, in the next generation. The offsets are
those that a consumer would get: those of a transaction count only if it was committed. Offsets of topics that
are not imported are omitted.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from barnabas.cli.kafka_import.kafka_directory import KafkaDirectory
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.protocol.classic_group_records import (
    ClassicKey,
    ClassicValue,
    GroupMetadataValue,
    OffsetCommitKey,
    decode_classic_record,
)
from barnabas.protocol.records import Record
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import InvalidDirectory


class FoundClassicGroup(NamedTuple):
    """A group, or the offsets committed under a group id: the records to write."""

    group_id: str
    records: list[tuple[ClassicKey, ClassicValue]]


def read_classic_groups(
    directory: KafkaDirectory, topic_names: Collection[str], wall_ms: int
) -> list[FoundClassicGroup]:
    """The groups, by id; they have been empty since `wall_ms`. Raises InvalidDirectory."""
    groups: dict[str, list[tuple[ClassicKey, ClassicValue]]] = {}
    for key, value in _in_force(directory).items():
        if isinstance(value, GroupMetadataValue):
            groups.setdefault(key.group, []).append((key, _without_members(value, wall_ms)))
        elif isinstance(key, OffsetCommitKey) and key.topic in topic_names:
            groups.setdefault(key.group, []).append((key, value))
    return [FoundClassicGroup(group_id, records) for group_id, records in sorted(groups.items())]


def _in_force(directory: KafkaDirectory) -> dict[ClassicKey, ClassicValue]:
    found: dict[ClassicKey, ClassicValue] = {}
    newest: dict[ClassicKey, int] = {}
    for partition in directory.partitions_of(OFFSETS_TOPIC):
        for record in directory.committed_records(OFFSETS_TOPIC, partition):
            decoded = _decoded(record, partition)
            if decoded is None:
                continue
            key, value = decoded
            if record.offset < newest.get(key, 0):
                # From a transaction that ended only after a newer record with this key.
                continue
            newest[key] = record.offset
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
    return found


def _decoded(record: Record, partition: int) -> tuple[ClassicKey, ClassicValue | None] | None:
    if record.key is None:
        return None
    try:
        return decode_classic_record(record.key, record.value)
    except RecordFormatError as error:
        place = f"{OFFSETS_TOPIC}-{partition}, offset {record.offset}"
        raise InvalidDirectory(f"{place}, cannot be read: {error}") from error


def _without_members(value: GroupMetadataValue, wall_ms: int) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type=value.protocol_type,
        generation=value.generation,
        protocol=None,
        leader=None,
        current_state_timestamp_ms=wall_ms,
        members=(),
    )
