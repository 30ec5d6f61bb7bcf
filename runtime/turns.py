"""Turns: what takes long is worked on in pieces, between which the loop serves others."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

_T = TypeVar("_T")

STEPS_PER_TURN = 2_000
"""Small pieces of work, a microsecond or a few each, that may be done in one turn."""


PARTITIONS_AT_ONCE_MAX = 1_000
"""A request that names more partitions is begun in turns: to look that many up takes some milliseconds."""

_SOME = 50
"""So many are worked on before it is asked whether others are to have their turn."""


def some_at_a_time(entries: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """The entries in their order, a turn's or less at a time."""
    if len(entries) > _SOME:
        for start in range(0, len(entries), _SOME):
            yield entries[start : start + _SOME]
    elif entries:
        yield entries


class Turns:
    """Those of one request, or of one other piece of work."""

    def __init__(self) -> None:
        self._steps_left = STEPS_PER_TURN
        self.passed = False
        """Whether others have had one: there is much to do."""

    async def took(self, step_count: int) -> None:
        """So much work was done: others have their turn if it was enough."""
        self._steps_left -= step_count
        if self._steps_left <= 0:
            self._steps_left = STEPS_PER_TURN
            self.passed = True
            await asyncio.sleep(0)


def in_turns(work: Coroutine[Any, Any, _T]) -> _T | Awaitable[_T]:
    """What `work` returns, if it ends in its first turn, which is had at once: what is small needs no task.
    Else what is left of it. In its first turn it awaits nothing but the next one.
    """
    try:
        work.send(None)
    except StopIteration as end:
        value: _T = end.value
        return value
    return asyncio.ensure_future(work)
