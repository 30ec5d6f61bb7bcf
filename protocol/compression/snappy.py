"""Snappy in the framing of Java's snappy library: blocks with their lengths in front.

Reading also accepts snappy without this framing, which librdkafka writes.
"""

from __future__ import annotations

import struct
from typing import Final

import cramjam

from barnabas.protocol.compression.bounds import LargerThanBound
from barnabas.protocol.varint import Buffer, RecordFormatError

_HEADER: Final = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
"""Magic, version and the oldest version that reads it."""
_MAGIC_BYTES: Final = 8
_BLOCK_BYTES: Final = 32 * 1024
_BLOCK_LENGTH: Final = struct.Struct(">i")


def compress(data: memoryview) -> bytes:
    pieces = [_HEADER]
    for start in range(0, len(data), _BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _BLOCK_BYTES]))
        pieces += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(pieces)


def unpack(data: Buffer, bytes_max: int) -> bytearray:
    view, output = memoryview(data), bytearray()
    if bytes(view[:_MAGIC_BYTES]) != _HEADER[:_MAGIC_BYTES]:
        _unpack_block(view, output, bytes_max)
        return output
    position = len(_HEADER)
    while position < len(view):
        if len(view) - position < _BLOCK_LENGTH.size:
            raise RecordFormatError("A snappy block's length is cut short.")
        (length,) = _BLOCK_LENGTH.unpack_from(view, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(view) - position:
            raise RecordFormatError(f"A snappy block states {length} bytes of {len(view) - position}.")
        _unpack_block(view[position : position + length], output, bytes_max)
        position += length
    return output


def _unpack_block(block: memoryview, output: bytearray, bytes_max: int) -> None:
    try:
        if len(output) + cramjam.snappy.decompress_raw_len(block) > bytes_max:
            raise LargerThanBound(bytes_max)
        output += cramjam.snappy.decompress_raw(block)
    except cramjam.DecompressionError as error:
        raise RecordFormatError(f"snappy data is malformed: {error}") from error
