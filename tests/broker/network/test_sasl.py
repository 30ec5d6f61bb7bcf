"""Listeners with SASL, with real sockets, spoken to in frames: mechanisms, refusals, sessions and bounds."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from structlog.testing import capture_logs

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.network.handler import RequestContext
from barnabas.client.network.scram import ScramClient
from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.api import ClientApi
from barnabas.protocol.client.consumer_apis import SASL_AUTHENTICATE, SASL_HANDSHAKE
from barnabas.protocol.errors import ErrorCode
from barnabas.runtime.response_budget import EncodedBody
from tests.broker.network.certificates import Authority
from tests.broker.network.edge_fakes import PLAIN_API, WAITING_API, body, request_frame
from tests.broker.network.test_server import Bench, Client, serve
from tests.broker.security.stored_credentials import credentials

PASSWORD: Final = "s=cr,et"
SETTINGS: Final = (
    "listeners=SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms=0",
)
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
INVALID: Final = "Authentication failed during authentication due to invalid credentials with SASL mechanism "


def whoami(context: RequestContext, _: object) -> EncodedBody:
    return body(str(context.principal))


@asynccontextmanager
async def guarded(*settings: str) -> AsyncGenerator[Bench]:
    """A server with the users alice and bob."""
    handlers = {PLAIN_API: whoami, WAITING_API: whoami}
    async with serve(handlers, *SETTINGS, *settings) as bench:
        for name in ("alice", "bob"):
            for credential in credentials(name, PASSWORD):
                bench.broker.credentials[name, credential.mechanism] = credential
        yield bench


class Speaker:
    """A client that authenticates."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, api: ClientApi[Any, Any], request: object, version: int | None = None) -> Any:
        version = api.max_version if version is None else version
        self.client.send(api.encode(version, 7, "test", request))
        _, answer = await self.client.answer()
        frame = struct.pack(">i", 7) + answer
        return api.decode(version, frame)

    async def handshake(self, mechanism: str) -> Any:
        return await self.ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism))

    async def say(self, message: bytes, version: int = 2) -> Any:
        return await self.ask(SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message), version)

    async def authenticate(self, mechanism: str, name: str = "alice", password: str = PASSWORD) -> Any:
        """The answer to the last message, or to the first one that is refused."""
        assert (await self.handshake(mechanism)).error_code is ErrorCode.none
        if mechanism == "PLAIN":
            return await self.say(f"\0{name}\0{password}".encode())
        scram = ScramClient(HASHES[mechanism], name, password, "nonce-of-the-client")
        challenge = await self.say(scram.first())
        if challenge.error_code is not ErrorCode.none:
            return challenge
        last = await self.say(scram.final(challenge.auth_bytes))
        if last.error_code is ErrorCode.none:
            scram.verify(last.auth_bytes)
        return last

    async def whoami(self) -> bytes:
        self.client.send(request_frame(WAITING_API, 1))
        return (await self.client.answer())[1]


async def speaker(bench: Bench) -> Speaker:
    return Speaker(await bench.connect())


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_user_authenticates_and_is_the_principal(mechanism: str) -> None:
    async with guarded() as bench:
        client = await speaker(bench)
        client.client.send(request_frame(PLAIN_API, 1))
        assert (await client.client.answer())[1] == b"User:ANONYMOUS"
        answer = await client.authenticate(mechanism)
        assert (answer.error_code, answer.error_message) == (ErrorCode.none, "")
        assert await client.whoami() == b"User:alice"
        metric = "kafka_server_socket_server_metrics_successful_authentication_total{listener=SASL_PLAINTEXT}"
        assert bench.metric(metric) == 1


@pytest.mark.parametrize("name", ["alice", "nobody"])
@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", f"{INVALID}SCRAM-SHA-256"),
        ("SCRAM-SHA-512", f"{INVALID}SCRAM-SHA-512"),
    ],
)
async def test_a_wrong_password_and_an_unknown_user_get_the_same_answer(
    mechanism: str, message: str, name: str
) -> None:
    with capture_logs() as logged:
        async with guarded() as bench:
            client = await speaker(bench)
            answer = await client.authenticate(mechanism, name, "wrong")
            assert (answer.error_code, answer.error_message) == (
                ErrorCode.sasl_authentication_failed,
                message,
            )
            assert await client.client.is_closed()
            metric = "kafka_server_socket_server_metrics_failed_authentication_total{listener=SASL_PLAINTEXT}"
            assert bench.metric(metric) == 1
    (line,) = [line for line in logged if line["event"] == "authentication failed"]
    assert (line["client"], line["reason"]) == ("/127.0.0.1", message)
    assert "wrong" not in repr(line)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"alice\0" + PASSWORD.encode(), "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0" + PASSWORD.encode(),
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
async def test_a_malformed_message_is_refused_with_kafkas_text(message: bytes, text: str) -> None:
    async with guarded() as bench:
        client = await speaker(bench)
        await client.handshake("PLAIN")
        assert (await client.say(message)).error_message == text


@pytest.mark.parametrize(
    "message",
    [
        b"n,,n=alice",
        b"\xff",
        b"n,,n=alice,r=a,r=b",
        b"",
        "n,,n=\ufdfa,r=a".encode(),
        b"n,,n=alice,r=" + b"a" * 1024,
    ],
)
async def test_a_malformed_message_of_scram_is_refused(message: bytes) -> None:
    async with guarded() as bench:
        client = await speaker(bench)
        await client.handshake("SCRAM-SHA-256")
        assert (await client.say(message)).error_message == f"{INVALID}SCRAM-SHA-256"


async def test_delegation_tokens_are_refused_by_name() -> None:
    async with guarded() as bench:
        client = await speaker(bench)
        await client.handshake("SCRAM-SHA-256")
        answer = await client.say(b"n,,n=token,r=nonce,tokenauth=true")
        assert answer.error_message == "Authentication failed: delegation tokens are not supported"


async def test_another_mechanism_is_refused_with_those_that_are_offered() -> None:
    async with guarded("listener.name.sasl_plaintext.sasl.enabled.mechanisms=SCRAM-SHA-512") as bench:
        client = await speaker(bench)
        answer = await client.handshake("PLAIN")
        assert answer.error_code is ErrorCode.unsupported_sasl_mechanism
        assert answer.mechanisms == ("SCRAM-SHA-512",)
        assert await client.client.is_closed()


@pytest.mark.parametrize("frames", [[WAITING_API], [PLAIN_API, WAITING_API], [ApiKey.SASL_AUTHENTICATE]])
async def test_nothing_passes_before_the_authentication(frames: list[int]) -> None:
    async with guarded() as bench:
        client = await bench.connect()
        for number, api_key in enumerate(frames):
            client.send(request_frame(api_key, number))
        for _ in frames[1:]:
            await client.answer()
        assert await client.is_closed()


async def test_after_the_handshake_only_messages_of_the_mechanism_pass() -> None:
    async with guarded() as bench:
        client = await speaker(bench)
        await client.handshake("PLAIN")
        client.client.send(request_frame(WAITING_API, 1))
        assert await client.client.is_closed()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_messages_without_headers_follow_the_first_version_of_the_handshake(mechanism: str) -> None:
    async with guarded() as bench:
        client = await bench.connect()
        name = mechanism.encode()
        client.send(request_frame(ApiKey.SASL_HANDSHAKE, 1, 0, struct.pack(">h", len(name)) + name))
        await client.answer()

        async def say(message: bytes) -> bytes:
            client.send(struct.pack(">i", len(message)) + message)
            return await client.reader.readexactly(int.from_bytes(await client.reader.readexactly(4)))

        if mechanism == "PLAIN":
            assert await say(f"\0alice\0{PASSWORD}".encode()) == b""
        else:
            scram = ScramClient("sha256", "alice", PASSWORD, "nonce")
            scram.verify(await say(scram.final(await say(scram.first()))))
        assert await Speaker(client).whoami() == b"User:alice"


async def test_passwords_of_the_configuration_go_with_plain() -> None:
    jaas = 'PlainLoginModule required username="x" user_carol="s\\"t;" user_alice=own;'
    async with guarded(f"listener.name.sasl_plaintext.plain.sasl.jaas.config={jaas}") as bench:
        for name, password in (("carol", 's"t;'), ("alice", "own"), ("bob", PASSWORD)):
            client = await speaker(bench)
            assert (await client.authenticate("PLAIN", name, password)).error_code is ErrorCode.none
            assert await client.whoami() == f"User:{name}".encode()


async def test_with_tls_as_well(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    path = authority.write_pem(authority.issue())
    settings = (
        "listeners=SASL_SSL://127.0.0.1:0",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={path}",
        "ssl.client.auth=required",
    )
    async with guarded(*settings) as bench:
        port = bench.server.listeners[0].port
        opened = await asyncio.open_connection("127.0.0.1", port, ssl=authority.client_context())
        client = Speaker(Client(*opened))
        bench.clients.append(client.client)
        await client.authenticate("SCRAM-SHA-512")
        assert await client.whoami() == b"User:alice", "certificates are only asked for with the prefix"


class TestSessions:
    SESSION: Final = "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms=60000"

    async def test_its_length_is_told_and_it_ends_at_the_next_request(self) -> None:
        async with guarded(self.SESSION) as bench:
            client = await speaker(bench)
            answer = await client.authenticate("SCRAM-SHA-256")
            assert answer.session_lifetime.total_seconds() == 60
            bench.broker.clock.now_ms += 60_000
            assert await client.whoami() == b"User:alice"
            bench.broker.clock.now_ms += 1
            client.client.send(request_frame(WAITING_API, 1))
            assert await client.client.is_closed()
            metric = (
                "kafka_server_socket_server_metrics_expired_connections_killed_count{listener=SASL_PLAINTEXT}"
            )
            assert bench.metric(metric) == 1

    async def test_a_client_authenticates_again(self) -> None:
        async with guarded(self.SESSION) as bench:
            client = await speaker(bench)
            await client.authenticate("SCRAM-SHA-256")
            bench.broker.clock.now_ms += 70_000
            await client.authenticate("SCRAM-SHA-256")
            assert await client.whoami() == b"User:alice"
            metric = (
                "kafka_server_socket_server_metrics_successful_reauthentication_total"
                "{listener=SASL_PLAINTEXT}"
            )
            assert bench.metric(metric) == 1

    async def test_only_as_the_same_principal(self) -> None:
        async with guarded(self.SESSION) as bench:
            client = await speaker(bench)
            await client.authenticate("SCRAM-SHA-256")
            bench.broker.clock.now_ms += 2_000
            answer = await client.authenticate("SCRAM-SHA-256", "bob")
            assert answer.error_message == (
                "Cannot change principals during re-authentication from User.alice: User.bob"
            )
            assert await client.client.is_closed()

    async def test_only_with_the_same_mechanism(self) -> None:
        async with guarded(self.SESSION) as bench:
            client = await speaker(bench)
            await client.authenticate("SCRAM-SHA-256")
            bench.broker.clock.now_ms += 2_000
            request = SaslHandshakeRequest(mechanism="PLAIN")
            client.client.send(SASL_HANDSHAKE.encode(1, 7, "test", request))
            assert await client.client.is_closed()


class TestBounds:
    async def test_a_password_is_not_computed_for_a_client_that_has_gone(self) -> None:
        async with guarded() as bench:
            computed: list[str] = []
            has_password = bench.broker.users.has_password
            begun = asyncio.Event()

            async def slow(name: str, password: str) -> bool:
                computed.append("begun")
                begun.set()
                await asyncio.Event().wait()
                return await has_password(name, password)

            bench.broker.users.has_password = slow  # type: ignore[method-assign]
            client = await speaker(bench)
            await client.handshake("PLAIN")
            message = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
            client.client.send(SASL_AUTHENTICATE.encode(2, 8, "test", message))
            await begun.wait()
            client.client.writer.close()
            await bench.broker.connection_gone.wait()
            await bench.server.close()
            assert computed == ["begun"], "the server does not wait for it"

    async def test_a_client_that_does_not_authenticate_in_time_is_cut_off(self) -> None:
        async with guarded("connection.authentication.timeout.ms=20") as bench:
            client = await speaker(bench)
            await client.handshake("PLAIN")
            assert await client.client.is_closed()

    async def test_frames_are_small_until_the_client_has_authenticated(self) -> None:
        async with guarded("sasl.server.max.receive.size=1000") as bench:
            stranger = await bench.connect()
            stranger.send(request_frame(PLAIN_API, 1, body=bytes(1000)))
            assert await stranger.is_closed()
            client = await speaker(bench)
            await client.authenticate("PLAIN")
            client.client.send(request_frame(WAITING_API, 1, client=b"x" * 1000))
            assert (await client.client.answer())[1] == b"User:alice"

    async def test_the_answer_to_a_failure_waits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        waited: list[float] = []

        sleep = asyncio.sleep

        async def noted(seconds: float) -> None:
            waited.append(seconds)
            await sleep(0)

        async with guarded("connection.failed.authentication.delay.ms=250") as bench:
            client = await speaker(bench)
            monkeypatch.setattr(asyncio, "sleep", noted)
            await client.authenticate("PLAIN", "alice", "wrong")
            assert waited == [0.25]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            ["sasl.enabled.mechanisms=GSSAPI"],
            "Listener SASL_PLAINTEXT: sasl.enabled.mechanisms is GSSAPI, and must name some of PLAIN, ",
        ),
        (
            ["sasl.enabled.mechanisms=scram-sha-256"],
            "Listener SASL_PLAINTEXT: sasl.enabled.mechanisms is scram-sha-256, and must name some of ",
        ),
        (
            ["listener.name.sasl_plaintext.plain.sasl.jaas.config=PlainLoginModule required user_a=b"],
            "listener.name.sasl_plaintext.plain.sasl.jaas.config does not end with a semicolon.",
        ),
        (
            ["listener.name.sasl_plaintext.plain.sasl.jaas.config=PlainLoginModule user_a=s3cret;"],
            "listener.name.sasl_plaintext.plain.sasl.jaas.config is not of the form: Class required ",
        ),
        (
            ["listener.name.sasl_plaintext.plain.sasl.jaas.config=M required user_a=b s3cret;"],
            "listener.name.sasl_plaintext.plain.sasl.jaas.config: its option number 2 is not of the form ",
        ),
        (
            ["listener.name.sasl_plaintext.plain.sasl.jaas.config=M required user_a=s3cret{;"],
            "listener.name.sasl_plaintext.plain.sasl.jaas.config has a sign at position 25 that is not ",
        ),
    ],
)
async def test_a_listener_to_which_nobody_could_authenticate_is_refused(
    settings: list[str], complaint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        async with guarded(*settings):
            pass
    assert str(refused.value).startswith(complaint)
    assert "s3cret" not in str(refused.value)
