"""Turns: what takes long is worked on in pieces, between which the loop serves others."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

STEPS_PER_TURN = 2_000
"""Small pieces of work, a microsecond or a few each, that may be done in one turn."""


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
    Else what is left of it. All that it awaits are its turns.
    """
    try:
        work.send(None)
    except StopIteration as end:
        value: _T = end.value
        return value
    return asyncio.ensure_future(work)
