"""Long computations in a thread: large messages are read and written there.

The interpreter runs one thread at a time and changes between them every few milliseconds
(`sys.getswitchinterval`). So the loop waits that long for its turn, however long the computation takes. It
would wait several times as long behind several threads: one computation runs at a time, and the others wait
in the order in which they came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from barnabas.storage.filesystem import FileSystem

P = ParamSpec("P")
T = TypeVar("T")


class LongWork:
    """What waits for the thread. To be used on the loop's thread."""

    __slots__ = ("_filesystem", "_lock")

    def __init__(self, filesystem: FileSystem) -> None:
        """`filesystem` has the threads."""
        self._filesystem = filesystem
        self._lock = asyncio.Lock()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `function` returns; raises what it raises. It must touch nothing of the loop's."""
        async with self._lock:
            return await self._filesystem.run(function, *args, **kwargs)

    async def run_if(self, is_long: bool, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same, at once and without the thread unless `is_long`."""
        return await self.run(function, *args, **kwargs) if is_long else function(*args, **kwargs)
