"""Tells the history of one record: its production, each recorded change, and its state at this moment.

A broker knows all of it. A data directory has the recorded changes, also without a broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from typing import Final, NamedTuple

from barnabas.cli.log_tool.files import UnreadableError
from barnabas.cli.log_tool.rows import condition_fields
from barnabas.cli.printing import Printer, Row, as_text, as_time, as_words
from barnabas.cli.record_history.directory import find_partition, read_history
from barnabas.cli.record_history.events import Event, events_of
from barnabas.cli.share_records.report import record_row
from barnabas.cli.target import NotFoundError, RefusedError, Target
from barnabas.client.inspect.browsing import BrowsedRecord
from barnabas.client.inspect.record_range import RecordRange
from barnabas.client.inspect.share_browser import ShareBrowser
from barnabas.protocol.record_history import HistoryStep
from barnabas.protocol.record_inspection import DescribedState, Wait

_COLUMNS: Final = {
    "timestamp_ms": "AT",
    "event": "EVENT",
    "state": "STATE",
    "delivery_count": "DELIVERIES",
    "member_id": "FROM",
    "control_offset": "CONTROL RECORD",
}
_CONDITION_COLUMN: Final = {"condition": "CONDITION"}
_MS_PER_SECOND: Final = 1000


class Subject(NamedTuple):
    """The record to explain."""

    group_id: str
    topic: str
    partition: int
    offset: int

    @property
    def place(self) -> Row:
        """The entries of a row that name the record."""
        return {
            "group": self.group_id,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
        }

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}, offset {self.offset}"


async def explain(target: Target, printer: Printer, subject: Subject) -> None:
    """Print the history as the broker tells it.

    Raises `ConsumerError`, and `NotFoundError` if the log does not hold the record.
    """
    _, topic, partition, offset = subject
    async with ShareBrowser(target.bootstrap, group=subject.group_id, **target.options) as browser:
        steps = await browser.history(topic, partition, offset)
        record = await _find_record(browser, subject)
    _print_record(printer, subject, record)
    if steps is None:
        printer.text("  The broker keeps no histories (share.state.store=topic).")
    else:
        _print_events(printer, subject, steps)
    _print_present(printer, record.group)


def explain_from_directory(printer: Printer, subject: Subject, data_directory: str) -> None:
    """Print the recorded changes in this directory, without a broker.

    Raises `NotFoundError` if the directory has no such partition, or no change of the record, and
    `RefusedError` if it cannot be read.
    """
    try:
        partition = find_partition(data_directory, subject.topic, subject.partition)
        if partition is None:
            raise NotFoundError(f"{data_directory} has no partition {subject.topic}-{subject.partition}")
        steps = list(read_history(partition, subject.group_id, subject.offset))
    except UnreadableError as error:
        raise RefusedError(str(error).removesuffix(".")) from error
    if not steps:
        raise NotFoundError(
            f"{data_directory} has no state of {subject} for the group {subject.group_id}; with "
            "share.state.store=topic there is no history"
        )
    printer.text(str(subject))
    _print_events(printer, subject, steps)


async def _find_record(browser: ShareBrowser, subject: Subject) -> BrowsedRecord:
    """The record with its state. Raises `NotFoundError`."""
    offset = subject.offset
    found = browser.records(subject.topic, subject.partition, first_offset=offset, last_offset=offset)
    async with aclosing(found) as records:
        async for record in records:
            return record
    progress = await browser.progress(subject.topic, subject.partition)
    raise NotFoundError(
        f"There is no record at {subject}: the log holds {progress.log_start_offset} to "
        f"{progress.high_watermark}, exclusive, and some offsets in between have no record"
    )


def _print_record(printer: Printer, subject: Subject, record: BrowsedRecord) -> None:
    if printer.as_json:
        printer.row(record_row(record))
        return
    printer.text(str(subject))
    if record.unreadable is not None:
        printer.text(f"  unreadable: {record.unreadable}")
        return
    key = "" if record.key is None else f"  key {as_text(record.key)}"
    value = "(null)" if record.value is None else as_text(record.value)
    printer.text(f"  produced {as_time(record.timestamp_ms)}{key}  value {value}")


def _print_events(printer: Printer, subject: Subject, steps: Iterable[HistoryStep]) -> None:
    rows = [_event_row(subject, event) for event in events_of(steps)]
    if rows:
        has_conditions = any(row["condition"] is not None for row in rows)
        printer.table(rows, {**_COLUMNS, **_CONDITION_COLUMN} if has_conditions else _COLUMNS)
    else:
        printer.text("  No change was recorded. A first delivery is recorded only when it ends.")


def _event_row(subject: Subject, event: Event) -> Row:
    condition = condition_fields(event.condition)
    return {
        "type": "change",
        **subject.place,
        "timestamp_ms": event.timestamp_ms,
        "event": event.event,
        "state": event.state,
        "delivery_count": event.delivery_count,
        "member_id": event.member_id,
        "control_offset": event.control_offset,
        "condition": as_words({"type": "", **condition}).strip() or None,
        **condition,
    }


def _print_present(printer: Printer, present: RecordRange) -> None:
    deliveries = {-1: "", 1: ", 1 delivery"}.get(
        present.delivery_count, f", {present.delivery_count} deliveries"
    )
    line = f"  Now: {present.state.name.lower()}{deliveries}"
    if present.holder is not None:
        seconds = present.holder.lock_remaining_ms / _MS_PER_SECOND
        client = present.holder.client_id or "an unknown client"
        line += f", held by {present.holder.member_id} ({client})"
        if present.holder.acquired_ms is not None:
            line += f" since {as_time(present.holder.acquired_ms)}"
        line += f", for {seconds:.1f} s more"
    elif present.wait is not Wait.NOTHING and present.state is not DescribedState.ACQUIRED:
        line += f", waits for: {present.wait.name.lower().replace('_', ' ')}"
    printer.text(f"{line}.")
