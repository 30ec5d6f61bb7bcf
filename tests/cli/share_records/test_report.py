"""The tables and the JSON of `barnabas inspect`."""

from __future__ import annotations

import io
import json
from typing import Any

from barnabas.cli.printing import Printer
from barnabas.cli.share_records.report import (
    print_more,
    print_progress,
    print_ranges,
    print_records,
)
from barnabas.client import BrowsedRecord, GroupProgress, LastChange, LockHolder, RecordRange, TopicPartition
from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.record_inspection import DescribedState, Wait

PARTITION = TopicPartition("orders", 0)
NEVER = LastChange(Cause.NONE, -1, None)
HELD = RecordRange(
    *("orders", 0, 10, 12),
    DescribedState.ACQUIRED,
    2,
    Wait.NOTHING,
    LockHolder("m-1", "app", "/10.0.0.7", 1_700_000_030_000, 12_345, 1_699_999_990_000),
    LastChange(Cause.LOCK_EXPIRED, 1_700_000_000_000, "m-0"),
)
ENDED = RecordRange("orders", 0, 13, 13, DescribedState.ACKNOWLEDGED, 1, Wait.NOTHING, None, None)
WAITING = RecordRange("orders", 0, 14, 20, DescribedState.NEW, 0, Wait.WINDOW, None, NEVER)
PASSED = RecordRange("orders", 0, 0, 9, DescribedState.PASSED, -1, Wait.NOTHING, None, None)


def printed(*ranges: RecordRange) -> list[list[str]]:
    """The lines of the table, as words that are two spaces apart."""
    out = io.StringIO()
    print_ranges(Printer(as_json=False, out=out), ranges)
    return [[word for word in line.split("  ") if word] for line in out.getvalue().splitlines()]


def as_json(*ranges: RecordRange) -> list[dict[str, Any]]:
    out = io.StringIO()
    print_ranges(Printer(as_json=True, out=out), ranges)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_held_range_shows_its_holder_its_lock_and_its_last_change() -> None:
    heading, row = printed(HELD)
    cells = {name.strip(): cell.strip() for name, cell in zip(heading, row, strict=True)}
    assert cells == {
        "OFFSETS": "10-12",
        "STATE": "acquired",
        "DELIVERIES": "2",
        "MEMBER": "m-1",
        "CLIENT": "app /10.0.0.7",
        "SINCE": "2023-11-14T22:13:10.000Z",
        "LOCKED UNTIL": "2023-11-14T22:13:50.000Z",
        "LEFT": "12.3 s",
        "LAST CHANGE": "lock expired",
        "AT": "2023-11-14T22:13:20.000Z",
        "FROM": "m-0",
    }


def test_columns_without_a_value_are_left_out() -> None:
    heading, ended, waiting = printed(ENDED, WAITING)
    assert [one.strip() for one in heading] == ["OFFSETS", "STATE", "DELIVERIES", "WAITS FOR", "LAST CHANGE"]
    assert [one.strip() for one in ended] == ["13", "acknowledged", "1", "-", "unknown"]
    assert [one.strip() for one in waiting] == ["14-20", "new", "0", "window", "-"]
    assert printed() == []


def test_json_has_the_values_of_http() -> None:
    held, ended, passed = as_json(HELD, ENDED, PASSED)
    assert held["holder"]["lock_remaining_ms"] == 12_345
    assert held["holder"]["acquired_ms"] == 1_699_999_990_000
    assert held["last_change"] == {
        "cause": "lock expired",
        "timestamp_ms": 1_700_000_000_000,
        "member_id": "m-0",
    }
    assert (ended["holder"], ended["wait"]) == (None, None)
    assert ended["last_change"] == {"cause": "unknown", "timestamp_ms": None, "member_id": None}
    assert (passed["state"], passed["delivery_count"]) == ("passed", None)
    assert as_json(WAITING)[0]["last_change"] is None


def test_a_known_priority_is_shown() -> None:
    heading, held, ended = printed(HELD._replace(priority=9), ENDED)
    assert [one.strip() for one in heading[:4]] == ["OFFSETS", "STATE", "DELIVERIES", "PRIORITY"]
    assert (held[3].strip(), ended[3].strip()) == ("9", "-")
    assert [one["priority"] for one in as_json(HELD._replace(priority=0), ENDED)] == [0, None]


def records(*found: BrowsedRecord, json_lines: bool = False) -> str:
    out = io.StringIO()
    print_records(Printer(as_json=json_lines, out=out), found)
    return out.getvalue()


def test_records_show_their_content_and_text_is_safe_to_print() -> None:
    text = records(
        BrowsedRecord(14, 1, b"k", b"plain text", (), WAITING),
        BrowsedRecord(15, 1, None, b"two\nlines", (), WAITING),
        BrowsedRecord(16, 1, None, b"\xff\x00", (), WAITING),
        BrowsedRecord(17, -1, None, None, (), WAITING, "its checksum does not match its bytes"),
    )
    lines = [line.strip() for line in text.splitlines()]
    assert (lines[0].split()[0], lines[0].split()[-3:]) == ("OFFSET", ["PRODUCED", "KEY", "VALUE"])
    assert [line.count("1970-01-01T00:00:00.001Z") for line in lines] == [0, 1, 1, 1, 0]
    assert lines[1].endswith("k    plain text")
    assert lines[2].endswith(r"-    'two\nlines'")
    assert lines[3].endswith(r"-    b'\xff\x00'")
    assert lines[4].endswith("unreadable: its checksum does not match its bytes")


def test_records_in_json_have_base64_for_bytes_and_headers() -> None:
    (line,) = records(
        BrowsedRecord(14, 5, b"k", b"\xff", (("h", b"1"),), WAITING), json_lines=True
    ).splitlines()
    row = json.loads(line)
    assert (row["type"], row["offset"], row["state"]) == ("record", 14, "new")
    assert (row["key"], row["value_base64"], row["record_timestamp_ms"]) == ("k", "/w==", 5)
    assert row["headers"] == [{"key": "h", "value": "1"}]


def test_the_progress_of_a_group_and_the_next_offset_are_printed() -> None:
    out = io.StringIO()
    printer = Printer(as_json=False, out=out)
    print_progress(printer, PARTITION, GroupProgress(10, 14, 0, 21))
    print_progress(printer, PARTITION, GroupProgress(-1, -1, 0, 21))
    print_more(printer, PARTITION, 15)
    assert out.getvalue().splitlines() == [
        "orders-0  (start 10, end 14, high watermark 21)",
        "orders-0  (the group has not begun; high watermark 21)",
        "  More follow: continue with --from-offset 15.",
    ]
    out = io.StringIO()
    print_more(Printer(as_json=True, out=out), PARTITION, 15)
    assert json.loads(out.getvalue()) == {
        "type": "more",
        "topic": "orders",
        "partition": 0,
        "next_offset": 15,
    }
