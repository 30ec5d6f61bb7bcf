"""A cluster for clients that administer or inspect it: any broker, each broker, one broker, or the
coordinator of a group.

Temporary errors are retried for `connect_timeout_ms`, the time that the search for a broker may take. A
change that was sent before its connection was lost may be sent again; the broker's answer then is about the
second one, such as TOPIC_ALREADY_EXISTS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, Unpack

from barnabas.client.cluster.async_client import AsyncClient
from barnabas.client.cluster.client_options import ClientOptions, ClientSettings, check_option_names
from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.cluster.opening import find_cluster, new_cluster, retries_of
from barnabas.client.cluster.topics import Topics
from barnabas.client.errors import BrokerUnavailableError, MisuseError, broker_error
from barnabas.client.network.address import parse_bootstrap
from barnabas.protocol.client.api import ClientApi
from barnabas.protocol.errors import ErrorCode

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Result = TypeVar("_Result")


class AdminConnection(AsyncClient):
    """Enter it with `async with`, or call `start` and `close`. Any number of tasks may use it."""

    def __init__(self, bootstrap: str | Sequence[str], **options: Unpack[ClientOptions]) -> None:
        """`bootstrap` is `host:port`, or several; `options` are those of `ClientSettings`.

        Raises `MisuseError` for malformed addresses and options.
        """
        check_option_names(options, ClientOptions.__annotations__)
        self._settings = settings = ClientSettings(**options)
        self.retries = retries_of(settings, give_up_ms=settings.connect_timeout_ms)
        self.cluster = new_cluster(parse_bootstrap(bootstrap), settings)
        self.topics = Topics(self.cluster, self.retries)
        self.coordinators = Coordinators(self.cluster, self.retries)

    async def start(self) -> None:
        """Find the cluster. Raises `BrokerUnavailableError` and `SecurityError`; then it is closed."""
        try:
            await find_cluster(self.cluster, self._settings)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self.coordinators.close()
        self.topics.close()
        self.cluster.close()
        await asyncio.sleep(0)  # the connections' transports close in the loop's next round

    async def ask(self, api: ClientApi[_Request, _Response], request: _Request) -> _Response:
        """The response of any broker. Raises `BrokerUnavailableError` and `SecurityError`."""
        return await self.with_retries(lambda: self.cluster.ask(api, request))

    async def ask_broker(
        self, node_id: int, api: ClientApi[_Request, _Response], request: _Request
    ) -> _Response:
        """The response of this broker. Raises `MisuseError` if the cluster has no broker with this id."""
        address = self.cluster.view.brokers.get(node_id)
        if address is None:
            known = ", ".join(map(str, sorted(self.cluster.view.brokers)))
            raise MisuseError(f"The cluster has no broker {node_id}; its brokers are {known}.")

        async def step() -> _Response:
            connection = await self.cluster.open(address)
            try:
                return await connection.ask(api, request)
            finally:
                connection.close()

        return await self.with_retries(step)

    async def ask_all(self, api: ClientApi[_Request, _Response], request: _Request) -> list[_Response]:
        """The responses of all brokers, in the order of their ids."""
        return [await self.ask_broker(node_id, api, request) for node_id in sorted(self.cluster.view.brokers)]

    async def with_retries(self, step: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of `step`, which is called again while it raises `BrokerUnavailableError`."""
        patience = self.retries.patience()
        while True:
            try:
                return await step()
            except BrokerUnavailableError as error:
                await patience.pause(error)


def check_code(code: ErrorCode, message: str | None) -> None:
    """Raises `BrokerUnavailableError` for a temporary error, and `BrokerError` for a lasting one."""
    if code is ErrorCode.none:
        return
    if code.retriable and code is not ErrorCode.unknown_topic_or_partition:
        raise BrokerUnavailableError(f"The broker answers {code.name}{f': {message}' if message else ''}.")
    raise broker_error(code, message)
