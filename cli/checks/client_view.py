"""Checks a broker as a client sees it: does it answer, and can its advertised addresses be reached?

A client uses the bootstrap address only once. The broker then tells the address of each broker, and the
client connects to these: if they are wrong for the client's network, as often in containers, it fails after a
good start.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Final

from kio.schema.metadata.v13.response import MetadataResponse

from barnabas.cli.checks.finding import Finding, failure, ok, warning
from barnabas.cli.target import Target
from barnabas.client.cluster.metadata import metadata_request
from barnabas.client.errors import (
    BrokerUnavailableError,
    ConsumerError,
    SecurityError,
    UnsupportedBrokerError,
)
from barnabas.client.network.address import Address, parse_bootstrap
from barnabas.client.network.connection import Connection
from barnabas.protocol.client.consumer_apis import METADATA, SHARE_FETCH
from barnabas.protocol.client.inspection_apis import DESCRIBE_SHARE_RECORDS

TIMEOUT_MS: Final = 5_000
_MS_PER_SECOND: Final = 1000
_SETTING: Final = (
    "Set advertised.listeners=PLAINTEXT://HOST:PORT to an address that clients can reach, and in a container "
    "publish that port under the same number"
)


async def check_broker(target: Target) -> AsyncIterator[Finding]:
    """The findings about each bootstrap address and each advertised address."""
    for address in parse_bootstrap(target.bootstrap):
        async for finding in _check_bootstrap(target, address):
            yield finding


async def _check_bootstrap(target: Target, address: Address) -> AsyncIterator[Finding]:
    begun = perf_counter()
    try:
        connection = await _connect(target, address)
    except SecurityError as error:
        yield failure("broker", str(error).removesuffix("."), "Check --security and the broker's listener.")
        return
    except BrokerUnavailableError as error:
        yield failure("broker", str(error).removesuffix("."), "Start the broker, or name its address.")
        return
    try:
        metadata = await connection.ask(METADATA, metadata_request(()))
        took_ms = (perf_counter() - begun) * _MS_PER_SECOND
        yield ok("broker", f"{address} answers in {took_ms:.0f} ms: {_kind(connection)}")
        yield _check_share_groups(connection)
    except ConsumerError as error:
        yield failure("broker", f"{address}: {error}", "Look into the broker's log.")
        return
    finally:
        connection.close()
    for broker in metadata.brokers:
        yield await _check_advertised(target, address, Address(broker.host, broker.port), metadata)
    await asyncio.sleep(0)  # the connections' transports close in the loop's next round


async def _connect(target: Target, address: Address) -> Connection:
    return await Connection.open(
        address, client_id=target.client_id, request_timeout_ms=TIMEOUT_MS, security=target.security
    )


def _kind(connection: Connection) -> str:
    try:
        connection.version(DESCRIBE_SHARE_RECORDS)
    except UnsupportedBrokerError:
        return "a broker that is not Barnabas"
    return "Barnabas"


def _check_share_groups(connection: Connection) -> Finding:
    try:
        version = connection.version(SHARE_FETCH)
    except UnsupportedBrokerError:
        return warning(
            "share groups", "this broker does not serve them", "Use Barnabas, or Apache Kafka 4.2 or later."
        )
    return ok("share groups", f"served, ShareFetch {version}")


async def _check_advertised(
    target: Target, bootstrap: Address, advertised: Address, metadata: MetadataResponse
) -> Finding:
    try:
        connection = await _connect(target, advertised)
    except ConsumerError as error:
        return failure(
            "advertised address",
            f"clients are sent to {advertised}, which does not answer here: {str(error).removesuffix('.')}",
            _remedy(bootstrap, advertised),
        )
    try:
        other = await connection.ask(METADATA, metadata_request(()))
    except ConsumerError as error:
        return failure("advertised address", f"{advertised}: {error}", _remedy(bootstrap, advertised))
    finally:
        connection.close()
    if other.cluster_id != metadata.cluster_id:
        return failure(
            "advertised address",
            f"clients are sent to {advertised}, where another cluster answers",
            _remedy(bootstrap, advertised),
        )
    if _is_loopback(advertised.host):
        return ok("advertised address", f"{advertised} answers; only this machine can reach it")
    return ok("advertised address", f"{advertised} answers")


def _remedy(bootstrap: Address, advertised: Address) -> str:
    if _is_loopback(advertised.host) and not _is_loopback(bootstrap.host):
        return f"{_SETTING}: {advertised.host} is each client's own machine."
    if bootstrap.port != advertised.port and bootstrap.host == advertised.host:
        return f"{_SETTING}: here the port is {bootstrap.port}."
    return f"{_SETTING}, such as {bootstrap}."


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
