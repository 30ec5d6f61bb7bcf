"""A client's access to the cluster: a broker that answers, the view of the cluster, a group's coordinator.

One connection is kept for requests that any broker can answer. Brokers are tried one after another: first
those known from Metadata, then the bootstrap brokers of the user, so that the client also finds a cluster
that has moved. Each broker is tried once; the caller decides with its `Backoff` when to try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import Final, TypeVar
from uuid import UUID

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest

from barnabas.client.cluster.metadata import ClusterView, metadata_request
from barnabas.client.errors import BrokerUnavailableError, UnsupportedBrokerError, broker_error
from barnabas.client.network.address import Address
from barnabas.client.network.connection import Connection
from barnabas.client.network.security import PLAINTEXT, Security
from barnabas.protocol.client.api import ClientApi
from barnabas.protocol.client.consumer_apis import FIND_COORDINATOR, METADATA
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8

GROUP: Final = 0
TRANSACTION: Final = 1
"""The types of key that have a coordinator, numbered as in FindCoordinator."""

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Cluster:
    """The brokers of one cluster. Call `close` once."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str,
        request_timeout_ms: int,
        security: Security = PLAINTEXT,
    ) -> None:
        self.view = ClusterView()
        self._bootstrap = tuple(bootstrap)
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._any: Connection | None = None
        self._opening = asyncio.Lock()

    async def open(self, address: Address) -> Connection:
        """A new connection, which belongs to the caller.

        Raises `BrokerUnavailableError` and `SecurityError`.
        """
        return await Connection.open(
            address,
            client_id=self._client_id,
            request_timeout_ms=self._request_timeout_ms,
            security=self._security,
        )

    async def ask(self, api: ClientApi[_Request, _Response], request: _Request) -> _Response:
        """The response of any broker.

        Raises `BrokerUnavailableError` if no broker was found or the connection was lost before the answer,
        and `SecurityError` if a broker and this client refused each other.
        """
        connection = await self._any_connection()
        return await connection.ask(api, request)

    async def supports(self, api: ClientApi[_Request, _Response]) -> bool:
        """Whether a broker supports an API in a version known to this client; raises the errors of `ask`."""
        connection = await self._any_connection()
        try:
            connection.version(api)
        except UnsupportedBrokerError:
            return False
        return True

    async def refresh(self, topic_ids: Collection[UUID]) -> None:
        """Refresh the view of the brokers and of these topics; raises the errors of `ask`."""
        response = await self.ask(METADATA, metadata_request(topic_ids))
        self.view.apply(response, topic_ids)

    async def find_coordinator(self, key: str, key_type: int = GROUP) -> Address:
        """The address of the coordinator of a group or of a transactional id.

        Raises `BrokerError` for a lasting error (such as no right to see the group), and
        `BrokerUnavailableError` for a temporary one: no coordinator yet, or no broker.
        """
        request = FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=(key,))
        response = await self.ask(FIND_COORDINATOR, request)
        for found in response.coordinators:
            if found.error_code is ErrorCode.none:
                return Address(found.host, found.port)
            if not found.error_code.retriable:
                raise broker_error(found.error_code, found.error_message)
        raise BrokerUnavailableError(f"{key} has no coordinator yet.")

    def close(self) -> None:
        """Close the shared connection; connections from `open` belong to their callers."""
        if self._any is not None:
            self._any.close()

    async def _any_connection(self) -> Connection:
        async with self._opening:
            if self._any is None or not self._any.is_open:
                self._any = await self._first_that_answers()
            return self._any

    async def _first_that_answers(self) -> Connection:
        failures: list[str] = []
        for address in self._addresses():
            try:
                return await self.open(address)
            except BrokerUnavailableError as error:
                failures.append(str(error))
        raise BrokerUnavailableError("; ".join(failures))

    def _addresses(self) -> Iterator[Address]:
        yield from dict.fromkeys((*self.view.brokers.values(), *self._bootstrap))
