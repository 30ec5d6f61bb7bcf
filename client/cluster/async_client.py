"""The life of a client: `async with` starts and closes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class AsyncClient(ABC):
    """Enter it with `async with`, or call `start` and `close`."""

    @abstractmethod
    async def start(self) -> None:
        """Find the cluster.

        Raises `BrokerUnavailableError` if no broker answers within `connect_timeout_ms`, and `SecurityError`
        immediately if TLS or SASL fail.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
