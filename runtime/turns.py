"""Turns: long work on the loop's thread is divided into pieces, and the loop serves others in between."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from typing import Final, TypeVar

_T = TypeVar("_T")

STEPS_PER_TURN: Final = 2_000
"""Small pieces of work, of one or a few microseconds each, in one turn."""

_READ_BYTES_PER_PASS: Final = 4 * 1024 * 1024
"""Read from the page cache in one to two milliseconds."""
SMALL_READ_BYTES: Final = 64 * 1024
"""Reads up to this size are not counted."""

PARTITIONS_AT_ONCE_MAX: Final = 1_000
"""A request that names more partitions begins in turns: looking up that many takes some milliseconds."""

PARTITIONS_PER_TURN: Final = 50
"""A request for up to this many partitions is served in one turn. Longer work looks after as many of its
entries whether the turn is over.
"""


def some_at_a_time(entries: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """The entries in their order, in slices of `PARTITIONS_PER_TURN` at most."""
    if len(entries) > PARTITIONS_PER_TURN:
        for start in range(0, len(entries), PARTITIONS_PER_TURN):
            yield entries[start : start + PARTITIONS_PER_TURN]
    elif entries:
        yield entries


class Turns:
    """The turns of one request, or of other work."""

    def __init__(self) -> None:
        self._steps_left = STEPS_PER_TURN
        self.passed = False
        """Whether a first turn has ended, so that the work is long."""

    async def took(self, step_count: int) -> None:
        """Count the steps done, and let the loop serve others if the turn is over."""
        self._steps_left -= step_count
        if self._steps_left <= 0:
            await self.end()

    async def end(self) -> None:
        """End the turn: let the loop serve others."""
        self._steps_left = STEPS_PER_TURN
        self.passed = True
        await asyncio.sleep(0)


class ReadTurns:
    """The bytes that all requests have read in this pass of the loop. They are bounded, because otherwise a
    pass would take as long as the reads of all requests that arrived together.
    """

    __slots__ = ("_read_bytes", "are_over")

    def __init__(self) -> None:
        self._read_bytes = 0
        self.are_over = False
        """Whether the next read must wait."""

    def read(self, size_bytes: int) -> None:
        """Count a read of more than `SMALL_READ_BYTES`. It may exceed the bound."""
        if not self._read_bytes:
            asyncio.get_running_loop().call_soon(self._end_pass)
        self._read_bytes += size_bytes
        self.are_over = self._read_bytes >= _READ_BYTES_PER_PASS

    async def wait(self, turns: Turns) -> None:
        """Wait for a pass in which there is room."""
        while self.are_over:
            await turns.end()

    def _end_pass(self) -> None:
        self._read_bytes = 0
        self.are_over = False


def in_turns(work: Coroutine[object, None, _T]) -> _T | Awaitable[_T]:
    """Run the first turn of `work` at once. Returns its result if it ends there, else a task for the rest.

    Short work so needs no task. In its first turn `work` may await nothing except the next turn.
    """
    try:
        work.send(None)
    except StopIteration as end:
        value: _T = end.value
        return value
    return asyncio.ensure_future(work)
