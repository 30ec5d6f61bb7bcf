"""A group's committed offsets, ranges and sharers, as tables or as lines of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.cli.printing import Printer, Row
from barnabas.client.admin.group_positions import Bounds
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.record_keys.hash_range import HashRange

_PARTITION_COLUMNS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "stable_offset": "STABLE",
    "committed_offset": "COMMITTED",
    "end_offset": "END",
    "lag": "LAG",
    "range_count": "RANGES",
    "sharer_count": "MEMBERS",
}
_SHARER_COLUMNS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "first_hash": "FIRST HASH",
    "last_hash": "LAST HASH",
    "member_id": "MEMBER",
    "client_id": "CLIENT",
    "host": "HOST",
}
_RANGE_COLUMNS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "first_offset": "FIRST OFFSET",
    "last_offset": "LAST OFFSET",
}


class Sharer(NamedTuple):
    """A member that reads a partition, and its hashes: all of them if it does not share the partition."""

    member_id: str
    client_id: str
    host: str
    hashes: HashRange


class PartitionReport(NamedTuple):
    """One partition. The committed offset is exclusive."""

    topic: str
    partition: int
    committed_offset: int | None
    """None if the group has committed none."""
    bounds: Bounds
    ranges: Sequence[OffsetRange]
    """The ranges beyond the committed offset, ascending."""
    sharers: Sequence[Sharer]
    """By their hashes."""

    @property
    def stable_offset(self) -> int | None:
        """The last offset up to which everything is committed."""
        return None if self.committed_offset is None else self.committed_offset - 1

    @property
    def lag(self) -> int | None:
        """The offsets from the committed one to the end, those in ranges included."""
        return None if self.committed_offset is None else self.bounds.lag_from(self.committed_offset)


class GroupReport(NamedTuple):
    """One group, with its partitions by topic and number."""

    group_id: str
    state: str
    partitions: Sequence[PartitionReport]


def print_report(report: GroupReport, printer: Printer, *, with_ranges: bool) -> None:
    """Print the tables; `with_ranges` also the one of the ranges. JSON has everything."""
    group: Row = {"type": "group", "group": report.group_id, "state": report.state}
    if printer.as_json:
        printer.row(group)
        for partition in report.partitions:
            more = {"group": report.group_id, "ranges": partition.ranges, "sharers": _sharer_rows(partition)}
            printer.row({**_partition_row(partition), **more})
        return
    printer.text(f"{report.group_id}  ({report.state})")
    printer.table([_partition_row(partition) for partition in report.partitions], _PARTITION_COLUMNS)
    _print_rows(
        printer, [row for partition in report.partitions for row in _sharer_rows(partition)], _SHARER_COLUMNS
    )
    if with_ranges:
        _print_rows(
            printer,
            [row for partition in report.partitions for row in _range_rows(partition)],
            _RANGE_COLUMNS,
        )


def _print_rows(printer: Printer, rows: Sequence[Row], columns: Mapping[str, str]) -> None:
    """Print a further table, unless it is empty."""
    if rows:
        printer.text()
        printer.table(rows, columns)


def _partition_row(partition: PartitionReport) -> Row:
    return {
        "type": "partition",
        "topic": partition.topic,
        "partition": partition.partition,
        "stable_offset": partition.stable_offset,
        "committed_offset": partition.committed_offset,
        "end_offset": partition.bounds.end_offset,
        "lag": partition.lag,
        "range_count": len(partition.ranges),
        "sharer_count": len(partition.sharers),
    }


def _sharer_rows(partition: PartitionReport) -> list[Row]:
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "first_hash": sharer.hashes.first_hash,
            "last_hash": sharer.hashes.last_hash,
            "member_id": sharer.member_id,
            "client_id": sharer.client_id,
            "host": sharer.host,
        }
        for sharer in partition.sharers
    ]


def _range_rows(partition: PartitionReport) -> list[Row]:
    return [
        {"topic": partition.topic, "partition": partition.partition, **offset_range._asdict()}
        for offset_range in partition.ranges
    ]
