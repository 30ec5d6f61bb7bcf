"""Zstandard (RFC 8878): decompressed in one step, into memory of the size that the frame states.

cramjam cannot decompress it in pieces. The largest size of each block is in the block's header.
"""

from __future__ import annotations

from typing import Final

import cramjam

from barnabas.protocol.compression.bounds import refusal, room
from barnabas.protocol.varint import Buffer

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_BLOCK_BYTES_MAX: Final = 128 * 1024
_BLOCK_HEADER_BYTES: Final = 3
_CHECKSUM_BYTES: Final = 4
_FRAME_BYTES_MIN: Final = 9
_RLE, _COMPRESSED = 1, 2
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_SHORT_SIZE_OFFSET: Final = 256
"""Added to a content size of two bytes."""


def unpack(data: Buffer, bytes_max: int) -> memoryview:
    output = room(min(_size_max(memoryview(data), bytes_max), bytes_max))
    try:
        written = cramjam.zstd.decompress_into(data, output)
    except cramjam.DecompressionError as error:
        raise refusal(error, "zstd", len(output)) from error
    return output[:written]


def _size_max(data: memoryview, bytes_max: int) -> int:
    """The largest decompressed size; above `bytes_max` if it may be larger, or if the frame is invalid."""
    if bytes(data[: len(_MAGIC)]) != _MAGIC or len(data) < _FRAME_BYTES_MIN:
        return bytes_max + 1
    descriptor = data[len(_MAGIC)]
    is_single, has_checksum = bool(descriptor & 0x20), bool(descriptor & 0x04)
    start = len(_MAGIC) + 1 + (not is_single) + _DICTIONARY_ID_BYTES[descriptor & 3]
    size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or int(is_single)
    content_size = int.from_bytes(data[start : start + size_bytes], "little")
    blocks_size, end = _walk_blocks(data, start + size_bytes, bytes_max)
    if end + _CHECKSUM_BYTES * has_checksum != len(data):
        return bytes_max + 1
    if not size_bytes:
        return blocks_size
    return content_size + (_SHORT_SIZE_OFFSET if size_bytes == 2 else 0)


def _walk_blocks(data: memoryview, position: int, bytes_max: int) -> tuple[int, int]:
    """The largest decompressed size of the blocks, and the end of the last one. Stops above `bytes_max`."""
    size, is_last = 0, False
    while not is_last and size <= bytes_max and len(data) - position >= _BLOCK_HEADER_BYTES:
        header = int.from_bytes(data[position : position + _BLOCK_HEADER_BYTES], "little")
        is_last, kind, block_bytes = bool(header & 1), header >> 1 & 3, header >> 3
        size += _BLOCK_BYTES_MAX if kind == _COMPRESSED else block_bytes
        position += _BLOCK_HEADER_BYTES + (1 if kind == _RLE else block_bytes)
    return size, position
