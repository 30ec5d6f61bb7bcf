"""Walks over the records of one batch's uncompressed body: the only reader of records in the project.

`check_records` answers whether all of them are well-formed and keep a topic's rules, and creates no Python
object for a record. `record_spans` says where each one lies. The work is done by a native module where it
could be built, otherwise by its twin in Python, with equal results.
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
    """As `check_records`, for a thread beside the loop: the walker in Python pauses to let the loop go on.

    The native one does not need to, since it runs without the interpreter's lock.
    """
    if IS_NATIVE:
        return check_records(body, record_count, base_timestamp_ms, rules)
    return (yield from _python.check_in_steps(body, record_count, base_timestamp_ms, rules))
