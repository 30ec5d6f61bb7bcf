"""Records from lines of text and of JSON."""

from __future__ import annotations

import io
import json
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.printing import Printer
from barnabas.cli.record_streams.record_input import (
    InputError,
    NewRecord,
    record_of_json,
    record_of_line,
)
from barnabas.cli.record_streams.record_output import RecordOutput
from barnabas.client.record_content import Headers


class Printed(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def test_a_line_is_a_value() -> None:
    assert record_of_line(b"a:b", None) == NewRecord(b"a:b")


def test_the_part_before_the_first_separator_is_the_key() -> None:
    assert record_of_line(b"k::v::w", b"::") == NewRecord(b"v::w", b"k")
    assert record_of_line(b"::v", b"::") == NewRecord(b"v", b"")


def test_a_line_without_the_separator_is_refused() -> None:
    with pytest.raises(InputError, match="no key separator ':'"):
        record_of_line(b"value", b":")


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ("{}", NewRecord(None)),
        ('{"value": "v"}', NewRecord(b"v")),
        ('{"value": {"id": 1}, "key": 7}', NewRecord(b'{"id": 1}', b"7")),
        ('{"value": null, "key": "k", "partition": 2, "timestamp_ms": 5}', NewRecord(None, b"k", [], 2, 5)),
        ('{"value_base64": "/wA=", "offset": 9, "type": "record"}', NewRecord(b"\xff\x00")),
        (
            '{"headers": [{"key": "h", "value": "1"}, {"key": "h", "value_base64": "/w=="}, {"key": "n"}]}',
            NewRecord(None, None, [("h", b"1"), ("h", b"\xff"), ("n", None)]),
        ),
    ],
)
def test_a_line_of_json_names_the_parts(line: str, record: NewRecord) -> None:
    found = record_of_json(line.encode())
    assert found._replace(headers=list(found.headers)) == record._replace(headers=list(record.headers))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("value", "it is not JSON"),
        ("[1]", "it is not a JSON object"),
        ('{"value_base64": "?"}', "its value_base64 is not in base64"),
        ('{"value_base64": 5}', "its value_base64 is not in base64"),
        ('{"partition": -1}', "its partition is not a number from 0 on"),
        ('{"partition": "0"}', "its partition is not a number from 0 on"),
        ('{"timestamp_ms": true}', "its timestamp_ms is not a number from 0 on"),
        ('{"headers": ["h"]}', "its headers are not a list of objects"),
        ('{"headers": 1}', "its headers are not a list of objects"),
        ('{"headers": [{"value": "v"}]}', "a header has no key"),
    ],
)
def test_a_malformed_line_of_json_is_refused_with_the_reason(line: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        record_of_json(line.encode())


@given(
    value=st.none() | st.binary(),
    key=st.none() | st.binary(),
    headers=st.lists(st.tuples(st.text(), st.none() | st.binary())),
)
def test_printed_records_can_be_read_again(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    out = io.StringIO()
    record = Printed("orders", 1, 5, 1_700_000_000_000, key, value, tuple(headers))
    RecordOutput(Printer(as_json=True, out=out), with_details=False).write(record)
    assert json.loads(out.getvalue())["offset"] == 5
    found = record_of_json(out.getvalue().encode("utf-8", "surrogatepass"))
    assert found == NewRecord(value, key, headers, 1, 1_700_000_000_000)
