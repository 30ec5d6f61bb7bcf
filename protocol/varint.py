"""Variable-length integers of Kafka's record formats (protocol guide, "Protocol Primitive Types").

There are two encodings, with seven bits in each byte, least significant first: unsigned (compact lengths,
tags, the frame of metadata records) and zigzag (lengths and deltas inside a version 2 record). The read
functions return the value and the position after it. A value that is cut short or longer than its type raises
`RecordFormatError`. Small values, which are by far the most frequent, come from a table. `schema` encodes
whole fields.
"""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview

_UNSIGNED_BYTES_MAX = 5
_ZIGZAG_BYTES_MAX = 10
_TABLE_SIZE = 1024


class RecordFormatError(Exception):
    """Bytes that do not have the expected format; the reader decides how to continue."""


class NewerVersion(RecordFormatError):  # noqa: N818  named as the condition
    """A complete record of a newer broker, whose meaning is unknown."""


def _encode(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_TABLE = tuple(_encode(value) for value in range(_TABLE_SIZE))


def unsigned_varint(value: int) -> bytes:
    """The unsigned encoding of `value`, which must not be negative."""
    assert value >= 0, value
    return _TABLE[value] if value < _TABLE_SIZE else _encode(value)


def zigzag_varint(value: int) -> bytes:
    """The zigzag encoding of `value`, a signed integer of up to 64 bits."""
    folded = value << 1 if value >= 0 else ~(value << 1)
    return _TABLE[folded] if folded < _TABLE_SIZE else _encode(folded)


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """The unsigned value of up to 32 bits at `position`, and the position after it."""
    return _read(buffer, position, _UNSIGNED_BYTES_MAX)


def read_zigzag_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """The signed value of up to 64 bits at `position`, and the position after it."""
    try:
        folded, position = buffer[position], position + 1
        if folded >= 0x80:  # two bytes are handled here, because a walk reads four of these per record
            byte = buffer[position]
            if byte < 0x80:
                folded, position = folded & 0x7F | byte << 7, position + 1
            else:
                folded, position = _read(buffer, position - 1, _ZIGZAG_BYTES_MAX)
    except IndexError:
        raise RecordFormatError("A variable-length integer is cut short.") from None
    return (folded >> 1) ^ -(folded & 1), position


def _read(buffer: Buffer, position: int, bytes_max: int) -> tuple[int, int]:
    value = 0
    try:
        if buffer[position] < 0x80:
            return buffer[position], position + 1
        for shift in range(0, 7 * bytes_max, 7):
            byte = buffer[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
    except IndexError:
        raise RecordFormatError("A variable-length integer is cut short.") from None
    raise RecordFormatError(f"A variable-length integer takes more than {bytes_max} bytes.")
