# cython: language_level=3, boundscheck=False, wraparound=False
"""The module in C, written in Cython. It does the same as `_python`."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp

from barnabas.protocol.record_walk._reading cimport (
    BYTES_BEHIND_BATCH, Cursor, Field, Record, end_record, next_record, read_field, read_header_count,
    read_header_name,
)

from barnabas.protocol.record_facts.shapes import RecordFacts
from barnabas.protocol.record_walk.shapes import unreadable

IS_NATIVE = True


cdef inline Field last_header(Cursor *fields, const uint8_t *wanted, int64_t wanted_length) noexcept nogil:
    """The value of the last header with that name; its length is -1 if there is none."""
    cdef Field last = Field(NULL, -1)
    cdef Field name, value
    cdef int64_t count
    read_field(fields)  # the key
    read_field(fields)  # the value
    count = read_header_count(fields)
    while count and not fields.fault:
        name = read_header_name(fields)
        value = read_field(fields)
        if name.length == wanted_length and not memcmp(name.data, wanted, wanted_length):
            last = value
        count -= 1
    end_record(fields)
    return last


def record_facts(body, int32_t record_count, bytes header_name):
    """See `_python`."""
    cdef Py_buffer view
    cdef Cursor cursor
    cdef Record record
    cdef Field value = Field(NULL, -1)
    cdef int32_t index
    cdef bint has_name = header_name is not None
    cdef const uint8_t *wanted = NULL
    cdef int64_t wanted_length = 0
    cdef list offset_deltas = []
    cdef list timestamp_deltas_ms = []
    cdef list header_values = []
    if has_name:
        wanted = <const uint8_t *>PyBytes_AS_STRING(header_name)
        wanted_length = len(header_name)
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    try:
        cursor = Cursor(<const uint8_t *>view.buf, <const uint8_t *>view.buf + view.len, 0)
        for index in range(record_count):
            if not next_record(&cursor, &record):
                raise unreadable(index, record_count, cursor.fault)
            if has_name:
                value = last_header(&record.fields, wanted, wanted_length)
            if record.fields.fault:
                raise unreadable(index, record_count, record.fields.fault)
            offset_deltas.append(record.offset_delta)
            timestamp_deltas_ms.append(record.timestamp_delta_ms)
            header_values.append(
                None if value.length < 0 else PyBytes_FromStringAndSize(<const char *>value.data, value.length)
            )
        if cursor.at != cursor.end:
            raise unreadable(record_count, record_count, BYTES_BEHIND_BATCH)
    finally:
        PyBuffer_Release(&view)
    return RecordFacts(offset_deltas, timestamp_deltas_ms, header_values)
