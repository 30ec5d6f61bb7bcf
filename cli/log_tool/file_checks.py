"""Checks the small files beside a log's segments, and those of a data directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import UUID

from barnabas.cli.log_tool.files import read_if_there
from barnabas.cli.log_tool.findings import Finding
from barnabas.cli.log_tool.places import CHECKPOINT_FILES, PartitionFiles
from barnabas.cli.log_tool.verification import LogVerification
from barnabas.coordinator.metadata.snapshot import SNAPSHOT_SUFFIX as METADATA_SNAPSHOT_SUFFIX
from barnabas.coordinator.metadata.snapshot import decode_snapshot, parse_snapshot_name
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC
from barnabas.protocol.control_record import ShareCheckpoint
from barnabas.protocol.metadata_records import (
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.directory.checkpoints import HIGH_WATERMARK_FILE, LOG_START_FILE, RECOVERY_POINT_FILE
from barnabas.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES_FILE
from barnabas.storage.directory.meta_properties import decode_meta_properties
from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_offsets
from barnabas.storage.format.index_checksums import FILE_NAME as INDEX_CHECKSUMS_FILE
from barnabas.storage.format.index_checksums import ChecksumsCorrupt, decode_index_checksums
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.format.partition_metadata import FILE_NAME as PARTITION_METADATA_FILE
from barnabas.storage.format.partition_metadata import decode_partition_metadata, encode_id
from barnabas.storage.format.producer_snapshot import SNAPSHOT_SUFFIX, SnapshotCorrupt
from barnabas.storage.format.producer_snapshot import decode_snapshot as decode_producer_snapshot
from barnabas.storage.format.share_snapshot import FILE_NAME as SHARE_SNAPSHOT_FILE
from barnabas.storage.format.share_snapshot import ShareSnapshotCorrupt, decode_share_snapshot
from barnabas.storage.state.log_files import LEADER_EPOCH_FILE

_LEFTOVER_SUFFIXES = (".tmp", ".deleted", ".cleaned", ".swap")
_QUORUM_STATE_FILE = "quorum-state"
"""A file in the metadata log of Apache Kafka, whose snapshots contain records that Barnabas does not know."""


def check_leader_epochs(partition: PartitionFiles) -> tuple[LeaderEpochs | None, list[Finding]]:
    """The leader epochs in the file, None if it is missing or damaged, and the findings. Raises OSError."""
    name = partition.named(LEADER_EPOCH_FILE)
    data = read_if_there(partition.path / LEADER_EPOCH_FILE)
    if data is None:
        return None, []
    try:
        return LeaderEpochs.decode(data), []
    except CheckpointCorrupt as error:
        return None, [Finding(name, str(error))]


def check_partition_files(log: LogVerification, topic_ids: Mapping[str, UUID]) -> Iterator[Finding]:
    """The findings in the files beside the segments of a log that was read. Raises OSError.

    `topic_ids` are those of the metadata, by name; empty if they are unknown.
    """
    partition = log.partition
    for name in partition.names:
        path = partition.path / name
        if path.suffix == SNAPSHOT_SUFFIX:
            yield from _check_producer_snapshot(path, partition.named(name))
        elif name == LEADER_EPOCH_FILE and log.first_without_epoch is not None:
            yield _without_epochs(log, log.first_without_epoch)
        elif name == PARTITION_METADATA_FILE:
            yield from _check_topic_id(partition, path, topic_ids)
        elif name == SHARE_SNAPSHOT_FILE:
            yield from _check_share_snapshot(log, path, partition.named(name))
        elif name == INDEX_CHECKSUMS_FILE:
            yield from _check_index_checksums(log, path, partition.named(name))
        elif name.endswith(_LEFTOVER_SUFFIXES):
            yield Finding(
                partition.named(name), "is left from a crash; the next start removes it", is_problem=False
            )
    if partition.topic == METADATA_TOPIC and _QUORUM_STATE_FILE not in partition.names:
        yield from _check_metadata_snapshots(log)


def _without_epochs(log: LogVerification, first_offset: int) -> Finding:
    """Deleted records that have come back because the log start was lost have no leader epoch."""
    name = log.partition.named(LEADER_EPOCH_FILE)
    assert log.leader_epochs is not None
    if not log.leader_epochs.entries:
        message = "it is empty; the next start reads the leader epochs at the log's end"
        return Finding(name, message, is_problem=log.partition.was_closed)
    _, known_from = log.leader_epochs.entries[0]
    message = f"it has no leader epoch for the offsets {first_offset} to {known_from - 1}; that is harmless"
    return Finding(name, message, is_problem=False)


def _check_topic_id(
    partition: PartitionFiles, path: Path, topic_ids: Mapping[str, UUID]
) -> Iterator[Finding]:
    name = partition.named(path.name)
    try:
        found = decode_partition_metadata(path.read_bytes())
    except CheckpointCorrupt as error:
        yield Finding(name, f"{str(error).rstrip('.')}; the next start writes the topic id again")
        return
    known = topic_ids.get(partition.topic)
    if known is not None and found != known:
        yield Finding(
            name,
            f"it names the topic id {encode_id(found)}, and the metadata has {encode_id(known)} for "
            f"{partition.topic}; with the broker stopped, `barnabas log restore-topic-id {partition.path}` "
            "writes the latter",
        )


def _check_producer_snapshot(path: Path, name: str) -> Iterator[Finding]:
    try:
        decode_producer_snapshot(path.read_bytes())
    except SnapshotCorrupt as error:
        yield Finding(name, str(error))


def _check_share_snapshot(log: LogVerification, path: Path, name: str) -> Iterator[Finding]:
    """The snapshot is only a hint, but a valid one with wrong offsets is a problem."""
    try:
        snapshot = decode_share_snapshot(path.read_bytes())
    except ShareSnapshotCorrupt as error:
        yield Finding(name, f"{error}; the next start ignores it", is_problem=log.partition.was_closed)
        return
    if snapshot.end_offset > log.next_offset:
        message = f"it goes up to offset {snapshot.end_offset}, and the log to {log.next_offset}"
        yield Finding(name, message, is_problem=log.partition.was_closed)
        return
    yield from _compare_heads(snapshot.checkpoint_offsets, _heads_below(log, snapshot.end_offset), name)


def _check_index_checksums(log: LogVerification, path: Path, name: str) -> Iterator[Finding]:
    """The checksums are only a hint; a wrong one makes the next start rebuild good indexes."""
    try:
        found = decode_index_checksums(path.read_bytes())
    except ChecksumsCorrupt as error:
        yield Finding(name, f"{error}; the next start ignores it", is_problem=log.partition.was_closed)
        return
    for segment in log.partition.segments:
        for index_path, checksum in zip(
            segment.index_paths, found.get(segment.base_offset, ()), strict=False
        ):
            if not checksum.matches(read_if_there(index_path) or b""):
                message = f"it has another checksum of {index_path.name}; the next start rebuilds that file"
                yield Finding(name, message, is_problem=log.partition.was_closed)


def _heads_below(log: LogVerification, end_offset: int) -> dict[str, int]:
    heads: dict[str, int] = {}
    for found in log.controls:
        record = found.control.record
        if found.control.offset < end_offset and isinstance(record, ShareCheckpoint):
            heads[record.group_id] = found.control.offset
            if record.deleted:
                del heads[record.group_id]
    return heads


def _compare_heads(told: Mapping[str, int], heads: Mapping[str, int], name: str) -> Iterator[Finding]:
    for group_id in sorted({*told, *heads}):
        if told.get(group_id) != heads.get(group_id):
            yield Finding(
                name,
                f"it has the newest checkpoint of group {group_id!r} at {told.get(group_id, 'no offset')}, "
                f"and the log at {heads.get(group_id, 'no offset')}",
            )


# The metadata log.


def _check_metadata_snapshots(log: LogVerification) -> Iterator[Finding]:
    ids = sorted(
        filter(None, map(parse_snapshot_name, log.partition.names)), key=lambda snapshot_id: snapshot_id.age
    )
    for snapshot_id in ids:
        name = log.partition.named(snapshot_id.file_name)
        try:
            records = decode_snapshot((log.partition.path / snapshot_id.file_name).read_bytes())
        except RecordFormatError as error:
            yield Finding(name, str(error))
            continue
        yield from _check_topics(records, name)
        if snapshot_id.end_offset > log.next_offset:
            message = f"it ends at offset {snapshot_id.end_offset}, and the log at {log.next_offset}"
            yield Finding(name, message, is_problem=log.partition.was_closed)
    first_offset = log.partition.segments[0].base_offset if log.partition.segments else 0
    if first_offset > (ids[-1].end_offset if ids else 0):
        message = (
            f"the log begins at {first_offset}, and no {METADATA_SNAPSHOT_SUFFIX} file has earlier records"
        )
        yield Finding(log.partition.path.name, message)


def _check_topics(records: list[MetadataRecord], name: str) -> Iterator[Finding]:
    """Each partition belongs to a topic, and the partitions of a topic are numbered from 0 on.

    A deleted topic whose logs may still exist is created and removed again in the snapshot.
    """
    topics: dict[UUID, str] = {}
    partitions: dict[UUID, list[int]] = {}
    for record in records:
        match record:
            case TopicRecord():
                topics[record.topic_id] = record.name
                partitions[record.topic_id] = []
            case PartitionRecord():
                partitions.setdefault(record.topic_id, []).append(record.partition_id)
            case RemoveTopicRecord():
                partitions.pop(record.topic_id, None)
            case _:
                pass
    for topic_id, found in partitions.items():
        if topic_id not in topics:
            yield Finding(name, f"it has partitions of the topic {topic_id}, and not the topic")
        elif sorted(found) != list(range(len(found))) or not found:
            yield Finding(name, f"topic {topics[topic_id]} has the partitions {sorted(found)}")


# The data directory.


def check_data_directory(path: Path, logs: Mapping[tuple[str, int], LogVerification]) -> Iterator[Finding]:
    """The findings in the files of the data directory, compared with its logs. Raises OSError."""
    for name in CHECKPOINT_FILES:
        data = read_if_there(path / name)
        if data is None:
            continue
        try:
            offsets = decode_offsets(data)
        except CheckpointCorrupt as error:
            yield Finding(name, str(error))
            continue
        for key, offset in offsets.items():
            yield from _check_offset(name, key, offset, logs.get(key))
    properties = read_if_there(path / META_PROPERTIES_FILE)
    if properties is None:
        yield Finding(META_PROPERTIES_FILE, "there is none", is_problem=False)
        return
    try:
        decode_meta_properties(properties, "the file")
    except InvalidDirectory as error:
        yield Finding(META_PROPERTIES_FILE, str(error))


def _check_offset(
    name: str, key: tuple[str, int], offset: int, log: LogVerification | None
) -> Iterator[Finding]:
    partition = f"{key[0]}-{key[1]}"
    if log is None:
        yield Finding(name, f"it names {partition}, which is not there", is_problem=False)
    elif offset > log.next_offset and name in (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE):
        yield Finding(name, f"it has {partition} at offset {offset}, and the log ends at {log.next_offset}")
