"""Prints records: only the value, all parts on one line, or a JSON object."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from barnabas.cli.printing import Printer, Row, Value, bytes_entry
from barnabas.client.record_content import Headers


class PrintableRecord(Protocol):
    """A record of any consumer."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


class RecordOutput(NamedTuple):
    """The form of the output."""

    printer: Printer
    with_details: bool

    def write(self, record: PrintableRecord, **further: Value) -> None:
        """Print the record, with `further` entries in the forms that have entries."""
        if self.printer.as_json or self.with_details:
            self.printer.row(record_row(record, **further))
        else:
            self.printer.value_line(record.value)


def record_row(record: PrintableRecord, **further: Value) -> Row:
    """The record as a row."""
    return {
        "type": "record",
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **further,
        **bytes_entry("key", record.key),
        **bytes_entry("value", record.value),
        "headers": [{"key": name, **bytes_entry("value", value)} for name, value in record.headers],
    }
