"""Connections to brokers that require authentication, and that limit the lifetime of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.cluster.metadata import metadata_request
from barnabas.client.errors import AuthenticationError, BrokerUnavailableError, SecurityError
from barnabas.client.network.connection import Connection
from barnabas.client.network.security import PLAINTEXT, Security
from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.consumer_apis import METADATA
from barnabas.protocol.errors import ErrorCode
from tests.client.network.test_connection import BROKER
from tests.client.scripted_broker import PORT, Answer, against, answer, api_versions
from tests.client.virtual_world import World, client_loop, virtually

SECRET = "do not tell"
ALICE = Security(protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="alice", password=SECRET)
LIFETIME_MS = 10_000

VERSIONS = api_versions(
    {ApiKey.METADATA: (0, 13), ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 1)}
)


class Door:
    """Answers like a broker with PLAIN, and lists the requests in `asked` in their order."""

    def __init__(self, lifetime_ms: int = 0) -> None:
        self.asked: list[str] = []
        self.lifetime_ms = lifetime_ms
        self.refusal: tuple[ErrorCode, str] | None = None
        self.mechanisms = ErrorCode.none
        self.is_mute = False
        """Whether SaslAuthenticate gets no answer."""

    def answers(self) -> dict[ApiKey, Answer]:
        return {
            ApiKey.API_VERSIONS: VERSIONS,
            ApiKey.SASL_HANDSHAKE: self._handshake,
            ApiKey.SASL_AUTHENTICATE: self._authenticate,
            ApiKey.METADATA: self._metadata,
        }

    def _handshake(self, version: int, _: bytes) -> bytes:
        self.asked.append("handshake")
        return answer("sasl_handshake", version, error_code=self.mechanisms, mechanisms=["GSSAPI"])

    def _authenticate(self, version: int, body: bytes) -> bytes | None:
        assert body.endswith(f"\0alice\0{SECRET}".encode())
        self.asked.append("authenticate")
        code, message = self.refusal or (ErrorCode.none, None)
        given: dict[str, Any] = {"error_code": code, "error_message": message, "auth_bytes": b""}
        given["session_lifetime"] = self.lifetime_ms
        return None if self.is_mute else answer("sasl_authenticate", version, **given)

    def _metadata(self, version: int, _: bytes) -> bytes:
        self.asked.append("metadata")
        return answer("metadata", version, cluster_id="here")


async def connect(security: Security = ALICE) -> Connection:
    return await Connection.open(BROKER, client_id="test", request_timeout_ms=1_000, security=security)


def test_no_request_is_sent_before_authentication() -> None:
    door = Door()

    async def test() -> None:
        connection = await connect()
        await connection.ask(METADATA, metadata_request([]))
        assert door.asked == ["handshake", "authenticate", "metadata"]

    against(door.answers(), test)


def refused(change: Callable[[Door], None]) -> str:
    """The error of `connect` against a door with this change."""
    door, messages = Door(), list[str]()
    change(door)

    async def test() -> None:
        with pytest.raises(AuthenticationError) as error:
            await connect()
        messages.append(str(error.value))

    against(door.answers(), test)
    assert SECRET not in messages[0]
    return messages[0]


def test_the_error_contains_the_brokers_explanation() -> None:
    def change(door: Door) -> None:
        door.refusal = ErrorCode.sasl_authentication_failed, "Go away"

    assert refused(change) == "broker:9092 does not let alice in: Go away"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            ErrorCode.unsupported_sasl_mechanism,
            "sasl.mechanism PLAIN is not offered; the broker offers GSSAPI",
        ),
        (ErrorCode.illegal_sasl_state, "this port does not use SASL; see security.protocol"),
        (ErrorCode.unknown_server_error, "the broker refuses: unknown_server_error"),
    ],
)
def test_a_failed_handshake_gives_the_reason(code: ErrorCode, message: str) -> None:
    def change(door: Door) -> None:
        door.mechanisms = code

    assert refused(change) == f"broker:9092 does not let alice in: {message}"


@virtually
async def test_a_port_without_sasl_is_an_error(world: World) -> None:
    with pytest.raises(AuthenticationError, match="this port does not use SASL; see"):
        await connect()


def test_a_broker_without_sasl_is_an_error() -> None:
    async def test() -> None:
        with pytest.raises(AuthenticationError, match="this broker does not support SASL; see"):
            await connect()

    against({ApiKey.API_VERSIONS: api_versions({ApiKey.METADATA: (0, 13)})}, test)


def test_a_session_is_renewed_before_it_ends_and_requests_wait_meanwhile() -> None:
    door = Door(LIFETIME_MS)

    async def test() -> None:
        connection = await connect()
        await asyncio.sleep(0.79 * LIFETIME_MS / 1000)
        assert door.asked == ["handshake", "authenticate"]
        while len(door.asked) < 3:  # noqa: ASYNC110  the request arrives at a port, not through a future
            await asyncio.sleep(0.001)
        await connection.ask(METADATA, metadata_request([]))
        assert door.asked == ["handshake", "authenticate"] * 2 + ["metadata"]
        await asyncio.sleep(0.81 * LIFETIME_MS / 1000)
        assert door.asked[5:] == ["handshake", "authenticate"]
        connection.close()
        await asyncio.sleep(LIFETIME_MS / 1000)
        assert len(door.asked) == 7

    against(door.answers(), test)


def test_a_renewal_that_is_refused_ends_the_connection_with_the_reason() -> None:
    door = Door(LIFETIME_MS)

    async def test() -> None:
        connection = await connect()
        door.refusal = ErrorCode.sasl_authentication_failed, "The password has changed"
        await asyncio.sleep(LIFETIME_MS / 1000)
        assert not connection.is_open
        with pytest.raises(AuthenticationError, match="The password has changed"):
            await connection.ask(METADATA, metadata_request([]))

    against(door.answers(), test)


def test_a_renewal_without_an_answer_fails_the_connection_and_waiting_requests() -> None:
    door = Door(LIFETIME_MS)

    async def test() -> None:
        connection = await connect()
        door.is_mute = True
        await asyncio.sleep(0.81 * LIFETIME_MS / 1000)
        with pytest.raises(BrokerUnavailableError, match="did not answer SASL_AUTHENTICATE in 1000 ms"):
            await connection.ask(METADATA, metadata_request([]))

    against(door.answers(), test)


ALERT = b"\x15\x03\x03\x00\x02\x02\x50"


class Rude(asyncio.Protocol):
    """Sends the same bytes in answer to anything, and closes the connection."""

    def __init__(self, word: bytes) -> None:
        self._word = word

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._word)
        self._transport.close()


@pytest.mark.parametrize(
    ("word", "security", "error", "message"),
    [
        (ALERT, PLAINTEXT, SecurityError, "speaks TLS; see security.protocol"),
        (b"", PLAINTEXT, BrokerUnavailableError, r"does it want TLS or SASL \(security.protocol\)\?"),
        (b"", ALICE, BrokerUnavailableError, "closed by the broker$"),
    ],
)
def test_a_closed_connection_hints_at_security_protocol(
    word: bytes, security: Security, error: type[Exception], message: str
) -> None:
    async def test() -> None:
        client_loop().network.listen(lambda: Rude(word), PORT)
        with pytest.raises(error, match=message):
            await connect(security)

    against({}, test)
