# cython: language_level=3, boundscheck=False, wraparound=False
"""The walker in C by way of Cython. It does what `_python` does, in the same order."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t

from barnabas.protocol.record_walk._reading cimport (
    BYTES_BEHIND_BATCH, KEY_MISSING, OFFSET_ASTRAY, RECORD_TOO_LARGE, TIME_OUT_OF_RANGE, Cursor, Field, Record,
    fail, next_record, overflows, read_field, skip_headers,
)

from barnabas.protocol.record_walk.shapes import NO_TIMESTAMP, RecordsCheck, RecordSpan, RejectedRecord, unreadable

IS_NATIVE = True

cdef enum:
    RECORD_ERRORS_MAX = 100  # as in shapes
    HOLDING_BYTES_MAX = 1 << 18  # a larger body is checked without the interpreter's lock

cdef struct Rules:
    bint keys_required, times_matter
    int64_t earliest_ms, latest_ms, record_bytes_max

cdef struct Rejected:
    int32_t index
    int fault
    int64_t timestamp_ms

cdef struct Check:
    int32_t index, rejected_count
    int64_t max_timestamp_ms
    Rejected rejected[RECORD_ERRORS_MAX]


cdef inline int rejection(
    const Rules *rules, int64_t key_bytes, int64_t timestamp_ms, bint overflowed
) noexcept nogil:
    if rules.keys_required and key_bytes < 0:
        return KEY_MISSING
    if not rules.times_matter or (timestamp_ms == -1 and not overflowed):
        return 0
    if overflowed or not rules.earliest_ms <= timestamp_ms <= rules.latest_ms:
        return TIME_OUT_OF_RANGE
    return 0


cdef void check(
    Cursor *body, int32_t record_count, int64_t base_timestamp_ms, const Rules *rules, Check *found
) noexcept nogil:
    cdef Record record
    cdef int64_t key_bytes, timestamp_ms
    cdef int32_t index
    cdef int fault
    found.index = found.rejected_count = 0
    found.max_timestamp_ms = -1
    for index in range(record_count):
        found.index = index
        if not next_record(body, &record):
            return
        if record.fields.end - record.content > rules.record_bytes_max:
            fail(body, RECORD_TOO_LARGE)
            return
        if record.offset_delta != index:
            fail(&record.fields, OFFSET_ASTRAY)
        key_bytes = read_field(&record.fields).length
        read_field(&record.fields)
        skip_headers(&record.fields)
        if record.fields.fault:
            fail(body, record.fields.fault)
            return
        timestamp_ms = <int64_t>(<uint64_t>base_timestamp_ms + <uint64_t>record.timestamp_delta_ms)
        if timestamp_ms > found.max_timestamp_ms:
            found.max_timestamp_ms = timestamp_ms
        fault = rejection(
            rules, key_bytes, timestamp_ms, overflows(base_timestamp_ms, record.timestamp_delta_ms)
        )
        if fault:
            if found.rejected_count < RECORD_ERRORS_MAX:
                found.rejected[found.rejected_count] = Rejected(index, fault, timestamp_ms)
            found.rejected_count += 1
    found.index = record_count
    if body.at != body.end:
        fail(body, BYTES_BEHIND_BATCH)


def check_records(body, int32_t record_count, int64_t base_timestamp_ms, rules):
    """As in `_python`."""
    cdef Check found
    cdef Cursor cursor
    cdef Rules wanted
    cdef Py_buffer view
    cdef Py_ssize_t index
    times = rules.times
    wanted.keys_required, wanted.times_matter = rules.keys_required, times is not None
    wanted.earliest_ms, wanted.latest_ms = (INT64_MIN, INT64_MAX) if times is None else times
    wanted.record_bytes_max = rules.record_bytes_max
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    cursor = Cursor(<const uint8_t *>view.buf, <const uint8_t *>view.buf + view.len, 0)
    try:
        if view.len > HOLDING_BYTES_MAX:
            with nogil:
                check(&cursor, record_count, base_timestamp_ms, &wanted, &found)
        else:
            check(&cursor, record_count, base_timestamp_ms, &wanted, &found)
    finally:
        PyBuffer_Release(&view)
    if cursor.fault and cursor.fault != BYTES_BEHIND_BATCH:
        return RecordsCheck(cursor.fault, found.index, found.max_timestamp_ms, 0, ())
    if not found.rejected_count:
        return RecordsCheck(cursor.fault, found.index, found.max_timestamp_ms, 0, ())
    rejected = tuple([
        RejectedRecord(found.rejected[index].index, found.rejected[index].fault, found.rejected[index].timestamp_ms)
        for index in range(min(found.rejected_count, RECORD_ERRORS_MAX))
    ])
    return RecordsCheck(cursor.fault, found.index, found.max_timestamp_ms, found.rejected_count, rejected)


def record_spans(bytes body, int32_t record_count):
    """As in `_python`."""
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(body)
    cdef const uint8_t *start
    cdef const uint8_t *headers
    cdef Cursor cursor = Cursor(data, data + len(body), 0)
    cdef Record record
    cdef Field key, value
    cdef int32_t index
    for index in range(record_count):
        start = cursor.at
        if not next_record(&cursor, &record):
            raise unreadable(index, record_count, cursor.fault)
        key, value = read_field(&record.fields), read_field(&record.fields)
        headers = record.fields.at
        skip_headers(&record.fields)
        if record.fields.fault:
            raise unreadable(index, record_count, record.fields.fault)
        yield RecordSpan(
            start - data,
            record.content - data,
            record.rest - data,
            record.fields.end - data,
            record.timestamp_delta_ms,
            record.offset_delta,
            None if key.length < 0 else PyBytes_FromStringAndSize(<const char *>key.data, key.length),
            -1 if value.length < 0 else value.data - data,
            headers - data,
        )
    if cursor.at != cursor.end:
        raise unreadable(record_count, record_count, BYTES_BEHIND_BATCH)
