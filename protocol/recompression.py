"""A produced batch in the codec that its topic is stored with (compression.type, KIP-390 levels).

A batch that has the codec already stays as it is, whatever level it was made with. Offsets, times, the
producer and its sequence stay in any case, and so do the records: only how they are packed changes. This is
the one place where a broker packs what clients produce.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.compression import compress
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import COMPRESSION_MASK, BatchHeader, Compression, reseal_batch
from barnabas.protocol.varint import Buffer


class StoredCompression(NamedTuple):
    """A codec, and how hard it tries: None is the codec's own choice, as it is for those that have none."""

    codec: Compression
    level: int | None = None


def recompress(
    body: Buffer, header: BatchHeader, stored: StoredCompression, *, message_bytes_max: int
) -> bytes:
    """The batch of `header` with its records, which `body` has uncompressed, packed as `stored` says.

    Raises ApiError, MESSAGE_TOO_LARGE, if the batch has become larger than `message_bytes_max`.
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
