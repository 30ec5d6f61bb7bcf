"""Work in slices: one bounded part at a time in a thread, with rests between, so that the broker does not
stall.

Python runs one thread at a time, so a long computation in a thread delays the loop nearly as much as one on
the loop's thread. Therefore a slice is bounded in bytes and in batches and records, and a rest of at least
twice its duration follows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import suppress

from barnabas.storage.filesystem import FileSystem

Work = Generator[int, None, None]
"""Does one slice in each step, and yields the bytes that it read and wrote."""

SLICE_ITEMS_MAX = 128
"""Batches and records of one slice, examined or skipped."""
_REST_RATIO = 2.0
"""The duration of the rest after a slice, relative to the slice."""
_NS_PER_S = 1_000_000_000


class SliceMeter:
    """The work of the present slice. A slice ends with the step that reaches one of its bounds."""

    __slots__ = ("_bytes", "_bytes_max", "_items")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._items = 0

    def add(self, size_bytes: int, items: int = 1) -> bool:
        """Counts work; returns whether the slice is over."""
        self._bytes += size_bytes
        self._items += items
        return self._bytes >= self._bytes_max or self._items >= SLICE_ITEMS_MAX

    def take(self) -> int:
        """Returns the bytes of this slice and begins the next one."""
        done_bytes, self._bytes, self._items = self._bytes, 0, 0
        return done_bytes


async def run_in_slices(
    filesystem: FileSystem, work: Work, stop: asyncio.Event, *, bytes_per_second: float
) -> bool:
    """Completes the work; False if `stop` was set before its end. Raises the errors of the work."""
    try:
        while not stop.is_set():
            started_ns = filesystem.monotonic_ns()
            done_bytes = await filesystem.run(_step, work)
            if done_bytes is None:
                return True
            took_s = (filesystem.monotonic_ns() - started_ns) / _NS_PER_S
            await _rest(stop, max(took_s * _REST_RATIO, done_bytes / bytes_per_second - took_s))
        return False
    finally:
        await filesystem.run(work.close)


def _step(work: Work) -> int | None:
    return next(work, None)


async def _rest(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
