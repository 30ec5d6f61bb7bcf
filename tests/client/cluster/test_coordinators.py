"""Requests to coordinators of a scripted cluster."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.network.address import Address
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.client.producer_apis import END_TXN
from barnabas.protocol.errors import ErrorCode


class OpenedConnection:
    """Answers each request."""

    is_open = True

    async def ask(self, _api: object, request: object, **_: int) -> object:
        return request

    def close(self) -> None:
        self.is_open = False


class ScriptedCluster:
    """One coordinator for all keys; notes each connection that is opened."""

    def __init__(self) -> None:
        self.opened: list[OpenedConnection] = []

    async def find_coordinator(self, _key: str, _key_type: int) -> Address:
        return Address("broker", 9092)

    async def open(self, _address: Address) -> OpenedConnection:
        await asyncio.sleep(0)
        self.opened.append(OpenedConnection())
        return self.opened[-1]


def test_simultaneous_requests_share_a_connection() -> None:
    async def main() -> None:
        cluster = ScriptedCluster()
        coordinators = Coordinators(cast("Cluster", cluster), Retries())

        def code_of(_: Any) -> ErrorCode:
            return ErrorCode.none

        asked = [coordinators.ask(f"id-{number}", END_TXN, cast("Any", None), code_of) for number in range(9)]
        await asyncio.gather(*asked)
        coordinators.close()
        assert [one.is_open for one in cluster.opened] == [False]

    asyncio.run(main())
