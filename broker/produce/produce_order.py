"""Produce requests of one connection begin to append in the order in which they came.

Requests of a connection are started as they come, also while earlier ones wait. A produce request may wait
before it appends: for a log to be opened, for its partitions to be added to a transaction. One that comes
behind it must not overtake it, though its own logs be open: the records of a partition would change places,
and an idempotent producer's first batches would be refused behind its later ones. Only the beginning is put
in order; the appends then wait for each other in their logs.
"""

from __future__ import annotations

import asyncio


class ProduceOrder:
    """The produce requests that have not begun yet, by connection."""

    def __init__(self) -> None:
        self._last: dict[int, Turn] = {}

    def is_held_up(self, connection_id: int) -> bool:
        """Whether a request that comes now on the connection has to take its turn."""
        return connection_id in self._last

    def turn(self, connection_id: int) -> Turn:
        """The place behind whatever has come so far; to be used with `async with` around the beginning."""
        turn = Turn(self, connection_id, self._last.get(connection_id))
        self._last[connection_id] = turn
        return turn

    def end(self, turn: Turn) -> None:
        """For `Turn`: it is over."""
        if self._last.get(turn.connection_id) is turn:
            del self._last[turn.connection_id]

    def forget(self, connection_id: int) -> None:
        """The connection is closed: what has not begun will not be waited for."""
        self._last.pop(connection_id, None)


class Turn:
    """One request's place."""

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
