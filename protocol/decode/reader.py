"""A cursor over a message's body, for the decoders without kio: flexible and non-flexible versions.

No memory is reserved for a claimed size: an array grows with the elements that were read, and a length is
compared with the bytes that are left. Unknown tagged fields are skipped (KIP-482). The decoders know the
fields and their order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, Self, TypeVar
from uuid import UUID

from barnabas.protocol.errors import FrameError
from barnabas.protocol.thread_switch import switch_threads
from barnabas.protocol.varint import Buffer, RecordFormatError, read_unsigned_varint

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT32S_AT_ONCE_BYTES: Final = 16 * 1024
_TOPIC_ID: Final = struct.Struct("16s")
_TOPIC_START: Final = struct.Struct("16sB")
"""A topic's id, and the count of its partitions plus one."""
_NO_TAGS: Final[Mapping[int, Buffer]] = {}

MALFORMED: Final = (IndexError, struct.error, UnicodeDecodeError, RecordFormatError)
"""What reading raises if the bytes are not a body of this version."""

_Reader = TypeVar("_Reader", bound="Reader")
_Body = TypeVar("_Body")
_Element = TypeVar("_Element")


class Reader:
    """Reads versions that are not flexible. A position beyond the end is noticed by the next read."""

    __slots__ = ("frame", "position")

    def __init__(self, frame: Buffer, position: int) -> None:
        self.frame = frame
        self.position = position

    def fields(self, layout: struct.Struct) -> tuple[int, ...]:
        """Numbers and booleans of fixed size, one after the other."""
        values: tuple[int, ...] = layout.unpack_from(self.frame, self.position)
        self.position += layout.size
        return values

    def int32(self) -> int:
        value: int = _INT32.unpack_from(self.frame, self.position)[0]
        self.position += 4
        return value

    def int32s(self, count: int) -> list[int]:
        encoded, values = self.take(count * _INT32.size), list[int]()
        for start in range(0, len(encoded), _INT32S_AT_ONCE_BYTES):
            switch_threads()
            some = _INT32.iter_unpack(encoded[start : start + _INT32S_AT_ONCE_BYTES])
            values += [value for (value,) in some]
        return values

    def topic_id(self) -> UUID:
        encoded: bytes = _TOPIC_ID.unpack_from(self.frame, self.position)[0]
        self.position += 16
        return _topic_id(encoded)

    def topic_start(self) -> tuple[UUID, int]:
        """A topic's id, and the number of its partitions; `FrameError` on null."""
        return self.topic_id(), self.count()

    def nullable_string(self) -> str | None:
        size_bytes = self.string_bytes()
        return None if size_bytes < 0 else str(self.take(size_bytes), "utf-8")

    def count(self) -> int:
        """The number of an array's elements; `FrameError` on null."""
        count = self.length()
        if count < 0:
            raise FrameError("A message has null for an array.")
        return count

    def array(self, read_element: Callable[[Self], _Element]) -> list[_Element]:
        """An array of the results of `read_element`. Most arrays have at most one element."""
        count = self.count()
        if count == 1:
            return [read_element(self)]
        return [read_element(self) for _ in range(count)] if count else []

    def take(self, size_bytes: int) -> Buffer:
        """The next bytes; a view if the frame is one."""
        end = self.position + size_bytes
        if end > len(self.frame):
            raise FrameError(
                f"A message of {len(self.frame)} bytes is too short: a field ends at byte {end}."
            )
        taken = self.frame[self.position : end]
        self.position = end
        return taken

    def string_bytes(self) -> int:
        """The size of a string, -1 for null."""
        (size_bytes,) = _INT16.unpack_from(self.frame, self.position)
        self.position += 2
        return _length(size_bytes)

    def length(self) -> int:
        """The size of bytes or of an array, -1 for null."""
        return _length(self.int32())

    def nullable_bytes(self) -> Buffer | None:
        """A view if the frame is one."""
        size_bytes = self.length()
        return None if size_bytes < 0 else self.take(size_bytes)

    def tagged_fields(self) -> None:
        """Skip the tagged fields; this version has none."""

    def tags(self) -> Mapping[int, Buffer]:
        """The tagged fields at the end of a structure, by their tags."""
        return _NO_TAGS


class FlexibleReader(Reader):
    """Reads compact lengths, which are stored plus one, and skips tagged fields."""

    __slots__ = ()

    def topic_start(self) -> tuple[UUID, int]:
        """See `Reader`. Few topics of a request have 127 partitions or more."""
        encoded, count_and_one = _TOPIC_START.unpack_from(self.frame, self.position)
        if 0 < count_and_one < 0x80:
            self.position += _TOPIC_START.size
            return _topic_id(encoded), count_and_one - 1
        return super().topic_start()

    def nullable_string(self) -> str | None:
        """See `Reader`. Few strings have 127 bytes or more."""
        size_and_one = self.frame[self.position]
        end = self.position + size_and_one
        if 0 < size_and_one < 0x80 and end <= len(self.frame):
            text = str(self.frame[self.position + 1 : end], "utf-8")
            self.position = end
            return text
        if size_and_one == 0:
            self.position += 1
            return None
        return super().nullable_string()

    def count(self) -> int:
        """See `Reader`. Few arrays have 127 elements or more."""
        count_and_one = self.frame[self.position]
        if 0 < count_and_one < 0x80:
            self.position += 1
            return count_and_one - 1
        return super().count()

    def length(self) -> int:
        """See `Reader`. Most lengths have one or two bytes."""
        frame, position = self.frame, self.position
        length_and_one = frame[position]
        if length_and_one < 0x80:
            self.position = position + 1
            return length_and_one - 1
        high = frame[position + 1]
        if high < 0x80:
            self.position = position + 2
            return (high << 7 | length_and_one & 0x7F) - 1
        return self.varint() - 1

    def nullable_bytes(self) -> Buffer | None:
        """See `Reader`. Most bytes of a record are less than 16 kB."""
        frame, start = self.frame, self.position + 1
        size_and_one = frame[start - 1]
        if size_and_one >= 0x80:
            high = frame[start]
            start += 1
            size_and_one = high << 7 | size_and_one & 0x7F
            if high >= 0x80:
                return super().nullable_bytes()
        end = start + size_and_one - 1
        if size_and_one == 0 or end > len(frame):
            return super().nullable_bytes()
        self.position = end
        return frame[start:end]

    def string_bytes(self) -> int:
        """See `Reader`."""
        return self.varint() - 1

    def varint(self) -> int:
        """An unsigned number. Few have more than two bytes."""
        frame, position = self.frame, self.position
        value = frame[position]
        if value < 0x80:
            self.position = position + 1
            return value
        high = frame[position + 1]
        if high < 0x80:
            self.position = position + 2
            return high << 7 | value & 0x7F
        value, self.position = read_unsigned_varint(self.frame, self.position)
        return value

    def tagged_fields(self) -> None:
        """Skip the tagged fields at the end of a structure."""
        if self.frame[self.position] == 0:
            self.position += 1
            return
        for _ in range(self.varint()):
            self.varint()
            self.take(self.varint())

    def tags(self) -> Mapping[int, Buffer]:
        """See `Reader`. Most structures have none."""
        if self.frame[self.position] == 0:
            self.position += 1
            return _NO_TAGS
        found: dict[int, Buffer] = {}
        for _ in range(self.varint()):
            tag = self.varint()
            found[tag] = self.take(self.varint())
        return found


def malformed(subject: str, error: Exception) -> FrameError:
    """The error of a message whose reading has raised one of `MALFORMED`."""
    return FrameError(f"{subject} cannot be read: {error}")


def read_whole(
    subject: str, read_body: Callable[[_Reader, int], _Body], reader: _Reader, version: int
) -> _Body:
    """The result of `read_body`; `FrameError` if the bytes are not a body of this version.

    Surplus bytes after the body are ignored, as in Kafka.
    """
    try:
        body = read_body(reader, version)
    except MALFORMED as error:
        raise malformed(subject, error) from None
    if reader.position > len(reader.frame):
        raise FrameError(
            f"{subject} of {len(reader.frame)} bytes is too short: a field ends at byte {reader.position}."
        )
    return body


def _length(length: int) -> int:
    if length < -1:
        raise FrameError(f"A length in a message is {length}.")
    return length


@lru_cache(maxsize=4096)
def _topic_id(encoded: bytes) -> UUID:
    """Cached, because creating a UUID costs a microsecond, and a broker sees the same few repeatedly."""
    return UUID(bytes=encoded)
