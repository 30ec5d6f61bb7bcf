"""Single requests to brokers, which are repeated after temporary errors.

They go to any broker, to the coordinator of a group, or to the share coordinator of a group's partition.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerUnavailableError, broker_error
from barnabas.client.network.address import Address
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.client.api import ClientApi
from barnabas.protocol.client.consumer_apis import FIND_COORDINATOR
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.primitive import i8

GIVE_UP_MS: Final = 30_000
"""How long a request is repeated after temporary errors."""

_SHARE_KEY_TYPE: Final = i8(2)

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Answer = TypeVar("_Answer")


async def with_retries(step: Callable[[], Awaitable[_Answer]]) -> _Answer:
    """The result of `step`, called again while it raises `BrokerUnavailableError`, up to `GIVE_UP_MS`."""
    patience = Retries(give_up_ms=GIVE_UP_MS).patience()
    while True:
        try:
            return await step()
        except BrokerUnavailableError as error:
            await patience.pause(error)


def check(code: ErrorCode, message: str | None) -> None:
    """Raises `BrokerUnavailableError` for temporary errors, `BrokerError` for permanent ones."""
    if code is ErrorCode.none:
        return
    if code.retriable:
        raise BrokerUnavailableError(f"{code.name}: {message}" if message else code.name)
    raise broker_error(code, message)


async def ask_at(
    cluster: Cluster, address: Address, api: ClientApi[_Request, _Response], request: _Request
) -> _Response:
    """The response of one broker, over a connection for this request alone."""
    connection = await cluster.open(address)
    try:
        return await connection.ask(api, request)
    finally:
        connection.close()


async def ask_coordinator(
    cluster: Cluster, group_id: str, api: ClientApi[_Request, _Response], request: _Request
) -> _Response:
    """The response of the group's coordinator."""
    return await ask_at(cluster, await cluster.find_coordinator(group_id), api, request)


async def find_share_coordinators(
    cluster: Cluster, keys: Sequence[SharePartitionKey]
) -> dict[Address, list[SharePartitionKey]]:
    """The share coordinator of each share-partition, if its state is in `__share_group_state`."""
    by_name = {_coordinator_key(key): key for key in keys}
    request = FindCoordinatorRequest(key_type=_SHARE_KEY_TYPE, coordinator_keys=tuple(by_name))
    found: dict[Address, list[SharePartitionKey]] = {}
    for coordinator in (await cluster.ask(FIND_COORDINATOR, request)).coordinators:
        check(coordinator.error_code, coordinator.error_message)
        found.setdefault(Address(coordinator.host, coordinator.port), []).append(by_name[coordinator.key])
    return found


def _coordinator_key(key: SharePartitionKey) -> str:
    topic_id = base64.urlsafe_b64encode(key.topic_id.bytes).decode().rstrip("=")
    return f"{key.group_id}:{topic_id}:{key.partition}"
