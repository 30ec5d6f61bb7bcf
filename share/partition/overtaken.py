"""Held records that are taken back, because a record before them of the same key is delivered again.

With `share.order.key.in.flight.max` above 1, or in a batch that is delivered alone, a member holds several
records of one key. When one of them becomes available, those behind it do as well, without losing a delivery.
So nothing has to be recorded for them: an acquired record is recorded as available with one delivery less.
Without an order of keys there are none. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.protocol.committed_ranges import merged
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.window import ACQUIRED, AVAILABLE, Span, Window


def has_runs(keys: KeyOrder) -> bool:
    """Whether a member may hold several records of one key."""
    return keys.run_max > 1 or keys.alone is not None


def overtaken(window: Window, released: Iterable[Span]) -> list[Span]:
    """The held records behind the released ones of their keys, which may be among them. Both ends of each
    range are inclusive.

    A record whose acknowledgement is being recorded, or waits for a transaction, is not taken back. A
    released record that is gone from the log takes none back.
    """
    keys = window.keys
    if keys is None or not has_runs(keys):
        return []
    found: list[Span] = []
    for first_offset, last_offset in released:
        if last_offset < window.spso:
            continue
        if keys.alone is not None and keys.alone[0] <= last_offset and first_offset <= keys.alone[1]:
            found.append((max(first_offset, keys.alone[0]) + 1, keys.alone[1]))
        for offset in range(first_offset, last_offset + 1):
            found += ((behind, behind) for behind in keys.records_behind(offset))
    return [
        held
        for first_offset, last_offset in merged(found)
        for held in _held(window, first_offset, last_offset)
    ]


def left_behind(window: Window, unchanged: Iterable[Span]) -> list[Span]:
    """Held records whose acknowledgement, or whose loss with an earlier record, could not be recorded, and
    before which a record of their key has become available meanwhile.
    """
    keys = window.keys
    if keys is None or not has_runs(keys):
        return []
    available: list[Span] = []
    for first_offset, last_offset in unchanged:
        if keys.alone is not None and keys.alone[0] <= first_offset <= keys.alone[1]:
            runs = window.runs_between(keys.alone[0], last_offset)
            available += ((run.first_offset, run.last_offset) for _, run in runs if run.state is AVAILABLE)
        for offset in range(first_offset, last_offset + 1):
            available += ((earlier, earlier) for earlier in keys.available_before(offset))
    return overtaken(window, available)


def _held(window: Window, first_offset: int, last_offset: int) -> Iterator[Span]:
    """The held parts of a range, each inside of one run."""
    control_runs = window.control_runs
    for _, run in window.runs_between(first_offset, last_offset):
        if run.state is ACQUIRED and not run.pending and run.condition is None:
            first = control_runs.next_data_offset(max(run.first_offset, first_offset))
            last = control_runs.previous_data_offset(min(run.last_offset, last_offset))
            if first <= last:
                yield first, last
