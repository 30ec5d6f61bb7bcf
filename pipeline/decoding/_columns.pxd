"""Copies records into the memory of columns in C, without Python objects.

`_python_records` explains which records are taken and which are refused. The caller provides the memory:
`Columns` must have room for all of a batch's records and bytes.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from barnabas.protocol.record_walk._reading cimport (
    LOG_APPEND_TIME_FLAG, OFFSET_ASTRAY, TIME_TOO_FAR, Batch, Cursor, Field, Record,
    end_record, fail, next_record, overflows, read_field, read_header_count, read_header_name,
)


cdef struct Range:
    int64_t first_offset, last_offset, delivery_count

cdef struct Wanted:  # in ranges, those before `next_range` being below `next_offset`, and between two times
    Range *ranges
    Py_ssize_t range_count, next_range
    int64_t next_offset, first_timestamp_ms, last_timestamp_ms

cdef struct Binary:  # a column of byte strings
    uint8_t *validity
    int32_t *offsets
    uint8_t *data
    Py_ssize_t count, null_count, bytes

cdef struct Columns:  # NULL for a column that isn't wanted
    Py_ssize_t count
    int64_t *offset
    int64_t *timestamp
    int32_t *timestamp_type
    int32_t *delivery_count
    int32_t *header_offsets
    Binary key, value, header_name, header_value


cdef inline void push(Binary *column, const uint8_t *data, int64_t length) noexcept nogil:
    """Writes one more byte string; null if `length` is negative."""
    cdef uint8_t bit = <uint8_t>(1 << (column.count & 7))
    cdef uint8_t *validity = column.validity + (column.count >> 3)
    if length < 0:
        validity[0] &= ~bit
        column.null_count += 1
    else:
        validity[0] |= bit
        memcpy(column.data + column.bytes, data, length)
        column.bytes += length
    column.count += 1
    column.offsets[column.count] = <int32_t>column.bytes


cdef inline int64_t timestamp_of(Cursor *record, const Batch *batch, int64_t delta_ms) noexcept nogil:
    if batch.attributes & LOG_APPEND_TIME_FLAG:
        return batch.max_timestamp_ms
    if overflows(batch.base_timestamp_ms, delta_ms):
        return fail(record, TIME_TOO_FAR)
    return batch.base_timestamp_ms + delta_ms


cdef inline Range *range_from(Wanted *wanted, int64_t offset) noexcept nogil:
    """The first range that ends at `offset` or behind it; NULL if there is none."""
    if offset < wanted.next_offset:
        wanted.next_range = 0
    wanted.next_offset = offset
    while wanted.next_range < wanted.range_count:
        if offset <= wanted.ranges[wanted.next_range].last_offset:
            return &wanted.ranges[wanted.next_range]
        wanted.next_range += 1
    return NULL


cdef inline bint touches(Wanted *wanted, const Batch *batch) noexcept nogil:
    """Whether any of the batch's offsets is in a range."""
    cdef Range *range = range_from(wanted, batch.base_offset)
    return range != NULL and range.first_offset <= batch.base_offset + batch.last_offset_delta


cdef inline void read_headers(Cursor *record, Columns *columns) noexcept nogil:
    cdef Field name, value
    cdef int64_t count = read_header_count(record)
    while count:
        name = read_header_name(record)
        value = read_field(record)
        if record.fault:
            return
        push(&columns.header_name, name.data, name.length)
        push(&columns.header_value, value.data, value.length)
        count -= 1
    end_record(record)


cdef inline void take_record(
    Cursor *record,
    const Batch *batch,
    int64_t offset,
    int64_t timestamp_ms,
    int64_t delivery_count,
    Columns *columns,
) noexcept nogil:
    """Copies the wanted columns of a record, from its key on."""
    cdef Field key = read_field(record), value = read_field(record)
    if columns.offset != NULL:
        columns.offset[columns.count] = offset
    if columns.timestamp != NULL:
        columns.timestamp[columns.count] = timestamp_ms * 1000
    if columns.timestamp_type != NULL:
        columns.timestamp_type[columns.count] = batch.attributes & LOG_APPEND_TIME_FLAG != 0
    if columns.delivery_count != NULL:
        columns.delivery_count[columns.count] = <int32_t>delivery_count
    if columns.key.data != NULL:
        push(&columns.key, key.data, key.length)
    if columns.value.data != NULL:
        push(&columns.value, value.data, value.length)
    columns.count += 1
    if columns.header_offsets != NULL:
        read_headers(record, columns)
        columns.header_offsets[columns.count] = <int32_t>columns.header_name.count


cdef inline void read_record(
    Record *opened, const Batch *batch, int64_t *previous_delta, Wanted *wanted, Columns *columns
) noexcept nogil:
    """Takes a record if it is wanted; otherwise reads only its offset and time."""
    cdef Cursor *record = &opened.fields
    cdef int64_t offset_delta = opened.offset_delta
    cdef int64_t offset, timestamp_ms, timestamp_ms_max = INT64_MAX // 1000
    cdef Range *range
    if not previous_delta[0] < offset_delta <= batch.last_offset_delta:
        fail(record, OFFSET_ASTRAY)
    if record.fault:
        return
    previous_delta[0] = offset_delta
    offset = batch.base_offset + offset_delta
    timestamp_ms = timestamp_of(record, batch, opened.timestamp_delta_ms)
    range = range_from(wanted, offset)
    if range == NULL or offset < range.first_offset:
        return
    if not wanted.first_timestamp_ms <= timestamp_ms <= wanted.last_timestamp_ms:
        return
    if columns.timestamp != NULL and not -timestamp_ms_max <= timestamp_ms <= timestamp_ms_max:
        fail(record, TIME_TOO_FAR)
    if not record.fault:
        take_record(record, batch, offset, timestamp_ms, range.delivery_count, columns)


cdef inline int32_t read_records(
    Cursor *body, const Batch *batch, Wanted *wanted, Columns *columns
) noexcept nogil:
    """Reads the batch's records, or up to a faulty one: then returns its index, and `body` has the fault."""
    cdef Record record
    cdef int64_t previous_delta = -1
    cdef int32_t index
    for index in range(batch.record_count):
        if not next_record(body, &record):
            return index
        read_record(&record, batch, &previous_delta, wanted, columns)
        if record.fields.fault:
            fail(body, record.fields.fault)
            return index
    return batch.record_count
