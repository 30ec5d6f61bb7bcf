"""The records of a share group with their states, as tables or as lines of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.cli.printing import Printer, Row, Value, as_text, bytes_entry
from barnabas.client.inspect.browsing import BrowsedRecord
from barnabas.client.inspect.record_range import GroupProgress, LastChange, RecordRange
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.record_inspection import Wait

_STATE_COLUMNS: Final = {
    "offsets": "OFFSETS",
    "state": "STATE",
    "deliveries": "DELIVERIES",
    "priority": "PRIORITY",
    "wait": "WAITS FOR",
    "due_ms": "DUE AT",
    "member": "MEMBER",
    "client": "CLIENT",
    "acquired_ms": "SINCE",
    "lock_deadline_ms": "LOCKED UNTIL",
    "left": "LEFT",
    "cause": "LAST CHANGE",
    "timestamp_ms": "AT",
    "by": "FROM",
}
_CONTENT_COLUMNS: Final = {"record_timestamp_ms": "PRODUCED", "key": "KEY", "value": "VALUE"}
_UNKNOWN: Final = "unknown"
_MS_PER_SECOND: Final = 1000


def print_progress(printer: Printer, partition: TopicPartition, progress: GroupProgress) -> None:
    """The heading of a partition."""
    name = f"{partition.topic}-{partition.partition}"
    if printer.as_json:
        printer.row({"type": "partition", **partition._asdict(), **progress._asdict()})
    elif progress.start_offset < 0:
        printer.text(f"{name}  (the group has not begun; high watermark {progress.high_watermark})")
    else:
        printer.text(
            f"{name}  (start {progress.start_offset}, end {progress.end_offset}, "
            f"high watermark {progress.high_watermark})"
        )


def print_unavailable(printer: Printer, partition: TopicPartition, reason: str) -> None:
    """A partition whose records cannot be shown."""
    if printer.as_json:
        printer.row({"type": "unavailable", **partition._asdict(), "reason": reason})
    else:
        printer.text(f"{partition.topic}-{partition.partition}  ({reason})")


def print_ranges(printer: Printer, ranges: Sequence[RecordRange]) -> None:
    if printer.as_json:
        for record_range in ranges:
            offsets = {"first_offset": record_range.first_offset, "last_offset": record_range.last_offset}
            printer.row(
                {
                    "type": "range",
                    "topic": record_range.topic,
                    "partition": record_range.partition,
                    **offsets,
                    **_state(record_range),
                }
            )
    else:
        _print_table(printer, [_range_cells(record_range) for record_range in ranges], _STATE_COLUMNS)


def print_records(printer: Printer, records: Sequence[BrowsedRecord]) -> None:
    if printer.as_json:
        for record in records:
            printer.row(record_row(record))
    else:
        columns = {**_STATE_COLUMNS, "offsets": "OFFSET", **_CONTENT_COLUMNS}
        _print_table(printer, [_record_cells(record) for record in records], columns)


def print_more(printer: Printer, partition: TopicPartition, next_offset: int) -> None:
    """The limit was reached before this offset."""
    printer.text(f"  More follow: continue with --from-offset {next_offset}.")
    if printer.as_json:
        printer.row({"type": "more", **partition._asdict(), "next_offset": next_offset})


def _print_table(printer: Printer, rows: Sequence[Row], columns: Mapping[str, str]) -> None:
    """Print the columns that have a value in any row; nothing without rows."""
    if rows:
        used = {
            name: heading for name, heading in columns.items() if any(row[name] is not None for row in rows)
        }
        printer.table(rows, used)


def _state(record_range: RecordRange) -> dict[str, Value]:
    """The state, with nested entries, for JSON."""
    return {
        "state": record_range.state.name.lower(),
        "delivery_count": None if record_range.delivery_count < 0 else record_range.delivery_count,
        "priority": record_range.priority,
        "wait": _wait(record_range),
        "due_ms": record_range.due_ms,
        "holder": None if record_range.holder is None else record_range.holder._asdict(),
        "last_change": _change(record_range.last_change),
    }


def _change(change: LastChange | None) -> Mapping[str, Value] | None:
    """As over HTTP: None if no change was ever recorded."""
    if change is None:
        return {"cause": _UNKNOWN, "timestamp_ms": None, "member_id": None}
    if change.cause is Cause.NONE:
        return None
    return {
        "cause": _words(change.cause.name),
        "timestamp_ms": change.timestamp_ms,
        "member_id": change.member_id,
    }


def _time(change: LastChange) -> int | None:
    return None if change.cause is Cause.NONE else change.timestamp_ms


def _wait(record_range: RecordRange) -> str | None:
    return None if record_range.wait is Wait.NOTHING else _words(record_range.wait.name)


def _range_cells(record_range: RecordRange) -> Row:
    is_single = record_range.first_offset == record_range.last_offset
    offsets = (
        str(record_range.first_offset)
        if is_single
        else f"{record_range.first_offset}-{record_range.last_offset}"
    )
    holder, change = record_range.holder, record_range.last_change
    client = None if holder is None else f"{holder.client_id or '-'} {holder.client_host or '-'}"
    return {
        "offsets": offsets,
        "state": record_range.state.name.lower(),
        "deliveries": None if record_range.delivery_count < 0 else record_range.delivery_count,
        "priority": record_range.priority,
        "wait": _wait(record_range),
        "due_ms": record_range.due_ms,
        "member": None if holder is None else holder.member_id,
        "client": client,
        "acquired_ms": None if holder is None else holder.acquired_ms,
        "lock_deadline_ms": None if holder is None else holder.lock_deadline_ms,
        "left": None if holder is None else f"{holder.lock_remaining_ms / _MS_PER_SECOND:.1f} s",
        "cause": _cause(change),
        "timestamp_ms": None if change is None else _time(change),
        "by": None if change is None else change.member_id,
    }


def _cause(change: LastChange | None) -> str | None:
    """None if no change was ever recorded."""
    if change is None:
        return _UNKNOWN
    return None if change.cause is Cause.NONE else _words(change.cause.name)


def _record_cells(record: BrowsedRecord) -> Row:
    shown = record.unreadable is None
    return {
        **_range_cells(record.group),
        "offsets": record.offset,
        "record_timestamp_ms": record.timestamp_ms if record.timestamp_ms >= 0 else None,
        "key": as_text(record.key),
        "value": as_text(record.value) if shown else f"unreadable: {record.unreadable}",
    }


def record_row(record: BrowsedRecord) -> Row:
    group = record.group
    place = {"topic": group.topic, "partition": group.partition, "offset": record.offset}
    headers = [{"key": name, **bytes_entry("value", value)} for name, value in record.headers]
    content: dict[str, Value] = {
        "record_timestamp_ms": record.timestamp_ms,
        **bytes_entry("key", record.key),
        **bytes_entry("value", record.value),
        "headers": headers,
    }
    if record.unreadable is not None:
        content = {"unreadable": record.unreadable}
    return {"type": "record", **place, **_state(group), **content}


def _words(name: str) -> str:
    return name.lower().replace("_", " ")
