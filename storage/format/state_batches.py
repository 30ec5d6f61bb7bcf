"""Ranges of offsets with their delivery state, and their combination with newer ones.

Where two overlap, the one with the higher delivery count wins, or at equal counts the one with the later
state (Available, Acknowledged, Archiving, Archived). So a late write never reverts a record. Equal neighbours
are merged. This is Kafka's combination of state batches. Kafka has no conditions: between batches of equal
rank the newer one wins, with its condition. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from barnabas.protocol.delivery_state import Condition


class StateBatch(NamedTuple):
    """Offsets, both inclusive, with delivery count, state (0 Available, 2 Acknowledged, 3 Archiving, 4
    Archived) and condition.
    """

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int
    condition: Condition | None = None

    @property
    def rank(self) -> tuple[int, int]:
        """(delivery count, delivery state): the batch with the higher rank wins an overlap."""
        return self[2:4]


_first_offset, _last_offset = attrgetter("first_offset"), attrgetter("last_offset")


def combine(so_far: Sequence[StateBatch], newer: Sequence[StateBatch], start_offset: int) -> list[StateBatch]:
    """Disjoint ascending batches of both, without offsets below `start_offset` (-1 keeps everything).

    `so_far` is the result of an earlier combination. Only its batches that `newer` overlaps or touches are
    combined again.
    """
    old = list(so_far) if start_offset < 0 else clip_below(so_far, start_offset)
    new = list(newer) if start_offset < 0 else clip_below(newer, start_offset)
    if not new:
        return old
    low = bisect_left(old, min(map(_first_offset, new)) - 1, key=_last_offset)
    high = bisect_right(old, max(map(_last_offset, new)) + 1, lo=low, key=_first_offset)
    old[low:high] = _combined(old[low:high] + new)
    return old


def clip_below(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """The batches without the offsets below `start_offset`."""
    return [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]


def _combined(batches: Sequence[StateBatch]) -> list[StateBatch]:
    """Sweeps over the offsets at which a batch begins or has ended; a batch behind another one is newer.

    Between two of these offsets the batch with the highest rank wins. Equal neighbours are merged.
    """
    ascending = sorted(enumerate(batches), key=_first_offset_of_second)
    bounds = sorted({bound for batch in batches for bound in (batch.first_offset, batch.last_offset + 1)})
    combined: list[StateBatch] = []
    # The batches that have begun, the highest rank first. One that has ended stays until it is at the top.
    begun: list[tuple[int, int, int, StateBatch]] = []
    next_index = 0
    for first_offset, end_offset in pairwise(bounds):
        while next_index < len(ascending) and ascending[next_index][1].first_offset == first_offset:
            age, batch = ascending[next_index]
            heappush(begun, (-batch.delivery_count, -batch.delivery_state, -age, batch))
            next_index += 1
        while begun and begun[0][3].last_offset < first_offset:
            heappop(begun)
        if begun:
            _append(combined, StateBatch(first_offset, end_offset - 1, *begun[0][3][2:]))
    return combined


def _first_offset_of_second(numbered: tuple[int, StateBatch]) -> int:
    return numbered[1].first_offset


def _append(combined: list[StateBatch], piece: StateBatch) -> None:
    """Adds a piece behind the others, or extends the last one if they touch and are alike."""
    last = combined[-1] if combined else None
    if last is not None and last[2:] == piece[2:] and last.last_offset + 1 == piece.first_offset:
        combined[-1] = last._replace(last_offset=piece.last_offset)
    else:
        combined.append(piece)
