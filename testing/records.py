"""The records of a topic, and their difference to the expected ones."""

from __future__ import annotations

import base64
import difflib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, cast

from barnabas.testing.control import Control, quoted

Expected: TypeAlias = bytes | str | tuple[bytes | str | None, bytes | str | None] | None
"""The value of an expected record, or its key and its value. Text stands for its UTF-8 bytes."""


class TopicRecord(NamedTuple):
    """One record; control records and those of open or aborted transactions are left out."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_records(control: Control, topic: str) -> list[TopicRecord]:
    """All committed records of a topic, by partition and offset. Raises ControlError for an unknown topic."""
    found: list[TopicRecord] = []
    partition, partition_count = 0, 1
    while partition < partition_count:
        offset: int | None = 0
        while offset is not None:
            page = control.ask("GET", f"records/{quoted(topic)}?partition={partition}&offset={offset}")
            partition_count = cast("int", page["partitions"])
            found += [
                _record(topic, partition, record)
                for record in cast("list[dict[str, object]]", page["records"])
            ]
            offset = cast("int | None", page["next_offset"])
        partition += 1
    return found


def _record(topic: str, partition: int, shown: dict[str, object]) -> TopicRecord:
    headers = cast("list[tuple[str, str | None]]", shown["headers"])
    return TopicRecord(
        topic,
        partition,
        cast("int", shown["offset"]),
        cast("int", shown["timestamp_ms"]),
        _bytes(cast("str | None", shown["key"])),
        _bytes(cast("str | None", shown["value"])),
        tuple((name, _bytes(value)) for name, value in headers),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def difference(
    found: Sequence[TopicRecord], expected: Sequence[Expected], *, in_any_order: bool
) -> str | None:
    """The difference as lines with - (expected) and + (found); None if there is none."""
    with_keys = any(isinstance(expected_record, tuple) for expected_record in expected)
    found_lines = [_line(record.key, record.value, with_key=with_keys) for record in found]
    expected_lines = [_expected_line(expected_record, with_key=with_keys) for expected_record in expected]
    if in_any_order:
        found_lines.sort()
        expected_lines.sort()
    if found_lines == expected_lines:
        return None
    # The lines that only point at single characters are left out.
    return "\n".join(line for line in difflib.ndiff(expected_lines, found_lines) if line[0] != "?")


def _expected_line(expected: Expected, *, with_key: bool) -> str:
    key, value = expected if isinstance(expected, tuple) else (None, expected)
    return _line(_encoded(key), _encoded(value), with_key=with_key)


def _line(key: bytes | None, value: bytes | None, *, with_key: bool) -> str:
    return f"{key!r}: {value!r}" if with_key else repr(value)


def _encoded(text: bytes | str | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
