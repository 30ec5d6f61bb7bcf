"""Reads record batches in C: each read is bounded, and no Python object is created.

`cursor` has the same functions in Python. A length is compared with the bytes that are left before it is added
to a position.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t


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

cdef enum:  # as in faults.RECORD_FAULTS
    FIELD_CUT = 1
    INTEGER_TOO_LONG = 2
    OFFSET_ASTRAY = 3
    TIME_TOO_FAR = 4
    BYTES_BEHIND = 5
    HEADER_WITHOUT_NAME = 6
    RECORD_MISSING = 7
    RECORD_TOO_LARGE = 8
    BYTES_BEHIND_BATCH = 9
    KEY_MISSING = 10
    TIME_OUT_OF_RANGE = 11

cdef struct Batch:
    int64_t base_offset, base_timestamp_ms, max_timestamp_ms, producer_id
    int32_t batch_length, attributes, last_offset_delta, record_count
    uint32_t crc
    int magic

cdef struct Cursor:  # reads up to `end`; the first fault is kept, and moves `at` to `end`
    const uint8_t *at
    const uint8_t *end
    int fault

cdef struct Field:  # a byte string; a length of -1 is null
    const uint8_t *data
    int64_t length

cdef struct Record:  # `content` is after the length, `rest` after the timestamp delta, `fields` at the key
    const uint8_t *content
    const uint8_t *rest
    Cursor fields
    int64_t timestamp_delta_ms, offset_delta


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
    """Keeps the first fault. Returns 0, a usable value until the caller checks `fault`."""
    if not cursor.fault:
        cursor.fault = fault
    cursor.at = cursor.end
    return 0


cdef inline int64_t unfolded(uint64_t value) noexcept nogil:
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)


cdef inline int64_t read_varint(Cursor *cursor, int last_shift, uint8_t last_byte_max) noexcept nogil:
    """A zigzag varint. The byte that is shifted by `last_shift` bits is its last possible byte."""
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while cursor.at < cursor.end:
        byte = cursor.at[0]
        cursor.at += 1
        if shift == last_shift and byte > last_byte_max:
            return fail(cursor, INTEGER_TOO_LONG)
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return unfolded(value)
        shift += 7
    return fail(cursor, FIELD_CUT)


cdef inline int64_t read_int32(Cursor *cursor) noexcept nogil:
    """Integers of one and two bytes, by far the most frequent, are read without a loop."""
    cdef const uint8_t *at = cursor.at
    if cursor.end - at >= 2:
        if at[0] < 0x80:
            cursor.at = at + 1
            return unfolded(at[0])
        if at[1] < 0x80:
            cursor.at = at + 2
            return unfolded(<uint64_t>at[1] << 7 | at[0] & 0x7F)
    return read_varint(cursor, 28, 0x0F)


cdef inline int64_t read_int64(Cursor *cursor) noexcept nogil:
    if cursor.end - cursor.at >= 2 and cursor.at[0] < 0x80:
        cursor.at += 1
        return unfolded(cursor.at[-1])
    return read_varint(cursor, 63, 0x01)


cdef inline Field read_field(Cursor *cursor) noexcept nogil:
    cdef Field field
    field.length = read_int32(cursor)
    if field.length < 0:
        field.length = -1
    elif field.length > cursor.end - cursor.at:
        field.length = fail(cursor, FIELD_CUT)
    field.data = cursor.at
    if field.length > 0:
        cursor.at += field.length
    return field


cdef inline bint next_record(Cursor *body, Record *record) noexcept nogil:
    """Reads the start of the next record; `fields` has the fault of a delta. False if `body` has a fault."""
    cdef int64_t length
    if body.at == body.end:
        fail(body, RECORD_MISSING)
    length = read_int32(body)
    if not 0 <= length <= body.end - body.at:
        fail(body, FIELD_CUT)
    if body.fault:
        return False
    record.content = record.fields.at = body.at
    body.at += length
    record.fields.end = body.at
    record.fields.fault = 0
    if length:
        record.fields.at += 1  # attributes, which have no meaning yet
    record.timestamp_delta_ms = read_int64(&record.fields)
    record.rest = record.fields.at
    record.offset_delta = read_int32(&record.fields)
    return True


cdef inline int64_t read_header_count(Cursor *fields) noexcept nogil:
    cdef int64_t count = read_int32(fields)
    if not 0 <= count <= fields.end - fields.at:
        return fail(fields, FIELD_CUT)
    return count


cdef inline Field read_header_name(Cursor *fields) noexcept nogil:
    cdef Field name = read_field(fields)
    if name.length < 0:
        fail(fields, HEADER_WITHOUT_NAME)
    return name


cdef inline void end_record(Cursor *fields) noexcept nogil:
    if fields.at != fields.end:
        fail(fields, BYTES_BEHIND)


cdef inline void skip_headers(Cursor *fields) noexcept nogil:
    """Reads the headers, which end the record."""
    cdef int64_t count = read_header_count(fields)
    while count and not fields.fault:
        read_header_name(fields)
        read_field(fields)
        count -= 1
    end_record(fields)


cdef inline bint overflows(int64_t base_timestamp_ms, int64_t delta_ms) noexcept nogil:
    """Whether the sum needs more than 64 bits."""
    if delta_ms > 0:
        return base_timestamp_ms > INT64_MAX - delta_ms
    return base_timestamp_ms < INT64_MIN - delta_ms
