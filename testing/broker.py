"""The broker of the kit, for `with` and for `async with`."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from barnabas.testing.async_broker import AsyncBroker
from barnabas.testing.blocking_broker import BlockingBroker


class Broker(BlockingBroker):
    """A broker in a process of its own. `with Broker() as broker` starts and ends it; `async with Broker() as
    broker` gives an `AsyncBroker`, with the same operations as coroutines.
    """

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> AsyncBroker:
        face = AsyncBroker(self)
        await face.start()
        return face

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await AsyncBroker(self).close()
