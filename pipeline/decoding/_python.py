"""The decoder in plain Python, for installations without the native one.

Tests check that the two give the same columns and errors. Read this one to learn which records are taken, in
which order a batch is checked, and the errors. `_python_records` reads the records of a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import ClassVar, Final

from crc32c import crc32c

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding import errors
from barnabas.pipeline.decoding._python_records import Row, Wanted, read_rows
from barnabas.pipeline.decoding._unpacking import RefusedError, unpack
from barnabas.pipeline.decoding.arrow import array_of, record_batch
from barnabas.pipeline.decoding.bounds import (
    ALL_TIMES,
    DECOMPRESSED_BYTES_MAX,
    EVERYTHING,
    FIXED_BYTES,
    HEADER_FIXED_BYTES,
    OFFSET_MAX,
    TAKEN_BYTES_MAX,
    OffsetRange,
    check_bounds,
    check_columns,
    check_ranges,
    check_span,
)
from barnabas.pipeline.decoding.errors import BatchError
from barnabas.protocol.aborted_transactions import AbortedTransactions
from barnabas.protocol.record_batch import (
    COMPRESSION_MASK,
    CRC_START,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    read_header,
)
from barnabas.protocol.varint import Buffer, RecordFormatError

_PREFIX: Final = struct.Struct(">qi4xb")
"""Base offset, batch length and magic: these 17 bytes give a batch's end and format."""
_RECORD_BYTES_MIN: Final = 7


class RecordDecoder:
    """Collects the records of batches, and gives them as columns.

    It builds only the columns in `columns`. A decoder that holds `taken_bytes_max` is full: it takes no
    further batch until `take` has emptied it. Both bounds are in bytes. ValueError if they allow a column to
    outgrow an Arrow array, or for columns that are unknown or named twice.
    """

    is_native: ClassVar[bool] = False
    """Whether this is the fast one."""

    def __init__(
        self,
        columns: Collection[str],
        *,
        taken_bytes_max: int = TAKEN_BYTES_MAX,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        check_columns(columns)
        check_bounds(taken_bytes_max, decompressed_bytes_max)
        self._columns = tuple(columns)
        self._taken_bytes_max = taken_bytes_max
        self._decompressed_bytes_max = decompressed_bytes_max
        self._row_bytes = sum(FIXED_BYTES[column] for column in self._columns)
        self._rows: list[Row] = []
        self._size_bytes = 0
        self._next_offset: int | None = None

    @property
    def record_count(self) -> int:
        """Records taken since the last `take`."""
        return len(self._rows)

    @property
    def size_bytes(self) -> int:
        """Their size as Arrow columns, without bitmaps of nulls."""
        return self._size_bytes

    @property
    def is_full(self) -> bool:
        """Whether `add` waits for `take`."""
        return self._size_bytes >= self._taken_bytes_max

    @property
    def next_offset(self) -> int | None:
        """One more than the last offset of the last batch that was read, even if none of it was taken."""
        return self._next_offset

    def add(
        self,
        buffer: Buffer,
        start: int = 0,
        end: int | None = None,
        *,
        ranges: Sequence[OffsetRange] = EVERYTHING,
        aborted: AbortedTransactions | None = None,
        timestamps: tuple[int, int] | None = None,
    ) -> int:
        """Reads the complete batches between `start` and `end`; returns the position where the last one ends.

        That is less than `end` if the last batch is incomplete, or if the decoder became full: then call
        again from there, after `take`. Takes records in one of `ranges`, which ascend and don't overlap, with
        a time (ms) between the two `timestamps`, both inclusive, in no transaction that `aborted` names. Of
        control batches it uses only the ends of transactions. Checks the CRC of each batch.

        Raises BatchError for a batch that cannot be decoded: it took all batches in front, and nothing of
        this one. ValueError for ranges that don't ascend, or a span outside of the buffer.
        """
        view = memoryview(buffer).cast("B")
        end = check_span(len(view), start, end)
        check_ranges(ranges)
        wanted = Wanted(ranges, timestamps or ALL_TIMES, frozenset(self._columns))
        position = start
        while not self.is_full and end - position >= _PREFIX.size:
            next_position = _next_position(view, position)
            if next_position > end:
                break
            batch = view[position:next_position]
            header = read_header(batch)
            try:
                self._take_batch(batch, header, wanted, aborted)
            except RefusedError as refused:
                raise BatchError(header.base_offset, position, str(refused), next_position) from None
            self._next_offset = header.last_offset + 1
            position = next_position
        return position

    def take(self) -> RecordBatch:
        """The columns of the taken records, in the order of `columns`; the decoder is empty again."""
        arrays = [array_of(name, [getattr(row, name) for row in self._rows]) for name in self._columns]
        taken = record_batch(self._columns, arrays, len(self._rows))
        self._rows, self._size_bytes = [], 0
        return taken

    def _take_batch(
        self, batch: memoryview, header: BatchHeader, wanted: Wanted, aborted: AbortedTransactions | None
    ) -> None:
        _check_header(batch, header)
        if header.is_control:
            if aborted is not None and header.producer_id >= 0:
                self._see_marker(batch, header, aborted)
            return
        if not wanted.touches(header) or _is_aborted(header, aborted):
            return
        body = self._body(batch, header)
        if not 0 <= header.record_count * _RECORD_BYTES_MIN <= len(body):
            raise RefusedError(errors.wrong_count(header.record_count, len(body)))
        rows = list(read_rows(body, header, wanted))
        self._rows += rows
        self._size_bytes += sum(self._size_of(row) for row in rows)

    def _see_marker(self, batch: memoryview, header: BatchHeader, aborted: AbortedTransactions) -> None:
        body = self._body(batch, header)
        try:
            aborted.see_marker(header.producer_id, header.base_offset, body)
        except RecordFormatError as error:
            raise RefusedError(errors.wrong_marker(error)) from None

    def _body(self, batch: memoryview, header: BatchHeader) -> bytes:
        codec = header.attributes & COMPRESSION_MASK
        return unpack(codec, batch[HEADER_BYTES:], self._decompressed_bytes_max)

    def _size_of(self, row: Row) -> int:
        size = self._row_bytes
        if "key" in self._columns:
            size += len(row.key or b"")
        if "value" in self._columns:
            size += len(row.value or b"")
        for name, value in row.headers:
            size += HEADER_FIXED_BYTES + len(name) + len(value or b"")
        return size


def _is_aborted(header: BatchHeader, aborted: AbortedTransactions | None) -> bool:
    if aborted is None or not header.is_transactional:
        return False
    return aborted.covers(header.producer_id, header.base_offset)


def _next_position(view: memoryview, position: int) -> int:
    """The end of the batch at `position`, by its header; BatchError if it isn't a batch."""
    base_offset, batch_length, magic = _PREFIX.unpack_from(view, position)
    if magic != MAGIC:
        raise BatchError(base_offset, position, errors.wrong_magic(magic))
    if LOG_OVERHEAD + batch_length < HEADER_BYTES:
        raise BatchError(base_offset, position, errors.wrong_length(batch_length))
    return position + LOG_OVERHEAD + int(batch_length)


def _check_header(batch: memoryview, header: BatchHeader) -> None:
    computed = int(crc32c(batch[CRC_START:]))
    if computed != header.crc:
        raise RefusedError(errors.wrong_checksum(header.crc, computed))
    if header.last_offset_delta < 0 or not 0 <= header.base_offset < OFFSET_MAX - header.last_offset_delta:
        raise RefusedError(errors.wrong_offsets(header.last_offset_delta))
