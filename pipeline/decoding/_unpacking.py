"""Unpacks the records of a batch, for both decoders; and their internal error for a refused batch."""

from __future__ import annotations

from barnabas.pipeline.decoding import errors
from barnabas.protocol.compression import decompress
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.varint import Buffer, RecordFormatError


class RefusedError(Exception):
    """The reason why a batch cannot be decoded, for a `BatchError`."""


def unpack(codec: int, packed: Buffer, bytes_max: int) -> bytes:
    """The unpacked bytes of `packed`, a batch without its header. RefusedError if malformed or too large."""
    if codec > Compression.ZSTD:
        raise RefusedError(errors.wrong_codec(codec))
    if codec and packed:
        try:
            return decompress(Compression(codec), packed, bytes_max=bytes_max)
        except RecordFormatError as error:
            raise RefusedError(errors.wrong_body(error)) from None
    if len(packed) > bytes_max:
        raise RefusedError(errors.too_large(len(packed), bytes_max))
    return bytes(packed)
