"""Reading batches and records in C, every read bounded, without a Python object in sight.

What is read and refused, in which order, is `_python_records`' and `_python`'s. Whatever the bytes say, a
length is compared with what is left, and never added to a position first. Memory is the caller's affair:
`Columns` must have room for all of a batch's records and bytes.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef enum:  # the layout of a batch, as in protocol.record_batch
    LOG_OVERHEAD = 12
    MAGIC_END = 17
    CRC_START = 21
    HEADER_BYTES = 61
    MAGIC = 2
    COMPRESSION_MASK = 0x07
    LOG_APPEND_TIME_FLAG = 0x08
    TRANSACTIONAL_FLAG = 0x10
    CONTROL_FLAG = 0x20
    RECORD_BYTES_MIN = 7
    RECORD_HEADER_BYTES_MIN = 2

cdef enum:  # as in errors.RECORD_FAULTS
    FIELD_CUT = 1
    INTEGER_TOO_LONG = 2
    OFFSET_ASTRAY = 3
    TIME_TOO_FAR = 4
    BYTES_BEHIND = 5
    HEADER_WITHOUT_NAME = 6

cdef struct Batch:
    int64_t base_offset, base_timestamp_ms, max_timestamp_ms, producer_id
    int32_t batch_length, attributes, last_offset_delta, record_count
    uint32_t crc
    int magic

cdef struct Range:
    int64_t first_offset, last_offset, delivery_count

cdef struct Wanted:  # in ranges, those before `next_range` being below `next_offset`, and between two times
    Range *ranges
    Py_ssize_t range_count, next_range
    int64_t next_offset, first_timestamp_ms, last_timestamp_ms

cdef struct Cursor:  # reads up to `end`; the first fault stays, and leaves nothing to read
    const uint8_t *at
    const uint8_t *end
    int fault

cdef struct Binary:  # a column of byte strings
    uint8_t *validity
    int32_t *offsets
    uint8_t *data
    Py_ssize_t count, null_count, bytes

cdef struct Columns:  # NULL where a column isn't asked for
    Py_ssize_t count
    int64_t *offset
    int64_t *timestamp
    int32_t *timestamp_type
    int32_t *delivery_count
    int32_t *header_offsets
    Binary key, value, header_name, header_value


cdef inline uint32_t big_endian_32(const uint8_t *at) noexcept nogil:
    return <uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3]


cdef inline int64_t big_endian_64(const uint8_t *at) noexcept nogil:
    return <int64_t>(<uint64_t>big_endian_32(at) << 32 | big_endian_32(at + 4))


cdef inline void read_prefix(Batch *batch, const uint8_t *at) noexcept nogil:
    batch.base_offset = big_endian_64(at)
    batch.batch_length = <int32_t>big_endian_32(at + 8)
    batch.magic = <signed char>at[16]


cdef inline void read_header(Batch *batch, const uint8_t *at) noexcept nogil:
    batch.crc = big_endian_32(at + 17)
    batch.attributes = at[21] << 8 | at[22]
    batch.last_offset_delta = <int32_t>big_endian_32(at + 23)
    batch.base_timestamp_ms = big_endian_64(at + 27)
    batch.max_timestamp_ms = big_endian_64(at + 35)
    batch.producer_id = big_endian_64(at + 43)
    batch.record_count = <int32_t>big_endian_32(at + 57)


cdef inline int fail(Cursor *cursor, int fault) noexcept nogil:
    """Notes the fault and answers 0, which the caller's caller may read until it looks at `fault`."""
    if not cursor.fault:
        cursor.fault = fault
    cursor.at = cursor.end
    return 0


cdef inline int64_t read_varint(Cursor *cursor) noexcept nogil:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while cursor.at < cursor.end:
        byte = cursor.at[0]
        cursor.at += 1
        if shift == 63 and byte > 1:
            return fail(cursor, INTEGER_TOO_LONG)
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
        shift += 7
    return fail(cursor, FIELD_CUT)


cdef inline int64_t read_bytes(Cursor *cursor, const uint8_t **data) noexcept nogil:
    """The length of a field, which begins at `data`; -1 for null."""
    cdef int64_t length = read_varint(cursor)
    if length < 0:
        length = -1
    elif length > cursor.end - cursor.at:
        length = fail(cursor, FIELD_CUT)
    data[0] = cursor.at
    if length > 0:
        cursor.at += length
    return length


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
    if delta_ms > 0 and batch.base_timestamp_ms > INT64_MAX - delta_ms:
        return fail(record, TIME_TOO_FAR)
    if delta_ms < 0 and batch.base_timestamp_ms < INT64_MIN - delta_ms:
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
    cdef const uint8_t *name = NULL
    cdef const uint8_t *value = NULL
    cdef int64_t name_bytes, value_bytes, count = read_varint(record)
    if not 0 <= count <= record.end - record.at:
        count = fail(record, FIELD_CUT)
    while count:
        name_bytes = read_bytes(record, &name)
        if name_bytes < 0:
            fail(record, HEADER_WITHOUT_NAME)
        value_bytes = read_bytes(record, &value)
        if record.fault:
            return
        push(&columns.header_name, name, name_bytes)
        push(&columns.header_value, value, value_bytes)
        count -= 1
    if record.at != record.end:
        fail(record, BYTES_BEHIND)


cdef inline void take_record(
    Cursor *record,
    const Batch *batch,
    int64_t offset,
    int64_t timestamp_ms,
    int64_t delivery_count,
    Columns *columns,
) noexcept nogil:
    """Copies what is asked for of a record, which stands at its key."""
    cdef const uint8_t *key = NULL
    cdef const uint8_t *value = NULL
    cdef int64_t key_bytes = read_bytes(record, &key), value_bytes = read_bytes(record, &value)
    if columns.offset != NULL:
        columns.offset[columns.count] = offset
    if columns.timestamp != NULL:
        columns.timestamp[columns.count] = timestamp_ms * 1000
    if columns.timestamp_type != NULL:
        columns.timestamp_type[columns.count] = batch.attributes & LOG_APPEND_TIME_FLAG != 0
    if columns.delivery_count != NULL:
        columns.delivery_count[columns.count] = <int32_t>delivery_count
    if columns.key.data != NULL:
        push(&columns.key, key, key_bytes)
    if columns.value.data != NULL:
        push(&columns.value, value, value_bytes)
    columns.count += 1
    if columns.header_offsets != NULL:
        read_headers(record, columns)
        columns.header_offsets[columns.count] = <int32_t>columns.header_name.count


cdef inline void read_record(
    Cursor *record, const Batch *batch, int64_t *previous_delta, Wanted *wanted, Columns *columns
) noexcept nogil:
    """Reads a record behind its attributes; no further than its offset and time if it isn't wanted."""
    cdef int64_t timestamp_delta_ms = read_varint(record), offset_delta = read_varint(record)
    cdef int64_t offset, timestamp_ms, timestamp_ms_max = INT64_MAX // 1000
    cdef Range *range
    if not previous_delta[0] < offset_delta <= batch.last_offset_delta:
        fail(record, OFFSET_ASTRAY)
    if record.fault:
        return
    previous_delta[0] = offset_delta
    offset = batch.base_offset + offset_delta
    timestamp_ms = timestamp_of(record, batch, timestamp_delta_ms)
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
    """Reads the batch's records, or up to a faulty one: then answers its index, and `body` has the fault."""
    cdef Cursor record
    cdef int64_t length, previous_delta = -1
    cdef int32_t index
    for index in range(batch.record_count):
        length = read_varint(body)
        if not 0 <= length <= body.end - body.at:
            fail(body, FIELD_CUT)
        if body.fault:
            return index
        record.at = body.at
        body.at += length
        record.end = body.at
        record.fault = 0
        if length:
            record.at += 1
        read_record(&record, batch, &previous_delta, wanted, columns)
        if record.fault:
            body.fault = record.fault
            return index
    return batch.record_count
