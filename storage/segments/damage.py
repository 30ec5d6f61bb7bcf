"""Reads a segment past its damaged batches, so that the good batches on both sides remain readable.

The size in a batch's header gives the position of the next batch, and so on through batches that are damaged
elsewhere. Behind a damaged size the indexes give the position of a later batch. No batch is read from a
position that only a search of the bytes would find, because a record's bytes could look like a batch. The
reader decides about the meaning of the damage. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import heappop, heappush, merge
from itertools import chain
from typing import NamedTuple

from barnabas.protocol.record_batch import HEADER, HEADER_BYTES, MAGIC, BatchHeader
from barnabas.storage.filesystem import Readable
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.share_index import ShareIndex
from barnabas.storage.segments.segment_scan import CHUNK_BYTES, ScannedBatch, scan_segment, why_not_good

_MAGIC_POSITION = 16
_OFFSET_BYTES = 8
"""The size of the base offset, with which a header begins."""

Boundaries = Callable[[int], Iterable[int]]
"""Returns the positions behind the given one at which batches may begin, the nearest first."""


class Damage(NamedTuple):
    """Bytes of a segment in [position, end) that are not good batches, and the reason for the first one."""

    position: int
    end: int
    reason: str


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
            yield Damage(position, end, reason)
            position = end


def end_of_whole_batches(file: Readable, damage: Damage) -> int:
    """The end of the damaged batches that are complete, by the sizes in their headers.

    It is the damage's position if not even the first one is complete. Raises OSError.
    """
    end = damage.position
    while (stated := _stated_end(file, end)) is not None and stated <= damage.end:
        end = stated
    return end


def may_hide_batch(file: Readable, position: int, end: int, offsets: range) -> bool:
    """Whether a good batch with these offsets may begin in [position, end), at any byte.

    It may also be a record that looks like a batch. So the answer is a reason to keep the bytes, and none to
    read them as a batch. Raises OSError.
    """
    for start in range(position, end, CHUNK_BYTES):
        data = file.read(start, min(CHUNK_BYTES + HEADER_BYTES - 1, end - start))
        for at in _possible_headers(data, offsets):
            found = scan_segment(
                file, start + at, end, offsets=offsets, checked_from=0, chunk_bytes=HEADER_BYTES
            )
            if next(found, None) is not None:
                return True
    return False


def _possible_headers(data: bytes, offsets: range) -> Iterator[int]:
    """The positions of bytes that may be a header with a base offset in `offsets`."""
    magic_at = data.find(MAGIC, _MAGIC_POSITION)
    while magic_at >= 0:
        at = magic_at - _MAGIC_POSITION
        if int.from_bytes(data[at : at + _OFFSET_BYTES], "big") in offsets:
            yield at
        magic_at = data.find(MAGIC, magic_at + 1)


def _next_good(file: Readable, position: int, size_bytes: int, offsets: range, boundaries: Boundaries) -> int:
    """The position of the next good batch behind the bad one at `position`; the segment's end without any."""
    for candidate in _candidates(file, position, size_bytes, boundaries):
        found = scan_segment(
            file, candidate, size_bytes, offsets=offsets, checked_from=0, chunk_bytes=HEADER_BYTES
        )
        if next(found, None) is not None:
            return candidate
    return size_bytes


def _candidates(file: Readable, position: int, size_bytes: int, boundaries: Boundaries) -> Iterator[int]:
    """Positions behind a bad batch at which a batch may begin: the boundaries, and the stated end of each bad
    batch on the way.

    The nearest come first, because a damaged size may point behind other good batches.
    """
    waiting, latest = [position], position - 1
    for boundary in chain(boundaries(position), (size_bytes,)):
        heappush(waiting, boundary)
        while waiting and waiting[0] <= boundary:
            candidate = heappop(waiting)
            if not latest < candidate < size_bytes:
                continue
            latest = candidate
            if candidate > position:
                yield candidate
            stated = _stated_end(file, candidate)
            if stated is not None:
                heappush(waiting, stated)


def _stated_end(file: Readable, position: int) -> int | None:
    """The end of the batch at `position` by its header; None if that size is impossible."""
    data = file.read(position, HEADER_BYTES)
    if len(data) < HEADER_BYTES:
        return None
    size_bytes = BatchHeader._make(HEADER.unpack(data)).size_bytes
    return position + size_bytes if size_bytes >= HEADER_BYTES else None
