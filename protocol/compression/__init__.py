"""The codecs of record batches: gzip, snappy, LZ4 frames (KIP-57) and Zstandard (KIP-110).

What a batch may unpack to is bounded (`bounds`). A codec refuses data that ordinary clients cannot read,
although Kafka's own library reads it: bytes behind the end, LZ4 with a wrong checksum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import cramjam

from barnabas.protocol.compression import gzip, lz4, snappy, zstd
from barnabas.protocol.compression.bounds import DECOMPRESSED_BYTES_MAX, LargerThanBound
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.varint import Buffer

__all__ = ["DECOMPRESSED_BYTES_MAX", "LargerThanBound", "compress", "decompress", "unpack"]

_LIBRARIES: Final[dict[Compression, Any]] = {Compression.GZIP: cramjam.gzip, Compression.ZSTD: cramjam.zstd}

_UNPACKERS: Final[dict[Compression, Callable[[Buffer, int], Buffer]]] = {
    Compression.GZIP: gzip.unpack,
    Compression.SNAPPY: snappy.unpack,
    Compression.LZ4: lz4.unpack,
    Compression.ZSTD: zstd.unpack,
}


def compress(codec: Compression, data: Buffer, *, level: int | None = None) -> bytes:
    """`data` as a batch's body. `level` is one that Kafka's setting of the codec takes, None its default."""
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
    """What a batch's body stands for; `data` itself if it isn't compressed.

    RecordFormatError if it is malformed, LargerThanBound if it is larger than `bytes_max`.
    """
    return data if codec is Compression.NONE else _UNPACKERS[codec](data, bytes_max)


def decompress(codec: Compression, data: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """The same as bytes."""
    return bytes(unpack(codec, data, bytes_max=bytes_max))
