"""The classic groups that a data directory of Apache Kafka knows, and what they and others have committed.

Members are not taken over: they are gone with their broker, and join again, in the generation after theirs.
Offsets are those that a consumer would have been told: of a transaction only if it was committed. For topics
that aren't taken over there are none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from barnabas.cli.kafka_import.kafka_directory import KafkaDirectory
from barnabas.coordinator.metadata.topic_names import GROUP_STATE_TOPIC
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
    """A group, or whatever consumers committed under a name: its records, as they are to be written."""

    group_id: str
    records: list[tuple[ClassicKey, ClassicValue]]


def read_classic_groups(
    directory: KafkaDirectory, topic_names: Collection[str], wall_ms: int
) -> list[FoundClassicGroup]:
    """The groups, by id; InvalidDirectory. Since `wall_ms`, the time of day, they have no members."""
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
    for partition in directory.partitions_of(GROUP_STATE_TOPIC):
        for record in directory.committed_records(GROUP_STATE_TOPIC, partition):
            decoded = _decoded(record, partition)
            if decoded is None:
                continue
            key, value = decoded
            if record.offset < newest.get(key, 0):
                # A transaction's, which ended only after this key was written once more.
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
        place = f"{GROUP_STATE_TOPIC}-{partition}, offset {record.offset}"
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
