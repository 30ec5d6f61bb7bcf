"""The codecs of record batches: gzip, snappy, LZ4 frames (KIP-57) and Zstandard (KIP-110).

The decompressed size of a batch is bounded (`bounds`). `unpack` is for batches that clients produce: it
refuses data that ordinary clients cannot read, such as LZ4 blocks that refer to each other. `unpack_stored`
is for batches in a log: it also reads data that an earlier version, or Apache Kafka, has accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import cramjam

from barnabas.protocol.compression import gzip, lz4, snappy, zstd
from barnabas.protocol.compression.bounds import DECOMPRESSED_BYTES_MAX, LargerThanBound, refusal, room
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.varint import Buffer, RecordFormatError

__all__ = ["DECOMPRESSED_BYTES_MAX", "LargerThanBound", "compress", "decompress", "unpack", "unpack_stored"]

_LIBRARIES: Final[dict[Compression, Any]] = {Compression.GZIP: cramjam.gzip, Compression.ZSTD: cramjam.zstd}

_TOLERANT_LIBRARIES: Final[dict[Compression, Any]] = {
    Compression.GZIP: cramjam.gzip,
    Compression.LZ4: cramjam.lz4,
}
"""These also read several members, blocks that refer to each other, and data followed by other bytes."""

_UNPACKERS: Final[dict[Compression, Callable[[Buffer, int], Buffer]]] = {
    Compression.GZIP: gzip.unpack,
    Compression.SNAPPY: snappy.unpack,
    Compression.LZ4: lz4.unpack,
    Compression.ZSTD: zstd.unpack,
}


def compress(codec: Compression, data: Buffer, *, level: int | None = None) -> bytes:
    """The body of a batch.

    `level` is a level of Kafka's setting for the codec, None for the codec's default.
    """
    if codec is Compression.NONE:
        return bytes(data)
    if codec is Compression.SNAPPY:
        return snappy.compress(memoryview(data))
    if codec is Compression.LZ4:
        return lz4.compress(memoryview(data), level)
    if level is None:
        return bytes(_LIBRARIES[codec].compress(data))
    return bytes(_LIBRARIES[codec].compress(data, level=level))


def unpack(codec: Compression, data: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """The decompressed body of a batch; `data` itself if it is not compressed.

    RecordFormatError if it is malformed, LargerThanBound if it is larger than `bytes_max`.
    """
    return data if codec is Compression.NONE else _UNPACKERS[codec](data, bytes_max)


def unpack_stored(codec: Compression, data: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """Like `unpack`, for a batch in a log: accepts everything that the codec's library can read."""
    try:
        return unpack(codec, data, bytes_max=bytes_max)
    except LargerThanBound:
        raise
    except RecordFormatError:
        if codec not in _TOLERANT_LIBRARIES:
            raise
    output = room(bytes_max)
    try:
        written = _TOLERANT_LIBRARIES[codec].decompress_into(data, output)
    except cramjam.DecompressionError as error:
        raise refusal(error, codec.name, bytes_max) from error
    return output[:written]


def decompress(codec: Compression, data: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """The result of `unpack_stored` as bytes."""
    return bytes(unpack_stored(codec, data, bytes_max=bytes_max))
