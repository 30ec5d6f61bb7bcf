"""Compresses a produced batch with the codec of its topic (compression.type, KIP-390 levels).

A batch that already has the codec is unchanged, even if its level differs. Offsets, times, the producer, its
sequence number and the records never change; only the compression does. This is the only place where a broker
compresses the records of clients.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.compression import compress
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import COMPRESSION_MASK, BatchHeader, Compression, reseal_batch
from barnabas.protocol.varint import Buffer


class StoredCompression(NamedTuple):
    """A codec and its level; None is the codec's default, or a codec without levels."""

    codec: Compression
    level: int | None = None


def recompress(
    body: Buffer, header: BatchHeader, stored: StoredCompression, *, message_bytes_max: int
) -> bytes:
    """The batch of `header` with its uncompressed records in `body`, compressed as `stored` requires.

    Raises ApiError, MESSAGE_TOO_LARGE, if the batch becomes larger than `message_bytes_max`.
    """
    attributes = header.attributes & ~COMPRESSION_MASK | stored.codec
    packed = compress(stored.codec, body, level=stored.level)
    batch = reseal_batch(header._replace(attributes=attributes), packed)
    if len(batch) > message_bytes_max:
        raise ApiError(
            ErrorCode.message_too_large,
            f"The batch has {len(batch)} bytes with compression.type={stored.codec.name.lower()}; "
            f"max.message.bytes is {message_bytes_max}.",
        )
    return batch
