"""Ranges of offsets with their delivery state, and how newer ones are laid over older ones.

Where two overlap, the one that was delivered more often holds, or at equal counts the one whose state is
further on (Available, Acknowledged, Archived): a late write never takes a record back. That, and which
neighbours become one, is as in Kafka's combination of state batches. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import NamedTuple


class StateBatch(NamedTuple):
    """Offsets, both inclusive, with delivery count and state (0 Available, 2 Acknowledged, 4 Archived).

    Batches compare field by field: that is the order in which they are combined.
    """

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int

    @property
    def rank(self) -> tuple[int, int]:
        """What decides between two batches that overlap; equal ranks are alike."""
        return self[2:]


_first_offset, _last_offset = attrgetter("first_offset"), attrgetter("last_offset")


def combine(so_far: Sequence[StateBatch], newer: Sequence[StateBatch], start_offset: int) -> list[StateBatch]:
    """Disjoint ascending batches of both, without what lies below `start_offset` (-1 keeps everything).

    `so_far` is the outcome of an earlier combination; only what `newer` overlaps or touches is looked at.
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


def _combined(batches: list[StateBatch]) -> list[StateBatch]:
    """Takes the two lowest batches again and again: apart, the lower is done; else what becomes of the two
    goes back."""
    heapify(batches)
    done: list[StateBatch] = []
    lower = heappop(batches)
    while batches:
        upper = heappop(batches)
        touches = upper.first_offset == lower.last_offset + 1 and upper.rank == lower.rank
        if upper.first_offset <= lower.last_offset or touches:
            for piece in _resolved(lower, upper):
                heappush(batches, piece)
            lower = heappop(batches)
        else:
            done.append(lower)
            lower = upper
    done.append(lower)
    return done


def _resolved(lower: StateBatch, upper: StateBatch) -> list[StateBatch]:
    """The pieces of two batches that overlap, or touch and are alike; `lower` begins no later."""
    if lower.rank == upper.rank:
        return [lower._replace(last_offset=max(lower.last_offset, upper.last_offset))]
    if upper.rank < lower.rank:
        pieces = [lower, upper._replace(first_offset=lower.last_offset + 1)]
    else:
        pieces = [
            lower._replace(last_offset=upper.first_offset - 1),
            upper,
            lower._replace(first_offset=upper.last_offset + 1),
        ]
    return [piece for piece in pieces if piece.first_offset <= piece.last_offset]
