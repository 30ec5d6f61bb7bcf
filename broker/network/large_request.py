"""A large request: decoded and encoded in a thread, handled on the loop in parts, with other work in between.

Decoding a request with a hundred thousand entries takes a tenth of a second and more of computation, and so
does encoding its answer. A thread does both while the loop serves others (`LongWork`). Work on the broker's
state stays on the loop; if the entries are independent, the request is handled in parts (`request_parts`).

The next request of the same connection waits, so that it is not handled before this one. If the client is
gone before a part was handled, the request is discarded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final, Generic, TypeVar

from barnabas.broker.network.handler import Reply, Response
from barnabas.runtime.purgatory import is_waiting

LARGE_REQUEST_BYTES: Final = 32 * 1024
"""A request of this size and more is large; an entry has at least 4 bytes, and takes some microseconds."""

PartT = TypeVar("PartT")


class LargeRequest(Generic[PartT]):
    """The wait for the answer to one large request; `Waiting`. It can be awaited once.

    It does not inherit from `Awaitable`, because `isinstance` with an abstract class takes longer, and
    connections ask it at every request.
    """

    __slots__ = ("_handle", "_is_hurried", "_is_withdrawn", "_read", "_reply", "_write")

    def __init__(
        self,
        read: Callable[[], Awaitable[Sequence[PartT]]],
        handle: Callable[[PartT], Reply],
        write: Callable[[Sequence[PartT], Sequence[Response]], Awaitable[Response]],
    ) -> None:
        """`read` returns the parts of the request, `handle` the reply to a part. `write` makes one answer
        from the parts and their answers.
        """
        self._read = read
        self._handle = handle
        self._write = write
        self._reply: object = None
        self._is_hurried = self._is_withdrawn = False

    def hurry(self) -> None:
        """Another request waits behind this one: end the handler's wait, now or as soon as it begins."""
        self._is_hurried = True
        self._tell()

    def withdraw(self) -> None:
        """The client is gone: end the handler's wait without an answer."""
        self._is_withdrawn = True
        self._tell()

    def __await__(self) -> Generator[Any, Any, Response]:
        return self._answer().__await__()

    async def _answer(self) -> Response:
        parts = await self._read()
        if self._is_withdrawn:
            raise asyncio.CancelledError  # a session that began now would have no end
        answers: list[Response] = []
        for part in parts:
            answers.append(await self._settle(self._handle(part)))
            if len(parts) > 1:
                await asyncio.sleep(0)
        return await self._write(parts, answers)

    async def _settle(self, reply: Reply) -> Response:
        if not isinstance(reply, Awaitable):
            return reply
        self._reply = reply
        self._tell()
        try:
            return await reply
        finally:
            self._reply = None

    def _tell(self) -> None:
        """Hurry or withdraw the handler's wait, if there is one."""
        reply = self._reply
        if is_waiting(reply):
            if self._is_withdrawn:
                reply.withdraw()
            elif self._is_hurried:
                reply.hurry()
