"""HTTP over real sockets: its port, its connections and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

import pytest
from structlog.typing import EventDict

from barnabas.broker.http import connections
from barnabas.broker.http.application import make_application
from barnabas.broker.http.connections import CONNECTIONS_MAX, HEAD_BYTES_MAX, HttpServer
from barnabas.broker.http.opening import open_http
from barnabas.broker.http.protection import AccessRules
from barnabas.broker.http.routes import Call, Operation, without_parameters
from tests.conformance.harness import open_lab

RULES = AccessRules(frozenset(), None)
REQUEST = b"GET /wait HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Gate:
    """An operation that answers once it is opened."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def wait(self, _: Call) -> None:
        self.entered.set()
        await self.opened.wait()


@asynccontextmanager
async def served(gate: Gate) -> AsyncGenerator[HttpServer]:
    operation = Operation(
        path="/wait",
        handler=without_parameters(gate.wait),
        name="wait",
        summary="Wait",
        tag="test",
        status=HTTPStatus.NO_CONTENT,
    )
    server = HttpServer(make_application((operation,), RULES))
    await server.start("127.0.0.1", 0)
    yield server
    gate.opened.set()
    await server.close()


async def test_a_request_under_way_is_answered_when_the_server_closes() -> None:
    gate = Gate()
    async with served(gate) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(REQUEST)
        await gate.entered.wait()
    assert (await reader.read()).startswith(b"HTTP/1.1 204")
    writer.close()
    await writer.wait_closed()


async def test_a_request_that_never_ends_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "GRACE_SECONDS", 0.01)
    gate = Gate()
    async with served(gate) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(REQUEST)
        await gate.entered.wait()
        await server.close()
        assert b"204" not in await reader.read()
        writer.close()


async def test_a_connection_too_many_is_closed_at_once() -> None:
    async with served(Gate()) as server:
        opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(CONNECTIONS_MAX)]
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        opened[0][1].write(b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await opened[0][0].readline()).startswith(b"HTTP/1.1 404")
        for _, one in opened:
            one.close()


async def test_silent_and_slow_clients_are_cut_off_but_not_those_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)
    gate = Gate()
    async with served(gate) as server:
        waiting, its_writer = await asyncio.open_connection("127.0.0.1", server.port)
        its_writer.write(REQUEST)
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
