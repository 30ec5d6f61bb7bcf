"""One connection: versions, timeouts, and brokers that misbehave."""

from __future__ import annotations

import asyncio
import struct

import pytest

from barnabas.client.cluster.metadata import metadata_request
from barnabas.client.errors import BrokerError, BrokerUnavailableError, UnsupportedBrokerError
from barnabas.client.network.address import Address
from barnabas.client.network.connection import Connection
from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.consumer_apis import METADATA, SHARE_FETCH
from barnabas.protocol.client.individual_apis import COMMIT_RANGES
from barnabas.protocol.errors import ErrorCode
from tests.client.scripted_broker import PORT, Answer, against, answer, api_versions
from tests.client.virtual_world import World, virtually

BROKER = Address("broker", PORT)
METADATA_ONLY = api_versions({ApiKey.METADATA: (0, 13)})


async def connect() -> Connection:
    return await Connection.open(BROKER, client_id="test", request_timeout_ms=1_000)


def always(response: bytes | None) -> Answer:
    """The same answer each time, or no answer."""

    def give(_version: int, _body: bytes) -> bytes | None:
        return response

    return give


@virtually
async def test_requests_with_tags_of_an_extension_need_its_feature(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = await connect()
    assert connection.version(COMMIT_RANGES) == 10
    connection.close()
    monkeypatch.setattr("barnabas.broker.handlers.api_versions.EXTENSIONS", {})
    connection = await connect()
    with pytest.raises(UnsupportedBrokerError, match=r"does not have the feature individual\.commit"):
        connection.version(COMMIT_RANGES)
    connection.close()


@virtually
async def test_the_newest_version_that_both_know_is_used(world: World) -> None:
    connection = await connect()
    assert connection.version(METADATA) == 13
    assert connection.version(SHARE_FETCH) == 2
    response = await connection.ask(METADATA, metadata_request([]))
    assert [(one.host, one.port) for one in response.brokers] == [BROKER]
    connection.close()
    assert not connection.is_open


def test_an_older_broker_gets_requests_in_its_newest_version() -> None:
    def metadata(version: int, _: bytes) -> bytes:
        assert version == 12
        return answer("metadata", 12, cluster_id="old")

    async def test() -> None:
        response = await (await connect()).ask(METADATA, metadata_request([]))
        assert response.cluster_id == "old"

    against({ApiKey.API_VERSIONS: api_versions({ApiKey.METADATA: (0, 12)}), ApiKey.METADATA: metadata}, test)


def test_an_unsupported_version_of_api_versions_is_retried_with_the_brokers_own() -> None:
    asked: list[int] = []

    def versions(version: int, _: bytes) -> bytes:
        asked.append(version)
        if version > 2:
            own = [{"api_key": ApiKey.API_VERSIONS, "min_version": 0, "max_version": 2}]
            return answer("api_versions", 0, error_code=ErrorCode.unsupported_version, api_keys=own)
        return METADATA_ONLY(version, b"") or b""

    async def test() -> None:
        assert (await connect()).version(METADATA) == 13
        assert asked == [4, 2]

    against({ApiKey.API_VERSIONS: versions}, test)


@pytest.mark.parametrize("versions", [{}, {ApiKey.SHARE_FETCH: (3, 4)}, {ApiKey.SHARE_FETCH: (0, 0)}])
def test_a_broker_without_share_groups_is_unsupported(versions: dict[ApiKey, tuple[int, int]]) -> None:
    async def test() -> None:
        connection = await connect()
        with pytest.raises(UnsupportedBrokerError):
            connection.version(SHARE_FETCH)

    against({ApiKey.API_VERSIONS: api_versions(versions)}, test)


def test_an_error_in_api_versions_is_raised() -> None:
    async def test() -> None:
        with pytest.raises(BrokerError):
            await connect()

    against(
        {
            ApiKey.API_VERSIONS: lambda version, _: answer(
                "api_versions", version, error_code=ErrorCode.invalid_request
            )
        },
        test,
    )


def test_a_port_without_a_listener_is_an_error() -> None:
    async def test() -> None:
        with pytest.raises(BrokerUnavailableError, match="broker:9092 cannot be reached"):
            await connect()

    against({}, test)


def test_an_answer_that_takes_too_long_ends_the_connection() -> None:
    async def test() -> None:
        connection = await connect()
        first = connection.start(METADATA, metadata_request([]))
        second = connection.start(METADATA, metadata_request([]), wait_ms=60_000)
        with pytest.raises(BrokerUnavailableError, match="did not answer METADATA in 1000 ms"):
            await first
        with pytest.raises(BrokerUnavailableError):
            await second
        with pytest.raises(BrokerUnavailableError):
            await connection.ask(METADATA, metadata_request([]))

    against({ApiKey.API_VERSIONS: METADATA_ONLY, ApiKey.METADATA: always(None)}, test)


def test_an_answer_before_unreadable_bytes_is_delivered() -> None:
    async def test() -> None:
        connection = await connect()
        asking = asyncio.ensure_future(connection.ask(METADATA, metadata_request([])))
        await asyncio.sleep(0)
        answered = struct.pack(">i", 1) + answer("metadata", 13, cluster_id="c")
        received = struct.pack(">i", len(answered)) + answered + b"\xff\xff\xff\xff"
        connection.get_buffer(-1)[: len(received)] = received
        connection.buffer_updated(len(received))
        assert (await asking).cluster_id == "c"
        assert not connection.is_open

    against({ApiKey.API_VERSIONS: METADATA_ONLY, ApiKey.METADATA: always(None)}, test)


@pytest.mark.parametrize("response", [b"", b"\0", b"\0\0\0\0\0\xff\xff\xff\xff\x0f"])
def test_an_answer_that_cannot_be_read_ends_the_connection(response: bytes) -> None:
    async def test() -> None:
        connection = await connect()
        with pytest.raises(BrokerUnavailableError, match="an unreadable response"):
            await connection.ask(METADATA, metadata_request([]))
        assert not connection.is_open

    against({ApiKey.API_VERSIONS: METADATA_ONLY, ApiKey.METADATA: always(response)}, test)


@virtually
async def test_a_lost_connection_fails_outstanding_requests(world: World) -> None:
    connection = await connect()
    under_way = connection.start(METADATA, metadata_request([]))
    world.cut_connections()
    with pytest.raises(BrokerUnavailableError, match="is lost"):
        await under_way


@virtually
async def test_a_cancelled_request_does_not_disturb_the_others(world: World) -> None:
    connection = await connect()
    given_up = connection.start(METADATA, metadata_request([]))
    kept = connection.start(METADATA, metadata_request([]))
    given_up.cancel()
    assert (await kept).brokers
