"""Walks over the records of one batch's uncompressed body: the only reader of records in the project.

`check_records` checks that all records are well-formed and keep a topic's rules, without creating a Python
object for each. `record_spans` returns the position of each record. A native module does the work if it could
be built, otherwise an equivalent module in Python does.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from barnabas.protocol.record_walk import _python
from barnabas.protocol.record_walk.shapes import (
    NO_TIMESTAMP,
    RECORD_ERRORS_MAX,
    RECORDS_PER_STEP,
    RecordRules,
    RecordsCheck,
    RecordSpan,
    RejectedRecord,
)
from barnabas.protocol.varint import Buffer

if TYPE_CHECKING:
    from barnabas.protocol.record_walk._python import check_records, record_spans

    IS_NATIVE: bool
    """Whether the fast walker is in use."""
else:
    try:
        from barnabas.protocol.record_walk._native import IS_NATIVE, check_records, record_spans
    except ImportError:
        from barnabas.protocol.record_walk._python import IS_NATIVE, check_records, record_spans

__all__ = [
    "IS_NATIVE",
    "NO_TIMESTAMP",
    "RECORDS_PER_STEP",
    "RECORD_ERRORS_MAX",
    "RecordRules",
    "RecordSpan",
    "RecordsCheck",
    "RejectedRecord",
    "check_in_steps",
    "check_records",
    "record_spans",
]


def check_in_steps(
    body: Buffer, record_count: int, base_timestamp_ms: int, rules: RecordRules
) -> Generator[None, None, RecordsCheck]:
    """Like `check_records`, for a thread: the walker in Python pauses regularly for the event loop.

    The native walker needs no pauses, because it runs without the interpreter's lock.
    """
    if IS_NATIVE:
        return check_records(body, record_count, base_timestamp_ms, rules)
    return (yield from _python.check_in_steps(body, record_count, base_timestamp_ms, rules))
