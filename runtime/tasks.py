"""The tasks of one owner: kept alive until they end, so that the owner can wait for them when it closes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from barnabas.runtime.completion import Completion

T = TypeVar("T")


class Tasks:
    """Used on the loop's thread only."""

    __slots__ = ("_under_way",)

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[object]] = set()

    def run(self, begin: Callable[[], Awaitable[T]]) -> Completion[T]:
        """The outcome of the work that `begin` returns. It is called in the loop's next pass.

        The completion ends in the pass in which the work ends, and before `drained` returns. It stays open if
        the task is cancelled, because then its owner closes.
        """
        outcome: Completion[T] = Completion()
        self.start(_run(begin, outcome))
        return outcome

    def start(self, work: Coroutine[object, None, T]) -> asyncio.Task[T]:
        """A task for work whose exceptions the caller handles."""
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def drained(self) -> None:
        """Wait for the work that is under way now."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def cancel(self) -> None:
        """Cancel the work that is under way, and wait for its end."""
        for task in self._under_way:
            task.cancel()
        await self.drained()


async def _run(begin: Callable[[], Awaitable[T]], outcome: Completion[T]) -> None:
    try:
        value = await begin()
    except Exception as error:
        outcome.fail(error)
    else:
        outcome.complete(value)
