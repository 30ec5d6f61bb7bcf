"""Reads the steps in the history of one record from the log of its partition in a data directory.

Only the share index and the group's control records are read, and the batches behind the last entry of the
offset index. Nothing is locked or written, so the broker may run meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.cli.log_tool.control_records import ControlRecord, read_control_record
from barnabas.cli.log_tool.files import opened
from barnabas.cli.log_tool.places import PartitionFiles, SegmentFiles, find_place
from barnabas.cli.log_tool.segments import read_indexes, scan
from barnabas.protocol.record_history import HistoryStep, history_step
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.segments.damage import Damage
from barnabas.storage.share.share_state import may_be_share_state, read_control_batch
from barnabas.storage.topic_partition import TopicPartition


def find_partition(data_directory: str, topic: str, partition: int) -> PartitionFiles | None:
    """The files of the partition; None if the directory has none. Raises UnreadableError."""
    wanted = TopicPartition(topic, partition)
    return next((files for files in find_place(data_directory).partitions if files.key == wanted), None)


def read_history(partition: PartitionFiles, group_id: str, offset: int) -> Iterator[HistoryStep]:
    """The steps, oldest first; damaged control records are left out. Raises OSError."""
    for segment in partition.segments:
        for control in _control_records(partition, segment, group_id):
            if control.record is None or control.record.group_id != group_id:
                continue
            step = history_step(offset, control.offset, control.record)
            if step is not None:
                yield step


def _control_records(
    partition: PartitionFiles, segment: SegmentFiles, group_id: str
) -> Iterator[ControlRecord]:
    """The control records of the segment, of this group and perhaps of others."""
    indexes = read_indexes(segment)
    known_position = indexes.offsets.last_entry()[1]
    with opened(segment.log_path) as file:
        for entry in indexes.shares.entries_between(0, known_position):
            if entry.group_hash == group_hash(group_id):
                try:
                    yield read_control_record(file.read(entry.position, entry.length_bytes))
                except RecordFormatError:
                    continue  # barnabas log verify reports the damage
        for scanned in scan(segment, file, indexes, known_position, end_offset=partition.end_offset(segment)):
            if isinstance(scanned, Damage) or not may_be_share_state(scanned.header):
                continue
            if read_control_batch(scanned.data, scanned.header) is not None:
                yield read_control_record(scanned.data)
