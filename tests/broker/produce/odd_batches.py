"""Batches with a valid header and checksum, but with a body that contradicts the header."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX
from barnabas.protocol.record_batch import Compression, seal_batch

_ZSTD_BLOCK_BYTES: Final = 128 * 1024
_ZSTD_RUN: Final = (_ZSTD_BLOCK_BYTES << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
"""A block of zeros."""
_ZSTD_END: Final = b"\1\0\0"
ZSTD_BOMB: Final = (
    b"\x28\xb5\x2f\xfd\0\x48" + _ZSTD_RUN * (DECOMPRESSED_BYTES_MAX // _ZSTD_BLOCK_BYTES + 1) + _ZSTD_END
)
"""Eight kilobytes that decompress to more than the bound of a batch."""


def batch_of(body: bytes, record_count: int = 1, **header: Any) -> bytes:
    """A batch with any body; `header` has the fields that differ from a plain batch's."""
    fields: dict[str, Any] = {
        "base_offset": 0,
        "leader_epoch": -1,
        "attributes": 0,
        "last_offset_delta": record_count - 1,
        "base_timestamp_ms": 0,
        "max_timestamp_ms": 0,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": record_count,
    }
    return seal_batch(body, **(fields | header))


def compressed(packed: bytes, codec: Compression, record_count: int = 1) -> bytes:
    """A batch with a body that its header calls compressed."""
    return batch_of(packed, record_count, attributes=codec)
