"""A bounded amount of memory, given out in the order of the requests."""

from __future__ import annotations

import asyncio
from collections import deque

from barnabas.client.errors import MisuseError


class BufferPool:
    """`size_bytes` of memory."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._used_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    async def acquire(self, size_bytes: int) -> None:
        """Wait until there is room, behind the earlier requests. Raises `MisuseError` for more than all."""
        if size_bytes > self._size_bytes:
            raise MisuseError(
                f"A record of {size_bytes} bytes is larger than buffer_bytes, {self._size_bytes}."
            )
        if not self._waiting and self._used_bytes + size_bytes <= self._size_bytes:
            self._used_bytes += size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(size_bytes)
            else:
                self._admit()
            raise

    def release(self, size_bytes: int) -> None:
        self._used_bytes -= size_bytes
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            size_bytes, turn = self._waiting[0]
            if turn.done():
                self._waiting.popleft()
                continue
            if self._used_bytes + size_bytes > self._size_bytes:
                return
            self._waiting.popleft()
            self._used_bytes += size_bytes
            turn.set_result(None)
