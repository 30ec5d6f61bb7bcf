"""Requests to the coordinator of a group or of a transactional id, repeated while it moves or loads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from barnabas.client.cluster.cluster import GROUP, Cluster
from barnabas.client.errors import BrokerUnavailableError, broker_error
from barnabas.client.network.address import Address
from barnabas.client.network.connection import Connection
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.client.api import ClientApi
from barnabas.protocol.errors import ErrorCode

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Coordinators:
    """Connections to coordinators, one for each broker. Call `close` once; the cluster stays open."""

    def __init__(self, cluster: Cluster, retries: Retries | None = None) -> None:
        self._cluster = cluster
        self._retries = retries or Retries()
        self._homes: dict[tuple[int, str], Address] = {}
        """By type and key, the address of the coordinator."""
        self._connections: dict[Address, Connection] = {}
        self._opening = asyncio.Lock()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def ask(
        self,
        key: str,
        api: ClientApi[_Request, _Response],
        request: _Request,
        code_of: Callable[[_Response], ErrorCode],
        *,
        key_type: int = GROUP,
        wait_ms: int = 0,
    ) -> _Response:
        """The coordinator's response, once `code_of` finds no error in it.

        Raises `BrokerError` for a lasting error, and `BrokerUnavailableError` for a temporary error that
        lasts longer than `Retries.give_up_ms`. `wait_ms` is the wait that the coordinator may add.
        """
        patience = self._retries.patience()
        while True:
            try:
                connection = await self._connection(key, key_type)
                response = await connection.ask(api, request, wait_ms=wait_ms)
            except BrokerUnavailableError as error:
                self._homes.pop((key_type, key), None)
                await patience.pause(error)
                continue
            code = code_of(response)
            if code is ErrorCode.none:
                return response
            if not code.retriable:
                raise broker_error(code, f"{api.key.name} for {key}")
            if code is not ErrorCode.concurrent_transactions:
                self._homes.pop((key_type, key), None)
            await patience.pause(BrokerUnavailableError(f"The coordinator of {key} answers {code.name}."))

    async def _connection(self, key: str, key_type: int) -> Connection:
        address = self._homes.get((key_type, key))
        if address is None:
            address = await self._cluster.find_coordinator(key, key_type)
            self._homes[key_type, key] = address
        async with self._opening:
            connection = self._connections.get(address)
            if connection is None or not connection.is_open:
                connection = self._connections[address] = await self._cluster.open(address)
            return connection
