"""The share groups in a data directory of Apache Kafka, and their progress.

Groups are in `__consumer_offsets`, their delivery state is in `__share_group_state` (KIP-932). Members are
not imported: they lost their broker, and join again. Records that were acquired when Kafka ended are
Available, as after a restart of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from barnabas.cli.kafka_import.kafka_directory import KafkaDirectory
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from barnabas.coordinator.replay.interfaces import StoredRecord
from barnabas.coordinator.share_state.loading import RecordsInForce
from barnabas.protocol.delivery_state import LetterPlace, RecordState, StateRange
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.share_group_records import (
    ShareGroupKey,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupValue,
    decode_share_group_record,
)
from barnabas.protocol.share_state_records import ShareSnapshotValue, ShareUpdateValue
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import UNDECIDED_OFFSET, ShareStateImage
from barnabas.storage.format.share_partition_state import SharePartitionState, state_of_snapshot

_GROUP_RECORDS = (
    ShareGroupMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupStatePartitionMetadataKey,
)
"""The records of a group without members."""


class FoundGroup(NamedTuple):
    """A share group and its current records."""

    group_id: str
    records: dict[ShareGroupKey, ShareGroupValue]

    def imported(self, incarnation: int, topic_ids: set[UUID]) -> list[tuple[ShareGroupKey, ShareGroupValue]]:
        """The records to write for a group with this incarnation; topics not in `topic_ids` are omitted."""
        return [(key, _imported(value, incarnation, topic_ids)) for key, value in self.records.items()]


def read_groups(directory: KafkaDirectory) -> list[FoundGroup]:
    """The share groups, by id."""
    groups: dict[str, dict[ShareGroupKey, ShareGroupValue]] = {}
    for key, value in _group_records(directory):
        if not isinstance(key, _GROUP_RECORDS):
            continue
        records = groups.setdefault(key.group_id, {})
        if value is None:
            records.pop(key, None)
        else:
            records[key] = value
    return [
        FoundGroup(group_id, records)
        for group_id, records in sorted(groups.items())
        if ShareGroupMetadataKey(group_id=group_id) in records
    ]


def read_share_states(directory: KafkaDirectory) -> dict[SharePartitionKey, SharePartitionState]:
    """The delivery state of every share-partition that has one."""
    states: dict[SharePartitionKey, SharePartitionState] = {}
    for partition in directory.partitions_of(SHARE_STATE_TOPIC):
        in_force = RecordsInForce()
        for record in directory.records(SHARE_STATE_TOPIC, partition):
            in_force.add(StoredRecord(record.offset, record.key, record.value))
        for (record_key, value), _ in in_force.decoded():
            key = SharePartitionKey(record_key.group_id, record_key.topic_id, record_key.partition)
            if isinstance(value, ShareSnapshotValue):
                states[key] = state_of_snapshot(value)
            elif isinstance(value, ShareUpdateValue) and key in states:
                states[key] = states[key].updated(value)
            else:
                states.pop(key, None)
    return states


def image_of(
    state: SharePartitionState, incarnation: int, control_runs: ControlRuns, log_end_offset: int
) -> ShareStateImage | None:
    """The state in Barnabas's form; None if the group has never fetched, because that is not stored.

    State beyond the log's end is ignored: a crash of Kafka can lose the end of the log. Kafka does not record
    the place of a dead letter that it was about to write.
    """
    if state.start_offset == UNDECIDED_OFFSET:
        return None
    image = ShareStateImage(control_runs)
    image.group_incarnation = incarnation
    image.state_epoch = state.state_epoch
    image.start_offset = image.end_offset = min(state.start_offset, log_end_offset)
    image.ranges = [
        StateRange(
            batch.first_offset,
            min(batch.last_offset, log_end_offset - 1),
            RecordState(batch.delivery_state),
            batch.delivery_count,
            condition=LetterPlace() if batch.delivery_state == RecordState.ARCHIVING else None,
        )
        for batch in state.state_batches
        if image.start_offset <= batch.first_offset < log_end_offset
    ]
    if image.ranges:
        image.end_offset = image.ranges[-1].last_offset + 1
    return image


def _imported(value: ShareGroupValue, incarnation: int, topic_ids: set[UUID]) -> ShareGroupValue:
    match value:
        case ShareGroupMetadataValue():
            return ShareGroupMetadataValue(
                group_epoch=value.group_epoch,
                metadata_hash=value.metadata_hash,
                group_incarnation=incarnation,
            )
        case ShareGroupStatePartitionMetadataValue():
            return ShareGroupStatePartitionMetadataValue(
                initializing_topics=tuple(
                    topic for topic in value.initializing_topics if topic.topic_id in topic_ids
                ),
                initialized_topics=tuple(
                    topic for topic in value.initialized_topics if topic.topic_id in topic_ids
                ),
                deleting_topics=(),
            )
        case _:
            return value


def _group_records(directory: KafkaDirectory) -> Iterator[tuple[ShareGroupKey, ShareGroupValue | None]]:
    for partition in directory.partitions_of(OFFSETS_TOPIC):
        for record in directory.records(OFFSETS_TOPIC, partition):
            decoded = None if record.key is None else decode_share_group_record(record.key, record.value)
            if decoded is not None:
                yield decoded
