"""Turns: long work on the loop's thread is divided into pieces, and the loop serves others in between."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")

STEPS_PER_TURN = 2_000
"""Small pieces of work, of one or a few microseconds each, in one turn."""


PARTITIONS_AT_ONCE_MAX = 1_000
"""A request that names more partitions begins in turns: looking up that many takes some milliseconds."""

BYTES_PER_STEP = 1024
"""Bytes that are read from the page cache in the time of one step."""

LONG_READ_BYTES = 1024 * 1024
"""Reading more than this takes a good part of a millisecond, and is not done beside others in one pass."""

_SOME = 50
"""Entries that are worked on between two checks whether the turn is over."""


def some_at_a_time(entries: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """The entries in their order, in slices of `_SOME` at most."""
    if len(entries) > _SOME:
        for start in range(0, len(entries), _SOME):
            yield entries[start : start + _SOME]
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


class LongTurns:
    """The turns of all requests that read much: at most one in each pass of the loop. Otherwise a pass would
    take as long as the reads of all requests that arrived together.
    """

    def __init__(self) -> None:
        self.is_taken = False
        """Whether this pass of the loop has had one."""

    def take(self) -> None:
        """This turn is one of them."""
        if not self.is_taken:
            self.is_taken = True
            asyncio.get_running_loop().call_soon(self._end_pass)

    async def wait(self, turns: Turns) -> None:
        """Wait for a pass that has not had one yet."""
        while self.is_taken:
            await turns.end()

    def _end_pass(self) -> None:
        self.is_taken = False


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
