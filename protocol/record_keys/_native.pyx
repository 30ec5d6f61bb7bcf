# cython: language_level=3, boundscheck=False, wraparound=False
"""The module in C, written in Cython. It does the same as `_python`."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from barnabas.protocol.record_walk._reading cimport (
    BYTES_BEHIND_BATCH, RECORD_MISSING, Cursor, Field, Record, next_record, read_field,
)

from barnabas.protocol.record_keys.shapes import NO_KEY, KeyHashes
from barnabas.protocol.record_walk.shapes import unreadable

IS_NATIVE = True

cdef enum:
    SEED = 0x9747B28C
    FACTOR = 0x5BD1E995


cdef inline uint32_t positive_murmur2(const uint8_t *data, int64_t length) noexcept nogil:
    cdef uint32_t value = <uint32_t>SEED ^ <uint32_t>length
    cdef uint32_t word
    cdef int64_t left = length
    while left >= 4:
        word = data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24
        word *= <uint32_t>FACTOR
        word = (word ^ word >> 24) * <uint32_t>FACTOR
        value = value * <uint32_t>FACTOR ^ word
        data += 4
        left -= 4
    if left:
        if left == 3:
            value ^= <uint32_t>data[2] << 16
        if left >= 2:
            value ^= <uint32_t>data[1] << 8
        value = (value ^ data[0]) * <uint32_t>FACTOR
    value = (value ^ value >> 13) * <uint32_t>FACTOR
    return (value ^ value >> 15) & 0x7FFFFFFF


def key_hash(bytes key):
    """See `_python`."""
    return positive_murmur2(<const uint8_t *>PyBytes_AS_STRING(key), len(key))


def key_hashes(body, int32_t record_count):
    """See `_python`."""
    cdef Py_buffer view
    cdef Cursor cursor
    cdef Record record
    cdef Field key
    cdef int32_t index
    cdef list offset_deltas = []
    cdef list hashes = []
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    try:
        cursor = Cursor(<const uint8_t *>view.buf, <const uint8_t *>view.buf + view.len, 0)
        for index in range(record_count):
            if not next_record(&cursor, &record):
                raise unreadable(index, record_count, cursor.fault)
            key = read_field(&record.fields)
            if record.fields.fault:
                raise unreadable(index, record_count, record.fields.fault)
            offset_deltas.append(record.offset_delta)
            hashes.append(NO_KEY if key.length < 0 else positive_murmur2(key.data, key.length))
        if cursor.at != cursor.end:
            raise unreadable(record_count, record_count, BYTES_BEHIND_BATCH)
    finally:
        PyBuffer_Release(&view)
    return KeyHashes(offset_deltas, hashes)


def kept_records(body, int32_t record_count, offset_deltas):
    """See `_python`."""
    cdef Py_buffer view
    cdef Cursor cursor
    cdef Record record
    cdef const uint8_t *start
    cdef int32_t index
    cdef Py_ssize_t wanted = 0, wanted_count = len(offset_deltas), size = 0
    cdef int64_t wanted_delta
    cdef bytearray kept
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    try:
        kept = bytearray(view.len)
        cursor = Cursor(<const uint8_t *>view.buf, <const uint8_t *>view.buf + view.len, 0)
        for index in range(record_count):
            if wanted == wanted_count:
                break
            wanted_delta = offset_deltas[wanted]
            start = cursor.at
            if not next_record(&cursor, &record):
                raise unreadable(index, record_count, cursor.fault)
            if record.fields.fault:
                raise unreadable(index, record_count, record.fields.fault)
            if record.offset_delta == wanted_delta:
                memcpy(<char *>kept + size, start, cursor.at - start)
                size += cursor.at - start
                wanted += 1
    finally:
        PyBuffer_Release(&view)
    if wanted < wanted_count:
        raise unreadable(record_count, record_count, RECORD_MISSING)
    return PyBytes_FromStringAndSize(<char *>kept, size)
