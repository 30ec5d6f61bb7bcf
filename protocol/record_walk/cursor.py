"""Reads the records of a batch's body one after the other, field by field, in Python.

The layout of a record; lengths and deltas are zigzag varints, and a length of -1 means null:

    length, attributes i8, timestamp_delta, offset_delta, key length and key, value length and value,
    header count, then for each header: length and name, length and value

All integers have 32 bits, except the timestamp delta, which has 64. `_reading` has the same functions in C.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.record_walk import faults
from barnabas.protocol.varint import Buffer

_INT32: Final = (28, 0x0F)
_INT64: Final = (63, 0x01)
"""The shift of an integer's last possible byte, in bits, and the largest value of that byte."""


class RecordFaultError(Exception):
    """A record is malformed; `fault` is a number of `faults`."""

    def __init__(self, fault: int) -> None:
        super().__init__(fault)
        self.fault = fault


class BytesCursor:
    """Reads fields of `data` from `position` up to `end`. Raises RecordFaultError."""

    __slots__ = ("data", "end", "position")

    def __init__(self, data: Buffer, position: int, end: int) -> None:
        self.data, self.position, self.end = data, position, end

    @property
    def left(self) -> int:
        return self.end - self.position

    def int32(self) -> int:
        position = self.position
        if position < self.end and self.data[position] < 0x80:
            self.position = position + 1
            folded = self.data[position]
            return (folded >> 1) ^ -(folded & 1)
        return self._varint(*_INT32)

    def int64(self) -> int:
        return self._varint(*_INT64)

    def skip(self) -> int:
        """Skip a byte string and return its length; -1 for null."""
        length = self.int32()
        if length < 0:
            return -1
        if length > self.end - self.position:
            raise RecordFaultError(faults.FIELD_CUT)
        self.position += length
        return length

    def nullable(self) -> bytes | None:
        length = self.skip()
        return None if length < 0 else bytes(self.data[self.position - length : self.position])

    def header_count(self) -> int:
        count = self.int32()
        if not 0 <= count <= self.left:
            raise RecordFaultError(faults.FIELD_CUT)
        return count

    def headers(self) -> list[tuple[bytes, bytes | None]]:
        """The headers' names and values. They end the record."""
        headers = [(self._header_name(), self.nullable()) for _ in range(self.header_count())]
        self.finish()
        return headers

    def skip_headers(self) -> None:
        for _ in range(self.header_count()):
            if self.skip() < 0:
                raise RecordFaultError(faults.HEADER_WITHOUT_NAME)
            self.skip()
        self.finish()

    def _header_name(self) -> bytes:
        name = self.nullable()
        if name is None:
            raise RecordFaultError(faults.HEADER_WITHOUT_NAME)
        return name

    def finish(self) -> None:
        if self.position != self.end:
            raise RecordFaultError(faults.BYTES_BEHIND)

    def _varint(self, last_shift: int, last_byte_max: int) -> int:
        value = 0
        for shift in range(0, last_shift + 1, 7):
            if self.position >= self.end:
                raise RecordFaultError(faults.FIELD_CUT)
            byte = self.data[self.position]
            self.position += 1
            if shift == last_shift and byte > last_byte_max:
                break
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise RecordFaultError(faults.INTEGER_TOO_LONG)


class RecordCursor(BytesCursor):
    """A cursor at the key of one record of a batch's body; the next record starts at `end`."""

    __slots__ = ("content", "offset_delta", "rest", "timestamp_delta_ms")

    def __init__(self, body: BytesCursor) -> None:
        """Reads the start of the next record of `body`."""
        if not body.left:
            raise RecordFaultError(faults.RECORD_MISSING)
        length = body.int32()
        if not 0 <= length <= body.left:
            raise RecordFaultError(faults.FIELD_CUT)
        self.content = body.position
        super().__init__(body.data, body.position + 1, body.position + length)
        body.position = self.end
        self.timestamp_delta_ms = self.int64()
        self.rest = self.position
        self.offset_delta = self.int32()
