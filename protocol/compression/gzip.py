"""gzip with one member, which is the form that all clients write.

Java's clients would read several members; librdkafka reads only the first. Zeros after it harm no client.
"""

from __future__ import annotations

import zlib
from typing import Final

from barnabas.protocol.compression.bounds import PIECE_BYTES, LargerThanBound
from barnabas.protocol.varint import Buffer, RecordFormatError

_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS


def unpack(data: Buffer, bytes_max: int) -> bytearray:
    stream = zlib.decompressobj(_GZIP_WBITS)
    output = bytearray()
    packed: Buffer = data
    try:
        while not stream.eof:
            piece = stream.decompress(packed, PIECE_BYTES)
            packed = stream.unconsumed_tail
            output += piece
            if len(output) > bytes_max:
                raise LargerThanBound(bytes_max)
            if not piece and not packed and not stream.eof:
                raise RecordFormatError("gzip data is cut short.")
    except zlib.error as error:
        raise RecordFormatError(f"gzip data is malformed: {error}") from error
    if stream.unused_data.strip(b"\0"):
        raise RecordFormatError(f"gzip data has {len(stream.unused_data)} bytes after its end.")
    return output
