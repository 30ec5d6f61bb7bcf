"""One request of a connection, from its start until its answer is handed to the transport."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from barnabas.broker.network.dispatch import Answer
from barnabas.broker.network.handler import Response
from barnabas.runtime.completion import Completion
from barnabas.runtime.purgatory import is_waiting

Ended: TypeAlias = asyncio.Future[Response] | Completion[Response]

_KEEP_ORDER: Final = (Completion, asyncio.Future)
"""The kinds of replies beside which other requests of the same API may run (see `handler`)."""


def error_of(ended: Ended) -> BaseException | None:
    """The error with which a reply has ended, or None. It is not raised: a future keeps its error, and the
    traceback would hold the future (`without_frames`).
    """
    if isinstance(ended, Completion):
        return ended.error
    return asyncio.CancelledError() if ended.cancelled() else ended.exception()


class Outstanding:
    """A started request whose answer has not been handed to the transport."""

    __slots__ = ("answer", "api_key", "future", "held_bytes", "is_dropped", "reply", "request_bytes")

    def __init__(self, api_key: int, request_bytes: int = 0) -> None:
        self.api_key = api_key
        self.is_dropped = False
        """Whether its answer will be discarded."""
        self.request_bytes = self.held_bytes = request_bytes
        self.answer: Answer | None = None
        self.reply: object = None
        self.future: asyncio.Future[Response] | None = None

    @property
    def is_alone(self) -> bool:
        """Whether no other request may start before this one has ended (see `handler`)."""
        return self.reply is not None and not isinstance(self.reply, _KEEP_ORDER)

    def wait(self, reply: Awaitable[Response], on_reply: Callable[[Ended], None]) -> None:
        """Call `on_reply` after the reply has ended, in a later callback of the loop, because it answers the
        client and starts the next request.
        """
        self.reply = reply
        if isinstance(reply, Completion):
            call_soon = asyncio.get_running_loop().call_soon
            reply.when_done(lambda ended: call_soon(on_reply, ended))
        else:
            self.future = asyncio.ensure_future(reply)
            self.future.add_done_callback(on_reply)

    def hurry(self) -> None:
        """Another request waits behind this one."""
        if self.answer is None and is_waiting(self.reply):
            self.reply.hurry()

    def withdraw(self) -> None:
        """The client is gone."""
        if self.answer is None and is_waiting(self.reply):
            self.reply.withdraw()
