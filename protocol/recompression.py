"""Produced batches in the codec that their topic is stored with (compression.type, KIP-390 levels).

A batch that has the codec already stays as it is, whatever level it was made with. Offsets, times, the
producer and its sequence stay in any case, and so do the records: only how they are packed changes. This is
the one place where a broker packs what clients produce.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol.batch_body import CHECKED_BYTES_MAX, batch_body
from barnabas.protocol.compression import compress
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import (
    COMPRESSION_MASK,
    BatchHeader,
    Compression,
    ProducedBatch,
    read_header,
    seal_batch,
)
from barnabas.protocol.varint import Buffer, RecordFormatError


class StoredCompression(NamedTuple):
    """A codec, and how hard it tries: None is the codec's own choice, as it is for those that have none."""

    codec: Compression
    level: int | None = None


def recompress(
    records: Buffer, batches: Sequence[ProducedBatch], stored: StoredCompression, *, message_bytes_max: int
) -> tuple[Buffer, Sequence[ProducedBatch]]:
    """`records` and the batches that `validate_produced` found in them, the batches packed as `stored` says.

    Raises ApiError: INVALID_RECORD for records that cannot be unpacked, MESSAGE_TOO_LARGE if a batch has
    become larger than `message_bytes_max`.
    """
    if all(header.compression is stored.codec for _, header in batches):
        return records, batches
    pieces: list[bytes] = []
    repacked: list[ProducedBatch] = []
    position = 0
    for start, header in batches:
        batch = _repack(memoryview(records)[start : start + header.size_bytes], header, stored)
        if len(batch) > message_bytes_max:
            raise ApiError(
                ErrorCode.message_too_large,
                f"The batch has {len(batch)} bytes with compression.type={stored.codec.name.lower()}; "
                f"max.message.bytes is {message_bytes_max}.",
            )
        pieces.append(batch)
        repacked.append(ProducedBatch(position, read_header(batch)))
        position += len(batch)
    return b"".join(pieces), repacked


def _repack(batch: Buffer, header: BatchHeader, stored: StoredCompression) -> bytes:
    if header.compression is stored.codec:
        return bytes(batch)
    try:
        body = batch_body(batch, header, decompressed_bytes_max=CHECKED_BYTES_MAX)
    except RecordFormatError as error:
        raise ApiError(ErrorCode.invalid_record, f"The records cannot be read: {error}") from error
    return seal_batch(
        compress(stored.codec, body, level=stored.level),
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes & ~COMPRESSION_MASK | stored.codec,
        last_offset_delta=header.last_offset_delta,
        base_timestamp_ms=header.base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=header.record_count,
    )
