"""Keeps produce requests of one connection in order: they begin to append in the order of their arrival.

A request of a connection starts when it arrives, also while earlier ones wait. A produce request may wait
before it appends: for a log to be opened, or for its partitions to be added to a transaction. A later request
must not overtake it, even if its own logs are open: records of a partition would change their order, and an
idempotent producer's first batches would be refused after its later ones. Only the beginning is ordered here;
each log orders the appends.
"""

from __future__ import annotations

import asyncio
from typing import Final


class ProduceOrder:
    """The turns of produce requests, by connection."""

    def __init__(self) -> None:
        self.waiting: Final[dict[int, Turn]] = {}
        """The last turn of each connection with requests that have not begun: the next one must wait."""

    def turn(self, connection_id: int) -> Turn:
        """The turn after all earlier requests; used with `async with` around the beginning of the append."""
        turn = Turn(self, connection_id, self.waiting.get(connection_id))
        self.waiting[connection_id] = turn
        return turn

    def end(self, turn: Turn) -> None:
        """Called by a `Turn` that is over."""
        if self.waiting.get(turn.connection_id) is turn:
            del self.waiting[turn.connection_id]

    def forget(self, connection_id: int) -> None:
        """The connection is closed: no later request will wait for its turns."""
        self.waiting.pop(connection_id, None)


class Turn:
    """The turn of one request."""

    def __init__(self, order: ProduceOrder, connection_id: int, before: Turn | None) -> None:
        self.connection_id = connection_id
        self._order = order
        self._before = before
        self._is_over = asyncio.Event()

    async def __aenter__(self) -> None:
        if self._before is not None:
            await self._before._is_over.wait()
            self._before = None

    async def __aexit__(self, *_: object) -> None:
        self._is_over.set()
        self._order.end(self)
