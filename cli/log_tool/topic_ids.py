"""The topic ids in the metadata of a data directory, and `barnabas log restore-topic-id`.

Each partition's directory has a file with the id of its topic. If the disk has changed that id, the broker
refuses the partition, because the records could be another topic's. A person knows it, and has the id of the
metadata written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import UUID

from barnabas.cli.log_tool.files import UnreadableError, opened, read_if_there
from barnabas.cli.log_tool.places import PartitionFiles, Place, find_place, single_partition
from barnabas.cli.log_tool.segments import read_indexes, scan
from barnabas.cli.printing import Printer
from barnabas.coordinator.metadata.snapshot import decode_log, decode_snapshot, parse_snapshot_name
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from barnabas.protocol.metadata_records import MetadataRecord, RemoveTopicRecord, TopicRecord
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.directory.log_directory import LOCK_FILE
from barnabas.storage.filesystem import FileSystem, replace_whole
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt
from barnabas.storage.format.partition_metadata import (
    FILE_NAME,
    decode_partition_metadata,
    encode_id,
    encode_partition_metadata,
)
from barnabas.storage.segments.damage import Damage


def read_topic_ids(data_directory: Path) -> Mapping[str, UUID]:
    """The id of each topic by its name, the metadata's own included.

    Raises UnreadableError if the metadata is missing, damaged or of a newer version; OSError.
    """
    place = find_place(str(data_directory / f"{METADATA_TOPIC}-0"))
    names = {METADATA_TOPIC_ID: METADATA_TOPIC}
    try:
        for record in _records(place.partitions[0]):
            if isinstance(record, TopicRecord):
                names[record.topic_id] = record.name
            elif isinstance(record, RemoveTopicRecord):
                names.pop(record.topic_id, None)
    except RecordFormatError as error:
        raise UnreadableError(f"The metadata of {data_directory} cannot be read: {error}") from error
    return {name: topic_id for topic_id, name in names.items()}


def _records(metadata: PartitionFiles) -> Iterator[MetadataRecord]:
    """The records of the newest readable snapshot, and those behind it. Raises RecordFormatError, OSError."""
    offset = 0
    for snapshot_id in sorted(
        filter(None, map(parse_snapshot_name, metadata.names)), key=lambda found: found.age, reverse=True
    ):
        try:
            records = decode_snapshot((metadata.path / snapshot_id.file_name).read_bytes())
        except RecordFormatError:
            continue
        yield from records
        offset = snapshot_id.end_offset
        break
    is_torn = False
    for segment in metadata.segments:
        with opened(segment.log_path) as file:
            end_offset = metadata.end_offset(segment)
            for found in scan(segment, file, read_indexes(segment), end_offset=end_offset):
                if isinstance(found, Damage):
                    is_torn = not metadata.was_closed and offset >= (metadata.recovery_point or 0)
                    if not is_torn:
                        raise RecordFormatError(f"{segment.log_path} is damaged: {found.reason}.")
                    continue
                if is_torn:
                    raise RecordFormatError(f"{segment.log_path} is damaged before {found.position}.")
                if found.header.last_offset < offset:
                    continue
                if found.header.base_offset > offset:
                    raise RecordFormatError(f"The records from {offset} on are missing.")
                for batch in decode_log(bytes(found.data), offset):
                    yield from batch.records
                    offset = batch.next_offset


def restore_topic_id(place: Place, printer: Printer, filesystem: FileSystem) -> None:
    """Writes the topic's id in the metadata into the partition's directory, durably, and prints it.

    Raises UnreadableError without a known id, DirectoryLocked, OSError.
    """
    partition = single_partition(place)
    data_directory = partition.path.parent
    lock = filesystem.lock(str(data_directory / LOCK_FILE))
    try:
        topic_id = _id_of(partition, data_directory)
        before = read_topic_id(partition)
        if before != topic_id:
            replace_whole(filesystem, str(partition.path / FILE_NAME), encode_partition_metadata(topic_id))
    finally:
        lock.release()
    name, earlier = partition.named(FILE_NAME), None if before is None else encode_id(before)
    if printer.as_json:
        printer.row(
            {"type": "topic_id", "file": name, "topic_id": encode_id(topic_id), "earlier_topic_id": earlier}
        )
    elif before == topic_id:
        printer.text(f"{name}: the topic id {earlier} is that of the metadata; nothing was changed")
    else:
        printer.text(f"{name}: the topic id is {encode_id(topic_id)} again; it was {earlier or 'unreadable'}")


def _id_of(partition: PartitionFiles, data_directory: Path) -> UUID:
    if partition.topic == METADATA_TOPIC:
        return METADATA_TOPIC_ID
    topic_id = read_topic_ids(data_directory).get(partition.topic)
    if topic_id is None:
        raise UnreadableError(f"The metadata of {data_directory} has no topic {partition.topic}.")
    return topic_id


def read_topic_id(partition: PartitionFiles) -> UUID | None:
    """The id in the partition's directory; None without a readable one. Raises OSError."""
    try:
        return decode_partition_metadata(read_if_there(partition.path / FILE_NAME) or b"")
    except CheckpointCorrupt:
        return None
