"""Work in slices: a bounded part at a time in a thread, with rests between, so that serving does not stall.

Python runs one thread at a time, so a long computation in a thread holds up the loop nearly as much as one
on it: what is bounded is therefore bytes and batches or records, and each slice is followed by a rest at
least twice as long as it took.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import suppress

from barnabas.storage.filesystem import FileSystem

Work = Generator[int, None, None]
"""Does a slice with each step, and yields how many bytes it read and wrote."""

SLICE_ITEMS_MAX = 128
"""A slice ends after so many batches and records, looked into or passed over."""
_REST_RATIO = 2.0
"""How long the rest after a slice is, compared with the slice."""
_NS_PER_S = 1_000_000_000


class SliceMeter:
    """What a slice has done so far. A slice ends with the step that reaches one of its bounds."""

    __slots__ = ("_bytes", "_bytes_max", "_items")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._items = 0

    def add(self, size_bytes: int, items: int = 1) -> bool:
        """Counts work done; whether the slice is over."""
        self._bytes += size_bytes
        self._items += items
        return self._bytes >= self._bytes_max or self._items >= SLICE_ITEMS_MAX

    def take(self) -> int:
        """The bytes of this slice; the next one begins."""
        done_bytes, self._bytes, self._items = self._bytes, 0, 0
        return done_bytes


async def run_in_slices(
    filesystem: FileSystem, work: Work, stop: asyncio.Event, *, bytes_per_second: float
) -> bool:
    """Does the work to its end; False if `stop` was set before. Raises what the work raises."""
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
