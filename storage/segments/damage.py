"""Reads a segment past its damaged batches, so that the good batches on both sides remain readable.

The size in a batch's header gives the position of the next batch. Behind a damaged size the indexes give the
position of a later batch. The bytes in between are not searched, because a record's bytes could look like a
batch. The reader decides about the meaning of the damage. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import merge
from typing import NamedTuple

from barnabas.protocol.record_batch import HEADER, HEADER_BYTES, BatchHeader
from barnabas.storage.filesystem import Readable
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.share_index import ShareIndex
from barnabas.storage.segments.segment_scan import CHUNK_BYTES, ScannedBatch, scan_segment, why_not_good

Boundaries = Callable[[int], Iterable[int]]
"""Returns the positions behind the given one at which batches may begin, the nearest first."""


class Damage(NamedTuple):
    """Bytes of a segment in [position, end) that are not good batches.

    `is_whole` if they may be one batch, by the size in its header.
    """

    position: int
    end: int
    reason: str
    is_whole: bool


def boundaries_of(offsets: OffsetIndex, shares: ShareIndex) -> Boundaries:
    """The beginnings of batches that a segment's indexes know."""
    return partial(_indexed_behind, offsets, shares)


def _indexed_behind(offsets: OffsetIndex, shares: ShareIndex, position: int) -> Iterator[int]:
    return merge([shares.end_of_run(position)], offsets.positions_behind(position))


def scan_past_damage(
    file: Readable,
    position: int,
    size_bytes: int,
    *,
    offsets: range,
    boundaries: Boundaries,
    checked_from: int = 0,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[ScannedBatch | Damage]:
    """The good batches from `position` to the segment's end, as `scan_segment`, and the damage."""
    while position < size_bytes:
        for batch in scan_segment(
            file, position, size_bytes, offsets=offsets, checked_from=checked_from, chunk_bytes=chunk_bytes
        ):
            position += len(batch.data)
            offsets = range(batch.header.last_offset + 1, offsets.stop)
            yield batch
        if position < size_bytes:
            end = _next_good(file, position, size_bytes, offsets, boundaries)
            reason = why_not_good(file, position, size_bytes, offsets)
            yield Damage(position, end, reason, _stated_end(file, position) == end)
            position = end


def _next_good(file: Readable, position: int, size_bytes: int, offsets: range, boundaries: Boundaries) -> int:
    """The position of the next good batch behind the bad one at `position`; the segment's end without any."""
    for candidate in _candidates(file, position, boundaries):
        if not position < candidate < size_bytes:
            continue
        found = scan_segment(
            file, candidate, size_bytes, offsets=offsets, checked_from=0, chunk_bytes=HEADER_BYTES
        )
        if next(found, None) is not None:
            return candidate
    return size_bytes


def _candidates(file: Readable, position: int, boundaries: Boundaries) -> Iterator[int]:
    """Possible positions, the nearest first, because a damaged size may point behind other good batches."""
    stated = _stated_end(file, position)
    return merge([] if stated is None else [stated], boundaries(position))


def _stated_end(file: Readable, position: int) -> int | None:
    """The end of the batch at `position` by its header; None if that size is impossible."""
    data = file.read(position, HEADER_BYTES)
    if len(data) < HEADER_BYTES:
        return None
    size_bytes = BatchHeader._make(HEADER.unpack(data)).size_bytes
    return position + size_bytes if size_bytes >= HEADER_BYTES else None
