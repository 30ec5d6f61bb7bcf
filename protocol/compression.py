"""The codecs of record batches: gzip, snappy, LZ4 frames (KIP-57) and Zstandard (KIP-110).

Snappy is written in the framing of Java's snappy library, blocks of 32 KiB with their lengths in front,
and read with or without it, as librdkafka writes it bare. LZ4 is written in blocks that don't refer to each
other: Java's clients and Kafka read no others. What a batch may unpack to is bounded, since a few
bytes can stand for gigabytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import cramjam

from barnabas.protocol.record_batch import Compression
from barnabas.protocol.varint import Buffer, RecordFormatError

DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024
"""What a batch unpacks to at most, unless the caller says otherwise: anything larger is refused."""

_FIRST_GUESS_BYTES_MIN = 4096
_FIRST_GUESS_FACTOR = 4
_GROWTH_FACTOR = 4

_SNAPPY_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
"""Magic, version and the oldest version that reads it."""
_SNAPPY_MAGIC_BYTES = 8
_SNAPPY_BLOCK_BYTES = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">i")

_LZ4_HEADER = bytes.fromhex("04224d18 60 40 82")
"""Magic, version 1 with independent blocks and no checksums, blocks of 64 KiB, the checksum of both."""
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_BLOCK_LENGTH = struct.Struct("<I")
_LZ4_UNCOMPRESSED = 0x80000000
_LZ4_END = _LZ4_BLOCK_LENGTH.pack(0)


_LZ4_FAST_LEVEL = 9
"""LZ4's default, by which Kafka means the fast compressor; the other levels are those of its slower one."""


def compress(codec: Compression, data: Buffer, *, level: int | None = None) -> bytes:
    """`data` as a batch's body. `level` is one that Kafka's setting of the codec takes, None its default."""
    if codec is Compression.NONE:
        return bytes(data)
    if codec is Compression.SNAPPY:
        return _compress_snappy(memoryview(data))
    if codec is Compression.LZ4:
        return _compress_lz4(memoryview(data), level)
    if level is None:
        return bytes(_LIBRARIES[codec].compress(data))
    return bytes(_LIBRARIES[codec].compress(data, level=level))


def decompress(codec: Compression, data: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """What a batch's body stands for; RecordFormatError if it is malformed or larger than `bytes_max`."""
    if codec is Compression.NONE:
        return bytes(data)
    try:
        if codec is Compression.SNAPPY:
            return _decompress_snappy(memoryview(data), bytes_max)
        return _decompress_growing(_LIBRARIES[codec].decompress_into, data, bytes_max)
    except cramjam.DecompressionError as error:
        raise RecordFormatError(
            f"{codec.name.lower()} data is malformed or larger than {bytes_max} bytes: {error}"
        ) from error


_LIBRARIES: dict[Compression, Any] = {
    Compression.GZIP: cramjam.gzip,
    Compression.LZ4: cramjam.lz4,
    Compression.ZSTD: cramjam.zstd,
}


def _decompress_growing(
    decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, bytes_max: int
) -> bytes:
    """Into a buffer that grows until the data fits: its size isn't always stated, and never to be trusted."""
    size = min(max(_FIRST_GUESS_BYTES_MIN, _FIRST_GUESS_FACTOR * len(data)), bytes_max)
    while True:
        output = bytearray(size)
        try:
            written = decompress_into(data, output)
        except cramjam.DecompressionError:
            if size == bytes_max:
                raise
            size = min(_GROWTH_FACTOR * size, bytes_max)
        else:
            return bytes(memoryview(output)[:written])


def _compress_lz4(data: memoryview, level: int | None) -> bytes:
    options: dict[str, Any] = {"store_size": False}
    if level is not None and level != _LZ4_FAST_LEVEL:
        options |= {"mode": "high_compression", "compression": level}
    pieces = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = bytes(data[start : start + _LZ4_BLOCK_BYTES])
        block = bytes(cramjam.lz4.compress_block(plain, **options))
        if len(block) < len(plain):
            pieces += (_LZ4_BLOCK_LENGTH.pack(len(block)), block)
        else:
            pieces += (_LZ4_BLOCK_LENGTH.pack(len(plain) | _LZ4_UNCOMPRESSED), plain)
    return b"".join((*pieces, _LZ4_END))


def _compress_snappy(data: memoryview) -> bytes:
    pieces = [_SNAPPY_HEADER]
    for start in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _SNAPPY_BLOCK_BYTES]))
        pieces += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(pieces)


def _decompress_snappy(data: memoryview, bytes_max: int) -> bytes:
    if bytes(data[:_SNAPPY_MAGIC_BYTES]) != _SNAPPY_HEADER[:_SNAPPY_MAGIC_BYTES]:
        return _decompress_snappy_block(data, bytes_max)
    pieces: list[bytes] = []
    position = len(_SNAPPY_HEADER)
    while position < len(data):
        if len(data) - position < _BLOCK_LENGTH.size:
            raise RecordFormatError("A snappy block's length is cut short.")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise RecordFormatError(f"A snappy block states {length} bytes of {len(data) - position}.")
        pieces.append(_decompress_snappy_block(data[position : position + length], bytes_max))
        bytes_max -= len(pieces[-1])
        position += length
    return b"".join(pieces)


def _decompress_snappy_block(block: memoryview, bytes_max: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > bytes_max:
        raise RecordFormatError(f"A snappy block of {size} bytes is larger than the {bytes_max} left.")
    return bytes(cramjam.snappy.decompress_raw(block))
