"""The batches that go out to a member: whole ones, or with `share.order=key` reduced ones.

In the order of keys a member acquires only some records of many batches. Such a batch goes out whole if at
least half of its records are delivered; clients skip the others. Otherwise it is reduced to the delivered
records, without compression, unless that is longer than the whole batch. So the records of a batch go out
whole twice at most, and all its reduced deliveries together are as long as its uncompressed records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol.batch_body import batch_body
from barnabas.protocol.record_batch import COMPRESSION_MASK, read_header, reseal_batch
from barnabas.protocol.record_keys import kept_records
from barnabas.protocol.varint import Buffer, RecordFormatError
from barnabas.share.leader.batch_keys import HASHED_BYTES_MAX, HASHED_RECORDS_MAX
from barnabas.storage.reading.log_slice import BatchSlice

Acquired = Sequence[tuple[int, int, int]]
"""Disjoint, ascending: first and last offset, both inclusive, and delivery count."""


class DeliveredBatches(NamedTuple):
    """The batches for the member, and the bytes of their records that it has not acquired."""

    buffers: list[Buffer]
    undelivered_bytes: int


class _Pieces:
    """Batches in the order of their delivery; whole ones that adjoin each other are one piece."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._whole: tuple[memoryview, int, int] | None = None
        """The data of the last piece, with its first and last position there, if it is of whole batches."""

    def add_whole(self, data: memoryview, start: int, end: int) -> None:
        last = self._whole
        if last is not None and last[0] is data and last[2] == start:
            start = last[1]
            self.buffers.pop()
        self.buffers.append(data[start:end])
        self._whole = data, start, end

    def add_reduced(self, batch: bytes) -> None:
        self.buffers.append(batch)
        self._whole = None


def delivered_batches(read: Sequence[BatchSlice], acquired: Acquired) -> DeliveredBatches:
    """The batches that hold acquired records, in the order of the read."""
    pieces = _Pieces()
    undelivered_bytes = 0
    position = 0
    for slice_ in read:
        for base_offset, last_offset, start, end, _ in slice_.batches:
            position, offsets = _acquired_between(acquired, position, base_offset, last_offset)
            if not offsets:
                continue
            reduced, undelivered = _reduced(slice_.data[start:end], base_offset, last_offset, offsets)
            undelivered_bytes += undelivered
            if reduced is None:
                pieces.add_whole(slice_.data, start, end)
            else:
                pieces.add_reduced(reduced)
    return DeliveredBatches(pieces.buffers, undelivered_bytes)


def _acquired_between(
    acquired: Acquired, position: int, base_offset: int, last_offset: int
) -> tuple[int, list[int]]:
    """The acquired offsets of a batch; `position` is that of the first range that may reach it, and then that
    of the first range that may reach the next batch.
    """
    offsets: list[int] = []
    while position < len(acquired) and acquired[position][0] <= last_offset:
        first, last, _ = acquired[position]
        offsets += range(max(first, base_offset), min(last, last_offset) + 1)
        if last > last_offset:
            break
        position += 1
    return position, offsets


def _reduced(
    batch: memoryview, base_offset: int, last_offset: int, offsets: Sequence[int]
) -> tuple[bytes | None, int]:
    """The batch with these records only, None if it goes out whole; and its bytes that are not delivered."""
    if len(offsets) == last_offset - base_offset + 1:
        return None, 0
    header = read_header(batch)
    missing_count = header.record_count - len(offsets)
    undelivered_bytes = max(missing_count, 0) * len(batch) // header.record_count
    if missing_count <= len(offsets) or header.record_count > HASHED_RECORDS_MAX:
        return None, undelivered_bytes
    try:
        body = batch_body(batch, header, decompressed_bytes_max=HASHED_BYTES_MAX)
        kept = kept_records(body, header.record_count, [offset - base_offset for offset in offsets])
    except RecordFormatError:  # Too large, or compaction has removed a record meanwhile.
        return None, undelivered_bytes
    plain = header._replace(attributes=header.attributes & ~COMPRESSION_MASK, record_count=len(offsets))
    reduced = reseal_batch(plain, kept)
    return (None, undelivered_bytes) if len(reduced) >= len(batch) else (reduced, 0)
