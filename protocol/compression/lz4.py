"""LZ4 frames (KIP-57), block by block.

Blocks must not refer to each other, because Java's clients and Kafka cannot read those. Written frames have
blocks of 64 KiB without checksums, like those of Java's clients. The library reads frames with checksums, and
verifies them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import cramjam

from barnabas.protocol.compression.bounds import LargerThanBound, refusal, room
from barnabas.protocol.varint import Buffer, RecordFormatError

_HEADER: Final = bytes.fromhex("04224d18 60 40 82")
"""Magic, version 1 with independent blocks and no checksums, blocks of 64 KiB, the checksum of both."""
_BLOCK_BYTES: Final = 64 * 1024
_BLOCK_LENGTH: Final = struct.Struct("<I")
_UNCOMPRESSED: Final = 0x80000000
_END: Final = _BLOCK_LENGTH.pack(0)
_FAST_LEVEL: Final = 9
"""LZ4's default, which selects the fast compressor in Kafka; the other levels select the slower one."""

_MAGIC_BYTES: Final = 4
_VERSION_MASK, _VERSION = 0xC0, 0x40
_INDEPENDENT_FLAG: Final = 0x20
_BLOCK_CHECKSUM_FLAG: Final = 0x10
_CONTENT_SIZE_FLAG: Final = 0x08
_CONTENT_CHECKSUM_FLAG: Final = 0x04
_CONTENT_SIZE_BYTES: Final = 8
_CHECKSUM_BYTES: Final = 4
_BLOCK_BYTES_BY_ID: Final = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_GROWTH_MAX: Final = 255
"""A byte of a block decompresses to at most this many bytes."""


def compress(data: memoryview, level: int | None) -> bytes:
    options: dict[str, Any] = {"store_size": False}
    if level is not None and level != _FAST_LEVEL:
        options |= {"mode": "high_compression", "compression": level}
    pieces = [_HEADER]
    for start in range(0, len(data), _BLOCK_BYTES):
        plain = bytes(data[start : start + _BLOCK_BYTES])
        block = bytes(cramjam.lz4.compress_block(plain, **options))
        if len(block) < len(plain):
            pieces += (_BLOCK_LENGTH.pack(len(block)), block)
        else:
            pieces += (_BLOCK_LENGTH.pack(len(plain) | _UNCOMPRESSED), plain)
    return b"".join((*pieces, _END))


def unpack(data: Buffer, bytes_max: int) -> memoryview:
    view = memoryview(data)
    frame = _read_header(view)
    blocks = list(_blocks(view, frame))
    output = room(min(sum(size for _, size, _ in blocks), bytes_max))
    if not frame.has_checksums:
        return output[: _unpack_blocks(blocks, output)]
    try:
        return output[: cramjam.lz4.decompress_into(data, output)]
    except cramjam.DecompressionError as error:
        raise refusal(error, "LZ4", len(output)) from error


class _Frame:
    """The fields of a frame's header."""

    def __init__(self, flags: int, block_bytes_max: int, first_block: int) -> None:
        self.has_block_checksums = bool(flags & _BLOCK_CHECKSUM_FLAG)
        self.has_content_checksum = bool(flags & _CONTENT_CHECKSUM_FLAG)
        self.has_checksums = self.has_block_checksums or self.has_content_checksum
        self.block_bytes_max = block_bytes_max
        self.first_block = first_block


_Block = tuple[memoryview, int, bool]
"""Its bytes, its largest decompressed size, and whether it is compressed."""


def _read_header(view: memoryview) -> _Frame:
    if len(view) < len(_HEADER) or bytes(view[:_MAGIC_BYTES]) != _HEADER[:_MAGIC_BYTES]:
        raise RecordFormatError("LZ4 data has no frame.")
    flags, sizes = view[_MAGIC_BYTES], view[_MAGIC_BYTES + 1]
    block_bytes_max = _BLOCK_BYTES_BY_ID.get(sizes >> 4)
    if flags & _VERSION_MASK != _VERSION or flags & 0x03 or sizes & 0x8F or block_bytes_max is None:
        raise RecordFormatError("LZ4 data has a frame of an unknown kind.")
    if not flags & _INDEPENDENT_FLAG:
        raise RecordFormatError("LZ4 data has blocks that refer to each other, which Kafka does not read.")
    end = _MAGIC_BYTES + 2 + (_CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE_FLAG else 0)
    if len(view) <= end or view[end] != _descriptor_checksum(bytes(view[_MAGIC_BYTES:end])):
        raise RecordFormatError("LZ4 data has a frame header with a wrong checksum.")
    return _Frame(flags, block_bytes_max, end + 1)


def _blocks(view: memoryview, frame: _Frame) -> Iterator[_Block]:
    position = frame.first_block
    while True:
        if len(view) - position < _BLOCK_LENGTH.size:
            raise RecordFormatError("LZ4 data is cut short.")
        (length,) = _BLOCK_LENGTH.unpack_from(view, position)
        position += _BLOCK_LENGTH.size
        if not length:
            break
        is_compressed, length = not length & _UNCOMPRESSED, length & ~_UNCOMPRESSED
        if length > min(frame.block_bytes_max, len(view) - position):
            raise RecordFormatError(f"An LZ4 block states {length} bytes.")
        size_max = min(_GROWTH_MAX * length, frame.block_bytes_max) if is_compressed else length
        yield view[position : position + length], size_max, is_compressed
        position += length + _CHECKSUM_BYTES * frame.has_block_checksums
    if position + _CHECKSUM_BYTES * frame.has_content_checksum != len(view):
        raise RecordFormatError("LZ4 data has bytes after its end, or is cut short.")


def _unpack_blocks(blocks: list[_Block], output: memoryview) -> int:
    """Returns the size written."""
    written = 0
    for data, size_max, is_compressed in blocks:
        free = output[written : written + size_max]
        try:
            if is_compressed:
                written += cramjam.lz4.decompress_block_into(data, free, output_len=len(free))
                continue
        except cramjam.DecompressionError as error:
            if len(free) == size_max:
                raise RecordFormatError(f"LZ4 data is malformed: {error}") from error
            raise LargerThanBound(len(output)) from error
        if len(data) > len(free):
            raise LargerThanBound(len(output))
        free[:] = data
        written += len(data)
    return written


def _descriptor_checksum(descriptor: bytes) -> int:
    """The second byte of XXH32 of less than 16 bytes (xxHash specification), which ends a frame's header."""
    prime_1, prime_2, prime_3, prime_4, prime_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    mask = 0xFFFFFFFF
    code = prime_5 + len(descriptor)
    words = len(descriptor) // 4 * 4
    for start in range(0, words, 4):
        code = code + int.from_bytes(descriptor[start : start + 4], "little") * prime_3 & mask
        code = (code << 17 | code >> 15) * prime_4 & mask
    for byte in descriptor[words:]:
        code = code + byte * prime_5 & mask
        code = (code << 11 | code >> 21) * prime_1 & mask
    code = (code ^ code >> 15) * prime_2 & mask
    code = (code ^ code >> 13) * prime_3 & mask
    return (code ^ code >> 16) >> 8 & 0xFF
