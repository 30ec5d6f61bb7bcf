"""`barnabas log dump`: prints every file of a log, batch by batch and entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from barnabas.cli.log_tool.files import opened
from barnabas.cli.log_tool.places import CHECKPOINT_FILES, PartitionFiles, Place, SegmentFiles
from barnabas.cli.log_tool.rows import batch_row, record_rows
from barnabas.cli.log_tool.segments import Indexes, read_indexes, scan
from barnabas.cli.printing import Printer, Row
from barnabas.coordinator.metadata.snapshot import parse_snapshot_name
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_offsets
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.format.partition_metadata import FILE_NAME as PARTITION_METADATA_FILE
from barnabas.storage.format.partition_metadata import decode_partition_metadata, encode_id
from barnabas.storage.format.producer_snapshot import SNAPSHOT_SUFFIX, SnapshotCorrupt, decode_snapshot
from barnabas.storage.format.share_index import CLEANED
from barnabas.storage.format.share_snapshot import FILE_NAME as SHARE_SNAPSHOT_FILE
from barnabas.storage.format.share_snapshot import ShareSnapshotCorrupt, decode_share_snapshot
from barnabas.storage.format.transaction_index import TransactionIndex
from barnabas.storage.segments.damage import Damage
from barnabas.storage.segments.segment_scan import ScannedBatch
from barnabas.storage.state.log_files import LEADER_EPOCH_FILE

_KINDS = {CLEANED: "cleaned", 5: "checkpoint", 6: "delta"}


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The parts of the files to print; offsets are inclusive, None for no limit."""

    records: bool = False
    indexes: bool = False
    from_offset: int | None = None
    to_offset: int | None = None
    group_id: str | None = None

    @property
    def is_partial(self) -> bool:
        """Whether only some batches are selected."""
        return not (self.from_offset is None and self.to_offset is None and self.group_id is None)

    def takes(self, base_offset: int, last_offset: int) -> bool:
        return (self.from_offset is None or last_offset >= self.from_offset) and (
            self.to_offset is None or base_offset <= self.to_offset
        )


def dump(place: Place, printer: Printer, options: DumpOptions) -> set[str]:
    """Prints the place. Returns the share groups with state there if `options` select one. Raises OSError."""
    groups: set[str] = set()
    for partition in place.partitions:
        for segment in partition.segments:
            _dump_segment(partition, segment, printer, options, groups)
        if not options.is_partial:
            for name in partition.names:
                _dump_file(partition, partition.path / name, printer)
    if place.data_directory is not None and not options.is_partial:
        for name in CHECKPOINT_FILES:
            path = place.data_directory / name
            if path.exists():
                _print_file(printer, name, partial(_checkpoint_rows, path))
    return groups


def _dump_segment(
    partition: PartitionFiles,
    segment: SegmentFiles,
    printer: Printer,
    options: DumpOptions,
    groups: set[str],
) -> None:
    indexes = read_indexes(segment)
    with opened(segment.log_path) as file:
        name = partition.named(segment.log_path.name)
        printer.heading({"type": "segment", "file": name, "size_bytes": file.size_bytes})
        for scanned in scan(segment, file, indexes, end_offset=partition.end_offset(segment)):
            if isinstance(scanned, Damage):
                if options.group_id is None:
                    printer.row(damage_row(scanned))
            elif options.group_id is not None:
                _dump_batch_of_group(partition.topic, scanned, printer, options, groups)
            elif options.takes(scanned.header.base_offset, scanned.header.last_offset):
                rows = (
                    _rows_of(partition.topic, scanned) if options.records or scanned.header.is_control else []
                )
                _print_batch(scanned, rows, printer)
    if options.indexes and not options.is_partial:
        _dump_indexes(partition, segment, indexes, printer)


def damage_row(damage: Damage) -> Row:
    """The row of bytes that are no good batch."""
    size_bytes = damage.end - damage.position
    return {"type": "damage", "position": damage.position, "size_bytes": size_bytes, "reason": damage.reason}


def _dump_batch_of_group(
    topic: str, batch: ScannedBatch, printer: Printer, options: DumpOptions, groups: set[str]
) -> None:
    """Print the batch if it has state of the selected group; add all groups with state in it to `groups`."""
    if not batch.header.is_control:
        return
    rows = _rows_of(topic, batch)
    found = {str(row["group_id"]) for row in rows if "group_id" in row}
    groups |= found
    if options.group_id in found and options.takes(batch.header.base_offset, batch.header.last_offset):
        _print_batch(batch, rows, printer)


def _rows_of(topic: str, batch: ScannedBatch) -> list[Row]:
    try:
        return list(record_rows(topic, batch))
    except RecordFormatError as error:
        return [{"type": "unreadable", "offset": batch.header.base_offset, "reason": str(error)}]


def _print_batch(batch: ScannedBatch, rows: Sequence[Row], printer: Printer) -> None:
    printer.row(batch_row(batch))
    for row in rows:
        _print_record(printer, row)


def _print_record(printer: Printer, row: Row) -> None:
    """Print a record; as text each range of share state has its own line."""
    states = cast("list[Row] | None", row.get("states"))
    if printer.as_json or states is None:
        printer.row(row, inner=True)
        return
    printer.row({name: value for name, value in row.items() if name != "states"}, inner=True)
    for state in states:
        printer.row({"type": "  range", **state}, inner=True)


def _dump_indexes(
    partition: PartitionFiles, segment: SegmentFiles, indexes: Indexes, printer: Printer
) -> None:
    makers: tuple[Callable[[Indexes], Iterator[Row]], ...] = (
        _offset_rows,
        _time_rows,
        _share_rows,
        _transaction_rows,
    )
    for path, rows in zip(segment.index_paths, makers, strict=True):
        if path.suffix in indexes.found:
            printer.heading({"type": "index", "file": partition.named(path.name)})
            for row in rows(indexes):
                printer.row(row)


def _offset_rows(indexes: Indexes) -> Iterator[Row]:
    for offset, position in indexes.offsets.entries():
        yield {"type": "entry", "offset": offset, "position": position}


def _time_rows(indexes: Indexes) -> Iterator[Row]:
    for timestamp_ms, offset in indexes.times.entries():
        yield {"type": "entry", "timestamp_ms": timestamp_ms, "offset": offset}


def _share_rows(indexes: Indexes) -> Iterator[Row]:
    for slot in range(len(indexes.shares)):
        entry = indexes.shares[slot]
        yield {
            "type": "entry",
            "base_offset": entry.offset,
            "last_offset": entry.offset + entry.last_offset_delta,
            "position": entry.position,
            "size_bytes": entry.length_bytes,
            "kind": _KINDS.get(entry.kind, str(entry.kind)),
            "group_hash": f"{entry.group_hash:08x}",
            "tombstone": entry.tombstone,
        }


def _transaction_rows(indexes: Indexes) -> Iterator[Row]:
    try:
        entries = list(TransactionIndex(indexes.transactions).entries_from(0))
    except RecordFormatError as error:
        yield {"type": "unreadable", "reason": str(error)}
        return
    for entry in entries:
        yield {"type": "entry", **entry._asdict()}


# Files beside the segments.


def _dump_file(partition: PartitionFiles, path: Path, printer: Printer) -> None:
    rows = _file_rows(partition, path)
    if rows is not None:
        _print_file(printer, partition.named(path.name), rows)


def _print_file(printer: Printer, name: str, rows: Callable[[], list[Row]]) -> None:
    printer.heading({"type": "file", "file": name})
    try:
        for row in rows():
            printer.row(row)
    except (CheckpointCorrupt, ShareSnapshotCorrupt, SnapshotCorrupt, RecordFormatError) as error:
        printer.row({"type": "unreadable", "reason": str(error)})


def _file_rows(partition: PartitionFiles, path: Path) -> Callable[[], list[Row]] | None:
    """The function that returns the rows of a file; None for a file that is unknown or printed elsewhere."""
    if path.name == LEADER_EPOCH_FILE:
        return lambda: _leader_epoch_rows(path)
    if path.name == PARTITION_METADATA_FILE:
        return lambda: [
            {"type": "topic", "topic_id": encode_id(decode_partition_metadata(path.read_bytes()))}
        ]
    if path.name == SHARE_SNAPSHOT_FILE:
        return lambda: _share_snapshot_rows(path)
    if path.suffix == SNAPSHOT_SUFFIX:
        return lambda: [
            {"type": "producer", **entry._asdict()} for entry in decode_snapshot(path.read_bytes())
        ]
    if partition.topic == METADATA_TOPIC and parse_snapshot_name(path.name) is not None:
        return lambda: _metadata_snapshot_rows(path)
    return None


def _checkpoint_rows(path: Path) -> list[Row]:
    return [
        {"type": "entry", "topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in decode_offsets(path.read_bytes()).items()
    ]


def _leader_epoch_rows(path: Path) -> list[Row]:
    return [
        {"type": "entry", "leader_epoch": leader_epoch, "start_offset": start_offset}
        for leader_epoch, start_offset in LeaderEpochs.decode(path.read_bytes()).entries
    ]


def _share_snapshot_rows(path: Path) -> list[Row]:
    snapshot = decode_share_snapshot(path.read_bytes())
    heads: Mapping[str, int] = snapshot.checkpoint_offsets
    first: Row = {"type": "head", "end_offset": snapshot.end_offset, "leader_epoch": snapshot.leader_epoch}
    return [
        first,
        *(
            {"type": "group", "group_id": group_id, "checkpoint_offset": heads[group_id]}
            for group_id in heads
        ),
    ]


def _metadata_snapshot_rows(path: Path) -> list[Row]:
    data = path.read_bytes()
    return [
        row
        for position, header in iterate_headers(data)
        for row in record_rows(
            METADATA_TOPIC,
            ScannedBatch(position, header, memoryview(data)[position : position + header.size_bytes]),
        )
    ]
