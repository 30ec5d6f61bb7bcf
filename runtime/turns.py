"""Turns: long work on the loop's thread is divided into pieces, and the loop serves others in between."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")

STEPS_PER_TURN = 2_000
"""Small pieces of work, of one or a few microseconds each, in one turn."""


PARTITIONS_AT_ONCE_MAX = 1_000
"""A request that names more partitions begins in turns: looking up that many takes some milliseconds."""

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
            self._steps_left = STEPS_PER_TURN
            self.passed = True
            await asyncio.sleep(0)


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
