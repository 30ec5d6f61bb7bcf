# cython: language_level=3, boundscheck=False, wraparound=False
"""The walker in C, written in Cython. It does the same as `_python`, in the same order."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from barnabas.protocol.record_walk._reading cimport (
    BYTES_BEHIND_BATCH, KEY_MISSING, OFFSET_ASTRAY, RECORD_TOO_LARGE, TIME_OUT_OF_RANGE, Cursor, Field, Record,
    fail, next_record, overflows, read_field, skip_headers,
)

from barnabas.protocol.record_walk.shapes import NO_TIMESTAMP, RecordsCheck, RecordSpan, RejectedRecord, unreadable
from barnabas.protocol.tuples import maker

_new_check = maker(RecordsCheck)

IS_NATIVE = True

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define fetch_ahead(at) __builtin_prefetch(at)
    #else
    #define fetch_ahead(at)
    #endif
    """
    void fetch_ahead(const void *at) noexcept nogil

cdef enum:
    RECORD_ERRORS_MAX = 100  # as in shapes
    PLAIN_PREFIX_BYTES_MAX = 16  # the most that next_plain_record reads before a key and before a value
    FETCHED_AHEAD_BYTES = 1024  # a record's position is known only after the previous record was read
    CACHE_LINE_BYTES = 64
    HOLDING_BYTES_MAX = 1 << 18  # a larger body is checked without the interpreter's lock

cdef struct Rules:
    bint keys_required, times_matter
    int64_t earliest_ms, latest_ms, record_bytes_max

cdef struct Rejected:
    int32_t index
    int fault
    int64_t timestamp_ms

cdef struct Seen:  # the parts of a record that a check needs
    int64_t timestamp_delta_ms
    bint has_key

cdef struct Check:
    int32_t index, rejected_count
    int64_t max_timestamp_ms
    Rejected rejected[RECORD_ERRORS_MAX]


cdef inline const uint8_t *short_int(const uint8_t *at, uint32_t *folded) noexcept nogil:
    """Reads a varint of one or two bytes without undoing zigzag; returns its end, NULL if it is longer."""
    if at[0] < 0x80:
        folded[0] = at[0]
        return at + 1
    folded[0] = at[0] & 0x7F | <uint32_t>at[1] << 7
    return at + 2 if at[1] < 0x80 else NULL


cdef inline bint next_plain_record(
    Cursor *body, uint32_t index, int64_t record_bytes_max, Seen *found
) noexcept nogil:
    """Reads the next record if it is an ordinary one: short integers, no headers, no fault.

    False for all others, which `next_record` then reads; this function only saves time.
    """
    cdef const uint8_t *at = body.at
    cdef const uint8_t *end
    cdef uint32_t length, delta, offset, key, value
    fetch_ahead(at + FETCHED_AHEAD_BYTES)
    fetch_ahead(at + FETCHED_AHEAD_BYTES + CACHE_LINE_BYTES)
    if body.end - at < PLAIN_PREFIX_BYTES_MAX:
        return False
    at = short_int(at, &length)
    if at == NULL or length & 1 or (length >> 1) > body.end - at or (length >> 1) > record_bytes_max:
        return False
    end = at + (length >> 1)
    at = short_int(at + 1, &delta)
    if at == NULL:
        return False
    at = short_int(at, &offset)
    if at == NULL or offset != 2 * index:
        return False
    at = short_int(at, &key)
    if at == NULL:
        return False
    if not key & 1:
        at += key >> 1
        if end - at < 3:
            return False
    at = short_int(at, &value)
    if at == NULL:
        return False
    if not value & 1:
        at += value >> 1
    if end - at != 1 or at[0]:
        return False
    found.timestamp_delta_ms = <int64_t>(delta >> 1) ^ -<int64_t>(delta & 1)
    found.has_key = not key & 1
    body.at = end
    return True


cdef inline int read_strictly(Cursor *body, int32_t index, const Rules *rules, Seen *found) noexcept nogil:
    """Reads any record; returns its fault."""
    cdef Record record
    if not next_record(body, &record):
        return body.fault
    found.timestamp_delta_ms = record.timestamp_delta_ms
    if record.fields.end - record.content > rules.record_bytes_max:
        return record.fields.fault or RECORD_TOO_LARGE
    if record.offset_delta != index:
        fail(&record.fields, OFFSET_ASTRAY)
    found.has_key = read_field(&record.fields).length >= 0
    read_field(&record.fields)
    skip_headers(&record.fields)
    return record.fields.fault


cdef inline int rejection(const Rules *rules, bint has_key, int64_t timestamp_ms, bint overflowed) noexcept nogil:
    if rules.keys_required and not has_key:
        return KEY_MISSING
    if not rules.times_matter or (timestamp_ms == -1 and not overflowed):
        return 0
    if overflowed or not rules.earliest_ms <= timestamp_ms <= rules.latest_ms:
        return TIME_OUT_OF_RANGE
    return 0


cdef int check_each(
    Cursor body, int32_t record_count, int64_t base_timestamp_ms, const Rules *rules, Check *found
) noexcept nogil:
    """Returns the fault that ends the check, or 0."""
    cdef Seen record
    cdef int64_t timestamp_ms, max_timestamp_ms = -1
    cdef int32_t index
    cdef int fault
    found.rejected_count = 0
    for index in range(record_count):
        fault = read_strictly(&body, index, rules, &record)
        if fault:
            found.index, found.max_timestamp_ms = index, max_timestamp_ms
            return fault
        timestamp_ms = <int64_t>(<uint64_t>base_timestamp_ms + <uint64_t>record.timestamp_delta_ms)
        if timestamp_ms > max_timestamp_ms:
            max_timestamp_ms = timestamp_ms
        fault = rejection(
            rules, record.has_key, timestamp_ms, overflows(base_timestamp_ms, record.timestamp_delta_ms)
        )
        if fault:
            if found.rejected_count < RECORD_ERRORS_MAX:
                found.rejected[found.rejected_count] = Rejected(index, fault, timestamp_ms)
            found.rejected_count += 1
    found.index, found.max_timestamp_ms = record_count, max_timestamp_ms
    return BYTES_BEHIND_BATCH if body.at != body.end else 0


cdef bint are_sound(
    Cursor body, int32_t record_count, int64_t base_timestamp_ms, const Rules *rules, Check *found
) noexcept nogil:
    """Whether no record has a fault, by the extremes of their times. If one has, `check_each` finds it."""
    cdef Seen record
    cdef int64_t first_ms = INT64_MAX, last_ms = INT64_MIN
    cdef bint all_have_keys = True
    cdef int32_t index
    for index in range(record_count):
        if not next_plain_record(&body, index, rules.record_bytes_max, &record):
            if read_strictly(&body, index, rules, &record):
                return False
        if record.timestamp_delta_ms < first_ms:
            first_ms = record.timestamp_delta_ms
        if record.timestamp_delta_ms > last_ms:
            last_ms = record.timestamp_delta_ms
        all_have_keys &= record.has_key
    if body.at != body.end or record_count <= 0 or (rules.keys_required and not all_have_keys):
        return False
    if overflows(base_timestamp_ms, first_ms) or overflows(base_timestamp_ms, last_ms):
        return False
    first_ms, last_ms = base_timestamp_ms + first_ms, base_timestamp_ms + last_ms
    if rules.times_matter and (first_ms < rules.earliest_ms or last_ms > rules.latest_ms):
        return False
    found.index, found.rejected_count = record_count, 0
    found.max_timestamp_ms = last_ms if last_ms > -1 else -1
    return True


cdef int check(
    Cursor body, int32_t record_count, int64_t base_timestamp_ms, const Rules *rules, Check *found
) noexcept nogil:
    if are_sound(body, record_count, base_timestamp_ms, rules, found):
        return 0
    return check_each(body, record_count, base_timestamp_ms, rules, found)


def check_records(body, int32_t record_count, int64_t base_timestamp_ms, rules):
    """See `_python`."""
    cdef Check found
    cdef Cursor cursor
    cdef Rules wanted
    cdef Py_buffer view
    cdef Py_ssize_t index
    cdef int fault
    wanted.keys_required, times, wanted.record_bytes_max = rules
    wanted.times_matter, wanted.earliest_ms, wanted.latest_ms = False, INT64_MIN, INT64_MAX
    if times is not None:
        wanted.times_matter = True
        wanted.earliest_ms, wanted.latest_ms = times
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    cursor = Cursor(<const uint8_t *>view.buf, <const uint8_t *>view.buf + view.len, 0)
    try:
        if view.len > HOLDING_BYTES_MAX:
            with nogil:
                fault = check(cursor, record_count, base_timestamp_ms, &wanted, &found)
        else:
            fault = check(cursor, record_count, base_timestamp_ms, &wanted, &found)
    finally:
        PyBuffer_Release(&view)
    if not found.rejected_count or fault not in (0, BYTES_BEHIND_BATCH):
        return _new_check((fault, found.index, found.max_timestamp_ms, 0, ()))
    rejected = tuple([
        RejectedRecord(found.rejected[index].index, found.rejected[index].fault, found.rejected[index].timestamp_ms)
        for index in range(min(found.rejected_count, RECORD_ERRORS_MAX))
    ])
    return _new_check((fault, found.index, found.max_timestamp_ms, found.rejected_count, rejected))


def record_spans(bytes body, int32_t record_count):
    """See `_python`."""
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
