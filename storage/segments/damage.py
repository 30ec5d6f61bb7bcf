"""Reading a segment past its bad batches: what is good on either side of them still serves.

A batch states where the next one begins, so where that is damaged the way is lost; it is found again by the
offset index, whose entries are positions of batches. Nothing is guessed from the bytes in between, in which a
record could pass for a batch. Whoever reads decides what a bad batch means; this changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import NamedTuple

from barnabas.protocol.record_batch import HEADER, HEADER_BYTES, BatchHeader
from barnabas.storage.filesystem import Readable
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.share_index import ShareIndex
from barnabas.storage.segments.segment_scan import CHUNK_BYTES, ScannedBatch, scan_segment, why_not_good

Boundaries = Callable[[int], Iterable[int]]
"""Positions from the given one on at which batches may begin, the nearest first."""


class Damage(NamedTuple):
    """Bytes of a segment from `position` on, and below `end`, that are no good batches.

    `is_whole` if they may be one batch, by the size that it states.
    """

    position: int
    end: int
    reason: str
    is_whole: bool


def boundaries_of(offsets: OffsetIndex, shares: ShareIndex) -> Boundaries:
    """What a segment's indexes know of where its batches begin."""

    def behind(position: int) -> Iterator[int]:
        return merge([shares.end_of_run(position)], offsets.positions_behind(position))

    return behind


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
    """The good batches from `position` to the segment's end, as `scan_segment`, and what is damaged."""
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
    """Where the next good batch behind the bad one at `position` begins; the segment's end without any."""
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
    """The nearest first: a size that is damaged may lead to a batch that begins behind other good ones."""
    stated = _stated_end(file, position)
    return merge([] if stated is None else [stated], boundaries(position))


def _stated_end(file: Readable, position: int) -> int | None:
    """Where the batch at `position` says that it ends; None if it says nothing that can be."""
    data = file.read(position, HEADER_BYTES)
    if len(data) < HEADER_BYTES:
        return None
    size_bytes = BatchHeader._make(HEADER.unpack(data)).size_bytes
    return position + size_bytes if size_bytes >= HEADER_BYTES else None
