"""An actor that sends requests over one connection, and opens another after an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.simulation.client import Disconnected, SimulatedClient


class Asking:
    """The base of the administrators."""

    def __init__(self, client: SimulatedClient) -> None:
        self._client = client

    async def _ask(self, api: str, **values: Any) -> Any:
        try:
            return await self._client.ask(api, **values)
        except Disconnected:
            self._client.disconnect()
            raise

    async def _insistently(self, action: Callable[[], Awaitable[object]]) -> None:
        """Repeats the request until it succeeds."""
        while True:
            try:
                await action()
            except Disconnected:
                await asyncio.sleep(0.2)
            else:
                return
