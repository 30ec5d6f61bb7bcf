"""Bugs in the order of keys that the broker does not have, planted like those in `planted_bugs`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from barnabas.share.partition import locks
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from barnabas.share.partition.window import AVAILABLE, RunInBatch, Window
from tests.simulation.planting import planted

# pyright: reportPrivateUsage=false

_decide_acknowledge = SharePartition.decide_acknowledge


@planted(KeyOrder, "release")
def released_behind_its_successor(self: KeyOrder, first_offset: int, last_offset: int) -> None:
    """A released record goes to the end of its key, as in an ordinary queue."""
    for offset in range(first_offset, last_offset + 1):
        key = self._key_of.get(offset)
        self._held.discard(offset)
        if key is None:
            continue
        first_left = self._remove(key, offset)
        if first_left is None:
            self._first_of[key] = first_left = offset
        else:
            self._next_of[self._last_of.get(key, first_left)] = offset
            self._last_of[key] = offset
        if self._is_free(key):
            self._add_heads([first_left])


@planted(SharePartition, "decide_acknowledge")
def key_freed_too_early(self: SharePartition, *arguments: Any) -> Decision:
    """A key is free when the acknowledgement of its record is decided, not when it is recorded."""
    decision = _decide_acknowledge(self, *arguments)
    order = self.window.keys
    for _, run, state, _ in decision.targets:
        if order is not None and state is not AVAILABLE:
            order.finish(run.first_offset, run.last_offset, was_held=True)
    return decision


@contextmanager
def forgotten_unfinished_records() -> Generator[None]:
    """An order that begins, as after a restart, does not look at the records below the end offset."""

    def begin_order(self: SharePartition, limits: ShareLimits) -> None:
        _begin_order(self, limits)
        if self.window.keys is not None:
            self.window.keys.known_until = self.window.speo

    _begin_order = SharePartition.begin_order
    with patch.object(SharePartition, "begin_order", begin_order):
        yield


@planted(locks, "_without_overtaken")
def run_kept_after_an_expiry(
    _window: Window, ended: list[RunInBatch], _limits: ShareLimits
) -> list[RunInBatch]:
    """When the lock of a record ends, its member keeps the later records of the run."""
    return ended
