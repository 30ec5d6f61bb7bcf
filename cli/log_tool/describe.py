"""`barnabas log describe`: the offsets and sizes of a log, and the progress of each share group.

It reads the share state, and only those other batches that the indexes do not cover. Offsets named end or
watermark are exclusive. With `share.state.store=topic` the groups' state is in another topic, and is not
shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from barnabas.cli.log_tool.control_records import ControlRecord, read_control_record, runs_of
from barnabas.cli.log_tool.files import ReadOnlyFile, opened, read_if_there
from barnabas.cli.log_tool.places import PartitionFiles, Place, SegmentFiles
from barnabas.cli.log_tool.rows import condition_fields
from barnabas.cli.log_tool.segments import Indexes, read_indexes, scan
from barnabas.cli.log_tool.share_history import GroupHistory, ShareHistory
from barnabas.cli.printing import Printer, Row, Value, as_words
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.format.partition_metadata import FILE_NAME as PARTITION_METADATA_FILE
from barnabas.storage.format.partition_metadata import decode_partition_metadata, encode_id
from barnabas.storage.format.share_image import UNDECIDED_OFFSET, ShareStateImage
from barnabas.storage.segments.damage import Damage
from barnabas.storage.share.share_state import may_be_share_state, read_control_batch
from barnabas.storage.state.log_files import LEADER_EPOCH_FILE

_SEGMENT_COLUMNS = {
    "file": "SEGMENT",
    "size_bytes": "BYTES",
    "control_bytes": "SHARE STATE",
    "max_timestamp_ms": "NEWEST RECORD",
}
_GROUP_COLUMNS = {
    "group_id": "GROUP",
    "spso": "SPSO",
    "speo": "SPEO",
    "lag": "LAG",
    "delivery_complete_count": "COMPLETE",
    "in_flight_count": "RANGES",
    "checkpoint_offset": "SCO",
    "chain_length": "CHAIN",
    "state_epoch": "STATE EPOCH",
    "incarnation": "INCARNATION",
    "control_bytes": "BYTES",
}


@dataclass(slots=True)
class _Described:
    """The results of reading one log."""

    log_end_offset: int = 0
    segments: list[Row] = field(default_factory=list[Row])
    controls: list[ControlRecord] = field(default_factory=list[ControlRecord])
    damage_count: int = 0


def describe(place: Place, printer: Printer) -> None:
    """Prints the place. Raises OSError."""
    for partition in place.partitions:
        _describe_partition(partition, printer)


def _describe_partition(partition: PartitionFiles, printer: Printer) -> None:
    described = _Described()
    for segment in partition.segments:
        _read_segment(partition, segment, described)
    control_runs = runs_of(described.controls)
    history = ShareHistory(control_runs)
    for control in described.controls:
        if control.record is not None:
            for _ in history.take(control.offset, control.record, control.size_bytes):
                described.damage_count += 1
    row = _partition_row(partition, described, history, control_runs)
    _print_heading(partition, row, printer)
    printer.table(described.segments, _SEGMENT_COLUMNS)
    _print_groups(history, row, printer)


def _read_segment(partition: PartitionFiles, segment: SegmentFiles, described: _Described) -> None:
    indexes = read_indexes(segment)
    known_position = indexes.offsets.last_entry()[1]
    described.log_end_offset = max(described.log_end_offset, segment.base_offset)
    with opened(segment.log_path) as file:
        controls = list(_indexed_controls(file, indexes, known_position, described))
        newest_ms = indexes.times.last_entry()[0]
        end_offset = partition.end_offset(segment)
        for scanned in scan(segment, file, indexes, known_position, end_offset=end_offset):
            if isinstance(scanned, Damage):
                described.damage_count += 1
                continue
            described.log_end_offset = scanned.header.last_offset + 1
            if (
                may_be_share_state(scanned.header)
                and read_control_batch(scanned.data, scanned.header) is not None
            ):
                controls.append(read_control_record(scanned.data))
            else:
                newest_ms = max(newest_ms, scanned.header.max_timestamp_ms)
    described.controls += controls
    described.segments.append(
        {
            "type": "segment",
            "file": partition.named(segment.log_path.name),
            "base_offset": segment.base_offset,
            "size_bytes": file.size_bytes,
            "control_bytes": sum(control.size_bytes for control in controls),
            "max_timestamp_ms": newest_ms,
        }
    )


def _indexed_controls(
    file: ReadOnlyFile, indexes: Indexes, end: int, described: _Described
) -> Iterator[ControlRecord]:
    """The share state before the position `end`, found by the share index."""
    for entry in indexes.shares.entries_between(0, end):
        try:
            yield read_control_record(file.read(entry.position, entry.length_bytes))
        except RecordFormatError:
            described.damage_count += 1


def _partition_row(
    partition: PartitionFiles, described: _Described, history: ShareHistory, control_runs: ControlRuns
) -> dict[str, Value]:
    first_offset = partition.segments[0].base_offset if partition.segments else 0
    log_start_offset = max(first_offset, partition.log_start_offset or 0)
    last_data_offset = control_runs.previous_data_offset(described.log_end_offset - 1)
    earliest = history.earliest_checkpoint_offset
    return {
        "type": "partition",
        "path": str(partition.path),
        "topic": partition.topic,
        "partition": None if partition.key is None else partition.key.partition,
        "topic_id": _topic_id(partition),
        "log_start_offset": log_start_offset,
        "high_watermark": max(last_data_offset + 1, log_start_offset),
        "log_end_offset": described.log_end_offset,
        "recovery_point": partition.recovery_point,
        "earliest_share_offset": described.log_end_offset if earliest is None else earliest,
        "size_bytes": sum(_number(row["size_bytes"]) for row in described.segments),
        "control_bytes": sum(control.size_bytes for control in described.controls),
        "leader_epochs": [
            {"leader_epoch": leader_epoch, "start_offset": offset}
            for leader_epoch, offset in _leader_epochs(partition)
        ],
        "damage_count": described.damage_count,
    }


def _topic_id(partition: PartitionFiles) -> str | None:
    try:
        data = read_if_there(partition.path / PARTITION_METADATA_FILE)
        return None if data is None else encode_id(decode_partition_metadata(data))
    except CheckpointCorrupt:
        return None


def _leader_epochs(partition: PartitionFiles) -> list[tuple[int, int]]:
    try:
        return LeaderEpochs.decode(read_if_there(partition.path / LEADER_EPOCH_FILE) or b"").entries
    except CheckpointCorrupt:
        return []


def _print_heading(partition: PartitionFiles, row: dict[str, Value], printer: Printer) -> None:
    if printer.as_json:
        printer.row(row)
        return
    epochs = ", ".join(f"{epoch} from {offset}" for epoch, offset in _leader_epochs(partition)) or "-"
    recovery_point = "-" if row["recovery_point"] is None else row["recovery_point"]
    printer.text()
    printer.text(f"{partition.path.name}  (topic id {row['topic_id'] or 'unknown'})")
    printer.text(
        f"  log start {row['log_start_offset']}, high watermark {row['high_watermark']}, "
        f"log end {row['log_end_offset']}, recovery point {recovery_point}, "
        f"earliest share offset {row['earliest_share_offset']}"
    )
    printer.text(
        f"  {row['size_bytes']} bytes, {row['control_bytes']} of them share state; leader epochs: {epochs}"
    )
    if row["damage_count"]:
        printer.text(f"  DAMAGED in {row['damage_count']} places: see barnabas log verify")


def _print_groups(history: ShareHistory, partition_row: Row, printer: Printer) -> None:
    rows = [
        _group_row(partition_row, group_id, group)
        for group_id, group in sorted(history.groups.items())
        if group.image is not None
    ]
    if not rows:
        return
    printer.text()
    printer.table(rows, _GROUP_COLUMNS)
    for row in rows:
        for state in _in_flight(history.groups[str(row["group_id"])]):
            printer.text(f"    {row['group_id']}: {as_words({'type': 'range', **state})}")


def _group_row(partition_row: Row, group_id: str, group: GroupHistory) -> dict[str, Value]:
    image = group.image
    assert image is not None, group_id
    is_decided = image.start_offset != UNDECIDED_OFFSET
    return {
        "type": "group",
        "topic": partition_row["topic"],
        "partition": partition_row["partition"],
        "group_id": group_id,
        "deleted": image.deleted,
        "spso": image.start_offset,
        "speo": image.end_offset,
        "lag": _lag(image, partition_row) if is_decided and not image.deleted else None,
        "delivery_complete_count": image.delivery_complete_count,
        "in_flight_count": len(image.ranges),
        "in_flight": _in_flight(group),
        "checkpoint_offset": group.checkpoint_offset,
        "chain_length": image.delta_count,
        "checkpoint_epoch": image.checkpoint_epoch,
        "state_epoch": image.state_epoch,
        "incarnation": image.group_incarnation,
        "control_bytes": group.control_bytes,
    }


def _lag(image: ShareStateImage, partition_row: Row) -> int:
    """The records in the log that are not final. A leader goes on at the log start if that is later."""
    led = image.copy()
    led.move_start(_number(partition_row["log_start_offset"]))
    last_offset = _number(partition_row["high_watermark"]) - 1
    return led.control_runs.data_count(led.start_offset, last_offset) - led.delivery_complete_count


def _in_flight(group: GroupHistory) -> list[dict[str, Value]]:
    """The recorded ranges between SPSO and SPEO."""
    assert group.image is not None
    return [
        {
            "base_offset": state_range.base_offset,
            "last_offset": state_range.last_offset,
            "state": state_range.state.name.lower(),
            "delivery_count": state_range.delivery_count,
            **condition_fields(state_range.condition),
        }
        for state_range in group.image.ranges
    ]


def _number(value: Value) -> int:
    assert isinstance(value, int), value
    return value
