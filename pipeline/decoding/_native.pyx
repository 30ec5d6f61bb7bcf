# cython: language_level=3, boundscheck=False, wraparound=False
"""The decoder in C by way of Cython: walks over batches, and copies fields straight into Arrow's buffers.

It gives the same results as `_python`, in the same order and with the same errors; `_python` has the reasons.
`_reserve` reserves the memory for a batch before its records are read, by bounds from the batch's size, so
that reading the records allocates nothing. The written records count after the last one was read (`_commit`).
Libraries compute checksums, unpack codecs and make arrays; they are called at most once for each batch.
"""

from cpython.buffer cimport PyBUF_READ, PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_GET_BUFFER
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from barnabas.pipeline.decoding._columns cimport Binary, Columns, Range, Wanted, read_records, touches
from barnabas.protocol.record_walk._reading cimport (
    COMPRESSION_MASK, CONTROL_FLAG, CRC_START, HEADER_BYTES, LOG_OVERHEAD, MAGIC, MAGIC_END, RECORD_BYTES_MIN,
    RECORD_HEADER_BYTES_MIN, TRANSACTIONAL_FLAG, Batch, Cursor, read_header, read_prefix,
)

from crc32c import crc32c

from barnabas.pipeline.decoding import errors
from barnabas.pipeline.decoding._unpacking import RefusedError, unpack
from barnabas.pipeline.decoding.arrow import binary_array, fixed_array, headers_array, record_batch
from barnabas.pipeline.decoding.bounds import (
    ALL_TIMES, DECOMPRESSED_BYTES_MAX, EVERYTHING, FIXED_BYTES, HEADER_FIXED_BYTES, TAKEN_BYTES_MAX,
    check_bounds, check_columns, check_ranges, check_span,
)
from barnabas.pipeline.decoding.errors import BatchError
from barnabas.protocol.varint import RecordFormatError

cdef enum:
    INT32_BYTES = 4
    INT64_BYTES = 8
    FIRST_CAPACITY_BYTES = 64
    RECYCLED_BYTES_MAX = 1 << 25  # larger memory, for an unusually large batch, isn't kept


cdef class Memory:
    """A growing buffer, which Arrow then reads without a copy."""

    cdef uint8_t *data
    cdef Py_ssize_t capacity, size, reader_count

    def __cinit__(self):
        self.data = <uint8_t *>calloc(1, FIRST_CAPACITY_BYTES)
        if self.data == NULL:
            raise MemoryError()
        self.capacity = FIRST_CAPACITY_BYTES

    cdef uint8_t *reserve(self, Py_ssize_t size) except NULL:
        cdef uint8_t *data
        if size > self.capacity:
            size = max(size, 2 * self.capacity)
            data = <uint8_t *>realloc(self.data, size)
            if data == NULL:
                raise MemoryError()
            self.data, self.capacity = data, size
        return self.data

    cdef bint is_reusable(self) noexcept:
        return self.reader_count == 0 and self.capacity <= RECYCLED_BYTES_MAX

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 1, flags)
        self.reader_count += 1

    def __releasebuffer__(self, Py_buffer *buffer):
        self.reader_count -= 1

    def __dealloc__(self):
        free(self.data)


cdef class Recycled:
    """The memory of one column, which Arrow uses again and again.

    The memory of the last `take` but one is used again if Arrow no longer reads it, because new memory from
    the system costs several times as much as decoding. The first bytes are 0 until they are written.
    """

    cdef Memory current, last_taken, taken_before

    cdef uint8_t *reserve(self, Py_ssize_t size) except NULL:
        if self.current is None:
            if self.taken_before is not None and self.taken_before.is_reusable():
                self.current, self.taken_before = self.taken_before, None
            else:
                self.current = Memory()
        return self.current.reserve(size)

    cdef Memory take(self, Py_ssize_t size):
        """The first `size` bytes."""
        self.reserve(size)
        self.current.size = size
        self.taken_before, self.last_taken, self.current = self.last_taken, self.current, None
        return self.last_taken


cdef class BinaryColumn:
    """The memory of a column of byte strings, and the part that is written."""

    cdef Recycled validity, offsets, data
    cdef Binary written

    def __cinit__(self):
        self.validity, self.offsets, self.data = Recycled(), Recycled(), Recycled()

    cdef Binary *reserve(self, Py_ssize_t count, Py_ssize_t size) except NULL:
        """Makes room for `count` more with together `size` bytes."""
        count += self.written.count
        self.written.validity = self.validity.reserve((count + 7) // 8)
        self.written.offsets = <int32_t *>self.offsets.reserve((count + 1) * INT32_BYTES)
        self.written.data = self.data.reserve(self.written.bytes + size)
        return &self.written

    cdef take(self):
        cdef Py_ssize_t count = self.written.count, null_count = self.written.null_count
        validity = self.validity.take((count + 7) // 8)
        offsets = self.offsets.take((count + 1) * INT32_BYTES)
        data = self.data.take(self.written.bytes)
        memset(&self.written, 0, sizeof(Binary))
        return binary_array(count, null_count, validity, offsets, data)


cdef class RecordDecoder:
    """Collects the records of batches, and gives them as columns: `_python.RecordDecoder` in C."""

    is_native = True

    cdef tuple _names
    cdef Py_ssize_t _taken_bytes_max, _decompressed_bytes_max, _row_bytes, _header_bytes, _count
    cdef int64_t _next_offset
    cdef Recycled _offset, _timestamp, _timestamp_type, _delivery_count, _header_offsets
    cdef BinaryColumn _key, _value, _header_name, _header_value

    def __init__(
        self, columns, *, taken_bytes_max=TAKEN_BYTES_MAX, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX
    ):
        check_columns(columns)
        check_bounds(taken_bytes_max, decompressed_bytes_max)
        self._names = tuple(columns)
        self._taken_bytes_max, self._decompressed_bytes_max = taken_bytes_max, decompressed_bytes_max
        self._row_bytes = sum([FIXED_BYTES[name] for name in self._names])
        self._header_bytes = HEADER_FIXED_BYTES
        self._next_offset = -1
        self._offset = Recycled() if "offset" in self._names else None
        self._timestamp = Recycled() if "timestamp" in self._names else None
        self._timestamp_type = Recycled() if "timestampType" in self._names else None
        self._delivery_count = Recycled() if "deliveryCount" in self._names else None
        self._key = BinaryColumn() if "key" in self._names else None
        self._value = BinaryColumn() if "value" in self._names else None
        if "headers" in self._names:
            self._header_offsets = Recycled()
            self._header_name, self._header_value = BinaryColumn(), BinaryColumn()

    @property
    def record_count(self):
        """Records taken since the last `take`."""
        return self._count

    @property
    def size_bytes(self):
        """Their size as Arrow columns, without bitmaps of nulls."""
        return self._taken_bytes()

    @property
    def is_full(self):
        """Whether `add` waits for `take`."""
        return self._taken_bytes() >= self._taken_bytes_max

    @property
    def next_offset(self):
        """One more than the last offset of the last batch that was read, even if none of it was taken."""
        return None if self._next_offset < 0 else self._next_offset

    def add(self, buffer, start=0, end=None, *, ranges=EVERYTHING, aborted=None, timestamps=None):
        """Reads the complete batches between `start` and `end`; returns the position where the last one ends."""
        cdef Memory range_memory = Memory()
        cdef Wanted wanted
        view = memoryview(buffer).cast("B")
        end = check_span(len(view), start, end)
        check_ranges(ranges)
        wanted.range_count, wanted.next_range, wanted.next_offset = len(ranges), 0, 0
        wanted.first_timestamp_ms, wanted.last_timestamp_ms = ALL_TIMES if timestamps is None else timestamps
        wanted.ranges = <Range *>range_memory.reserve(wanted.range_count * <Py_ssize_t>sizeof(Range))
        for index, (first_offset, last_offset, delivery_count) in enumerate(ranges):
            wanted.ranges[<Py_ssize_t>index] = Range(first_offset, last_offset, delivery_count)
        return self._walk(view, start, end, &wanted, aborted)

    def take(self):
        """The columns of the taken records, in the order of `columns`; the decoder is empty again."""
        arrays = [self._take_column(name) for name in self._names]
        count, self._count = self._count, 0
        return record_batch(self._names, arrays, count)

    cdef Py_ssize_t _walk(self, view, Py_ssize_t position, Py_ssize_t end, Wanted *wanted, aborted) except -1:
        cdef const uint8_t *data = <const uint8_t *>PyMemoryView_GET_BUFFER(view).buf
        cdef Py_ssize_t next_position
        cdef Batch batch
        while end - position >= MAGIC_END and self._taken_bytes() < self._taken_bytes_max:
            read_prefix(&batch, data + position)
            if batch.magic != MAGIC:
                raise BatchError(batch.base_offset, position, errors.wrong_magic(batch.magic))
            next_position = position + LOG_OVERHEAD + batch.batch_length
            if next_position - position < HEADER_BYTES:
                raise BatchError(batch.base_offset, position, errors.wrong_length(batch.batch_length))
            if next_position > end:
                break
            read_header(&batch, data + position)
            try:
                self._take_batch(view, position, next_position, &batch, wanted, aborted)
            except RefusedError as refused:
                raise BatchError(batch.base_offset, position, str(refused), next_position) from None
            self._next_offset = batch.base_offset + batch.last_offset_delta + 1
            position = next_position
        return position

    cdef int _take_batch(
        self, view, Py_ssize_t start, Py_ssize_t end, const Batch *batch, Wanted *wanted, aborted
    ) except -1:
        cdef const uint8_t *data = <const uint8_t *>PyMemoryView_GET_BUFFER(view).buf
        cdef int codec = batch.attributes & COMPRESSION_MASK
        cdef Py_ssize_t body_start = start + HEADER_BYTES
        _check(data + start, end - start, batch)
        if batch.attributes & CONTROL_FLAG:
            if aborted is not None and batch.producer_id >= 0:
                body = unpack(codec, view[body_start:end], self._decompressed_bytes_max)
                _see_marker(aborted, batch, body)
        elif not touches(wanted, batch) or _is_aborted(aborted, batch):
            pass
        elif codec:
            body = unpack(codec, view[body_start:end], self._decompressed_bytes_max)
            self._take_records(<const uint8_t *>PyBytes_AS_STRING(body), len(body), batch, wanted)
        elif end - body_start > self._decompressed_bytes_max:
            raise RefusedError(errors.too_large(end - body_start, self._decompressed_bytes_max))
        else:
            self._take_records(data + body_start, end - body_start, batch, wanted)
        return 0

    cdef int _take_records(
        self, const uint8_t *body, Py_ssize_t size, const Batch *batch, Wanted *wanted
    ) except -1:
        cdef Cursor cursor = Cursor(body, body + size, 0)
        cdef Columns columns
        cdef int32_t index
        if not 0 <= <int64_t>batch.record_count * RECORD_BYTES_MIN <= size:
            raise RefusedError(errors.wrong_count(batch.record_count, size))
        self._reserve(&columns, batch.record_count, size)
        index = read_records(&cursor, batch, wanted, &columns)
        if cursor.fault:
            raise RefusedError(errors.wrong_record(index, cursor.fault))
        if cursor.at != cursor.end:
            raise RefusedError(errors.wrong_end(cursor.end - cursor.at))
        self._commit(&columns)
        return 0

    cdef int _reserve(self, Columns *columns, Py_ssize_t count, Py_ssize_t size) except -1:
        """Makes room for `count` records in `size` bytes, the most that their keys or headers can have."""
        cdef Py_ssize_t header_count = size // RECORD_HEADER_BYTES_MIN, end = self._count + count
        memset(columns, 0, sizeof(Columns))
        columns.count = self._count
        if self._offset is not None:
            columns.offset = <int64_t *>self._offset.reserve(end * INT64_BYTES)
        if self._timestamp is not None:
            columns.timestamp = <int64_t *>self._timestamp.reserve(end * INT64_BYTES)
        if self._timestamp_type is not None:
            columns.timestamp_type = <int32_t *>self._timestamp_type.reserve(end * INT32_BYTES)
        if self._delivery_count is not None:
            columns.delivery_count = <int32_t *>self._delivery_count.reserve(end * INT32_BYTES)
        if self._key is not None:
            columns.key = self._key.reserve(count, size)[0]
        if self._value is not None:
            columns.value = self._value.reserve(count, size)[0]
        if self._header_offsets is not None:
            columns.header_offsets = <int32_t *>self._header_offsets.reserve((end + 1) * INT32_BYTES)
            columns.header_name = self._header_name.reserve(header_count, size)[0]
            columns.header_value = self._header_value.reserve(header_count, size)[0]
        return 0

    cdef void _commit(self, const Columns *columns) noexcept:
        self._count = columns.count
        if self._key is not None:
            self._key.written = columns.key
        if self._value is not None:
            self._value.written = columns.value
        if self._header_offsets is not None:
            self._header_name.written, self._header_value.written = columns.header_name, columns.header_value

    cdef Py_ssize_t _taken_bytes(self) noexcept:
        cdef Py_ssize_t size = self._row_bytes * self._count
        if self._key is not None:
            size += self._key.written.bytes
        if self._value is not None:
            size += self._value.written.bytes
        if self._header_offsets is not None:
            size += self._header_bytes * self._header_name.written.count
            size += self._header_name.written.bytes + self._header_value.written.bytes
        return size

    cdef _take_column(self, str name):
        cdef Recycled column
        if name == "key":
            return self._key.take()
        if name == "value":
            return self._value.take()
        if name == "headers":
            offsets = self._header_offsets.take((self._count + 1) * INT32_BYTES)
            return headers_array(self._count, offsets, self._header_name.take(), self._header_value.take())
        column = {
            "offset": self._offset,
            "timestamp": self._timestamp,
            "timestampType": self._timestamp_type,
            "deliveryCount": self._delivery_count,
        }[name]
        return fixed_array(name, self._count, column.take(self._count * <Py_ssize_t>FIXED_BYTES[name]))


cdef int _check(const uint8_t *data, Py_ssize_t size, const Batch *batch) except -1:
    """Checks the checksum and the offsets of a whole batch."""
    computed = crc32c(PyMemoryView_FromMemory(<char *>data + CRC_START, size - CRC_START, PyBUF_READ))
    if <uint32_t>computed != batch.crc:
        raise RefusedError(errors.wrong_checksum(batch.crc, computed))
    if batch.last_offset_delta < 0 or not 0 <= batch.base_offset < INT64_MAX - batch.last_offset_delta:
        raise RefusedError(errors.wrong_offsets(batch.last_offset_delta))
    return 0


cdef bint _is_aborted(aborted, const Batch *batch) except -1:
    if aborted is None or not batch.attributes & TRANSACTIONAL_FLAG:
        return False
    return aborted.covers(batch.producer_id, batch.base_offset)


cdef int _see_marker(aborted, const Batch *batch, bytes body) except -1:
    try:
        aborted.see_marker(batch.producer_id, batch.base_offset, body)
    except RecordFormatError as error:
        raise RefusedError(errors.wrong_marker(error)) from None
    return 0
