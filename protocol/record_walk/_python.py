"""The walker in Python, for installations without the native module: the same records and the same faults."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from barnabas.protocol.record_walk import faults
from barnabas.protocol.record_walk.cursor import BytesCursor, RecordCursor, RecordFaultError
from barnabas.protocol.record_walk.shapes import (
    NO_TIMESTAMP,
    RECORD_ERRORS_MAX,
    RECORDS_PER_STEP,
    RecordRules,
    RecordsCheck,
    RecordSpan,
    RejectedRecord,
    unreadable,
)
from barnabas.protocol.varint import Buffer

IS_NATIVE: Final = False


def record_spans(body: bytes, record_count: int) -> Iterator[RecordSpan]:
    """The position of each record. Offsets are not checked, because compaction leaves gaps between them.

    RecordFormatError for a malformed record, and for bytes after the last one.
    """
    cursor = BytesCursor(body, 0, len(body))
    for index in range(record_count):
        start = cursor.position
        try:
            record = RecordCursor(cursor)
            key, value_bytes = record.nullable(), record.skip()
            headers = record.position
            record.skip_headers()
        except RecordFaultError as error:
            raise unreadable(index, record_count, error.fault) from None
        value_start = -1 if value_bytes < 0 else headers - value_bytes
        yield RecordSpan(
            start,
            record.content,
            record.rest,
            record.end,
            record.timestamp_delta_ms,
            record.offset_delta,
            key,
            value_start,
            headers,
        )
    if cursor.left:
        raise unreadable(record_count, record_count, faults.BYTES_BEHIND_BATCH)


def check_records(
    body: Buffer, record_count: int, base_timestamp_ms: int, rules: RecordRules
) -> RecordsCheck:
    """Checks all records of a produced batch; `record_count` and `base_timestamp_ms` are those of its header.

    Offset deltas must count up from 0 (LogValidator of Apache Kafka). A malformed record ends the check; the
    rejected records before it are then not reported.
    """
    steps = check_in_steps(body, record_count, base_timestamp_ms, rules)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: RecordsCheck = end.value
            return result


def check_in_steps(
    body: Buffer, record_count: int, base_timestamp_ms: int, rules: RecordRules
) -> Generator[None, None, RecordsCheck]:
    """The same, with a pause after each RECORDS_PER_STEP records."""
    data = memoryview(body).cast("B")
    cursor = BytesCursor(data, 0, len(data))
    max_timestamp_ms, rejected, rejected_count = NO_TIMESTAMP, list[RejectedRecord](), 0
    for index in range(record_count):
        try:
            timestamp_ms, fault = _check_record(cursor, index, base_timestamp_ms, rules)
        except RecordFaultError as error:
            return RecordsCheck(error.fault, index, max_timestamp_ms, 0, ())
        max_timestamp_ms = max(max_timestamp_ms, timestamp_ms)
        if fault:
            rejected_count += 1
            if rejected_count <= RECORD_ERRORS_MAX:
                rejected.append(RejectedRecord(index, fault, timestamp_ms))
        if index % RECORDS_PER_STEP == RECORDS_PER_STEP - 1:
            yield
    fault = faults.BYTES_BEHIND_BATCH if cursor.left else 0
    return RecordsCheck(fault, record_count, max_timestamp_ms, rejected_count, tuple(rejected))


def _check_record(
    body: BytesCursor, index: int, base_timestamp_ms: int, rules: RecordRules
) -> tuple[int, int]:
    """The record's time, and the fault for which it is rejected, or 0."""
    record = RecordCursor(body)
    if record.end - record.content > rules.record_bytes_max:
        raise RecordFaultError(faults.RECORD_TOO_LARGE)
    if record.offset_delta != index:
        raise RecordFaultError(faults.OFFSET_ASTRAY)
    key_bytes = record.skip()
    record.skip()
    record.skip_headers()
    exact_ms = base_timestamp_ms + record.timestamp_delta_ms
    timestamp_ms = (exact_ms + 2**63) % 2**64 - 2**63
    if rules.keys_required and key_bytes < 0:
        return timestamp_ms, faults.KEY_MISSING
    if rules.times is None or timestamp_ms == exact_ms == NO_TIMESTAMP:
        return timestamp_ms, 0
    is_within = exact_ms == timestamp_ms and rules.times[0] <= timestamp_ms <= rules.times[1]
    return timestamp_ms, 0 if is_within else faults.TIME_OUT_OF_RANGE
