"""One request of a connection, from its start until its answer is handed to the transport."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Literal

from barnabas.broker.network.dispatch import Answer


class Outstanding:
    """A request that was started and whose answer has not been handed to the transport."""

    __slots__ = ("answer", "api_key", "future", "held_bytes", "is_dropped", "reply", "request_bytes")

    def __init__(self, api_key: int, request_bytes: int = 0) -> None:
        self.api_key = api_key
        self.is_dropped = False
        """Nobody waits for its answer any more."""
        self.request_bytes = self.held_bytes = request_bytes
        self.answer: Answer | None = None
        self.reply: Awaitable[Any] | None = None
        self.future: asyncio.Future[Any] | None = None

    def tell(self, method_name: Literal["hurry", "withdraw"]) -> None:
        """Call `hurry` or `withdraw` of a waiting reply that has it."""
        method = getattr(self.reply, method_name, None)
        if method is not None and self.answer is None:
            method()
