"""HTTP over real sockets: its port, its connections and its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

import pytest
from starlette.responses import Response
from structlog.typing import EventDict

from barnabas.broker.http import connections
from barnabas.broker.http.application import make_application
from barnabas.broker.http.connections import CONNECTIONS_MAX, HEAD_BYTES_MAX, HttpServer
from barnabas.broker.http.health import LIVENESS_PATH
from barnabas.broker.http.opening import open_http
from barnabas.broker.http.protection import AccessRules
from barnabas.broker.http.routes import Answer, Call, Operation, without_parameters
from tests.conformance.harness import open_lab

RULES = AccessRules(frozenset(), None)


TEXT_BYTES = 32 * 1024 * 1024
"""More than the system's buffers of two sockets hold."""


class Gate:
    """An operation that answers once it is opened."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def wait(self, _: Call) -> None:
        self.entered.set()
        await self.opened.wait()


async def text(_: Call) -> Response:
    return Response(bytes(TEXT_BYTES))


async def live(_: Call) -> Response:
    return Response(b"alive")


def get(
    path: str, handle: Callable[[Call], Awaitable[Answer]], status: HTTPStatus = HTTPStatus.OK
) -> Operation:
    return Operation(
        path=path, handler=without_parameters(handle), name=path, summary=path, tag="test", status=status
    )


@asynccontextmanager
async def served(gate: Gate) -> AsyncGenerator[HttpServer]:
    operations = (
        get("/wait", gate.wait, HTTPStatus.NO_CONTENT),
        get("/text", text),
        get(LIVENESS_PATH, live),
    )
    server = HttpServer(make_application(operations, RULES))
    await server.start("127.0.0.1", 0)
    yield server
    gate.opened.set()
    await server.close()


def request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


async def ask(server: HttpServer, path: str) -> bytes:
    """The whole answer on a connection that the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request(path).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    answer = await reader.read()
    writer.close()
    return answer


async def connect_with_small_buffer(server: HttpServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", server.port))
    return await asyncio.open_connection(sock=client)


async def test_a_request_under_way_is_answered_when_the_server_closes() -> None:
    gate = Gate()
    async with served(gate) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request("/wait"))
        await gate.entered.wait()
    assert (await reader.read()).startswith(b"HTTP/1.1 204")
    writer.close()
    await writer.wait_closed()


async def test_a_request_that_never_ends_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "GRACE_SECONDS", 0.01)
    gate = Gate()
    async with served(gate) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request("/wait"))
        await gate.entered.wait()
        await server.close()
        assert b"204" not in await reader.read()
        writer.close()


async def test_a_connection_too_many_is_answered_only_at_health_checks() -> None:
    async with served(Gate()) as server:
        opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(CONNECTIONS_MAX)]
        for path, status in ((LIVENESS_PATH, b"200"), ("/nothing", b"503"), (LIVENESS_PATH, b"200")):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(request(path))
            assert (await reader.read()).startswith(b"HTTP/1.1 " + status)
            writer.close()
        opened[0][1].write(request("/nothing"))
        assert (await opened[0][0].readline()).startswith(b"HTTP/1.1 404")
        for _, writer in opened:
            writer.close()


async def test_a_health_check_takes_the_place_of_the_oldest_connection_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(connections, "HEALTH_CONNECTIONS_MAX", 3)
    async with served(Gate()) as server:
        opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2 + 3)]
        assert b"alive" in await ask(server, LIVENESS_PATH)
        with suppress(ConnectionResetError):
            assert await opened[2][0].read() == b""
        opened[3][1].write(request(LIVENESS_PATH))
        assert (await opened[3][0].readline()).startswith(b"HTTP/1.1 200")
        for _, writer in opened:
            writer.close()


async def test_a_client_that_never_reads_its_answers_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 1)
    async with served(Gate()) as server:
        _, writer = await connect_with_small_buffer(server)
        writer.write(3 * request("/text"))
        while (await ask(server, "/nothing")).startswith(b"HTTP/1.1 503"):
            server.sweep()
        assert (await ask(server, "/nothing")).startswith(b"HTTP/1.1 404"), "there is room again"
        writer.transport.abort()


async def test_a_client_that_reads_slowly_gets_its_whole_answer() -> None:
    async with served(Gate()) as server:
        reader, writer = await connect_with_small_buffer(server)
        writer.write(request("/text"))
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(4):
            await reader.readexactly(TEXT_BYTES // 4)
            server.sweep()
        writer.close()


async def test_silent_and_slow_clients_are_cut_off_but_not_those_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)
    gate = Gate()
    async with served(gate) as server:
        waiting, its_writer = await asyncio.open_connection("127.0.0.1", server.port)
        its_writer.write(request("/wait"))
        await gate.entered.wait()
        for sent in (
            b"",
            b"GET /wait HTT",
            b"POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(sent)
            with suppress(ConnectionResetError):
                await reader.read()
            writer.close()
        gate.opened.set()
        assert (await waiting.readline()).startswith(b"HTTP/1.1 204")
        its_writer.close()


async def test_the_server_closes_beside_a_client_that_speaks_no_http() -> None:
    async with served(Gate()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"\x00\x00\x00\x10 a frame of Kafka\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        silent, its_writer = await asyncio.open_connection("127.0.0.1", server.port)
        await server.close()
        assert await silent.read() == b""
        writer.close()
        its_writer.close()


async def test_a_long_head_is_refused() -> None:
    async with served(Gate()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * (HEAD_BYTES_MAX + 100))
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        writer.close()


async def test_a_port_in_use_is_a_warning_and_the_broker_serves(log_lines: list[EventDict]) -> None:
    async with served(Gate()) as other, open_lab(http__listener=str(other.port)) as lab:
        assert await open_http(lab.broker, lab.broker.config.http) is None
        await lab.create_topic("t")
    [line] = [line for line in log_lines if line["event"] == "the broker serves without HTTP"]
    assert line["log_level"] == "warning"
    assert "address already in use. Name another address in http.listener" in line["reason"]


async def test_the_log_names_the_address(log_lines: list[EventDict]) -> None:
    async with open_lab(http__listener="0") as lab:
        server = await open_http(lab.broker, lab.broker.config.http)
        assert server is not None
        [line] = [line for line in log_lines if line["event"] == "HTTP is served"]
        assert line["address"] == f"http://{server.address}"
        await server.close()


async def test_without_a_setting_there_is_no_server() -> None:
    async with open_lab() as lab:
        assert await open_http(lab.broker, lab.broker.config.http) is None
