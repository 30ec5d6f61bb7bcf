"""The server with real sockets: accepting, bounds, and an orderly end."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.loading import load_config
from barnabas.broker.network import server as server_module
from barnabas.broker.network import warming
from barnabas.broker.network.handler import Handler, RequestContext
from barnabas.broker.network.server import Server
from barnabas.broker.quotas.client_quotas import QuotaWindows
from barnabas.broker.quotas.connection_quotas import ConnectionQuotas
from barnabas.broker.security.users import Users
from barnabas.coordinator.metadata.client_quotas import CONNECTION_CREATION_RATE, IP
from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage
from barnabas.protocol.api import ApiKey
from barnabas.protocol.metadata_records import ConfigRecord, UserScramCredentialRecord
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.response_budget import EncodedBody, ResponseBudget
from tests.broker.network.edge_fakes import PLAIN_API, WAITING_API, FakeBroker, always, body, request_frame
from tests.storage.memory_filesystem import MemoryFileSystem


class Client:
    """A raw connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, frame: bytes) -> None:
        self.writer.write(frame)

    async def answer(self) -> tuple[int, bytes]:
        """Correlation id and body of the next answer."""
        size_bytes = int.from_bytes(await self.reader.readexactly(4), "big")
        frame = await self.reader.readexactly(size_bytes)
        return int.from_bytes(frame[:4], "big"), frame[4:]

    async def is_closed(self) -> bool:
        """Waits until the server closes; True if no byte came before that."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True


class BudgetedBroker(FakeBroker):
    """A broker with the response budget that all connections share."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__()
        self.image = MetadataImage()
        self.effective_config = EffectiveConfig(config, self.image)
        self.credentials: dict[tuple[str, int], UserScramCredentialRecord] = {}
        self.users = Users(self._credential, MemoryFileSystem())
        self.response_budget = ResponseBudget()
        self.long_work = LongWork(MemoryFileSystem())

    def _credential(self, name: str, mechanism: int) -> UserScramCredentialRecord | None:
        return self.credentials.get((name, mechanism))


class Bench:
    """A server with a fake broker, and the clients that the test has connected to it."""

    def __init__(self, server: Server, broker: BudgetedBroker) -> None:
        self.server = server
        self.broker = broker
        self.clients: list[Client] = []

    async def connect(self, listener_index: int = 0, host: str = "127.0.0.1") -> Client:
        port = self.server.listeners[listener_index].port
        client = Client(*await asyncio.open_connection(host, port))
        self.clients.append(client)
        return client

    async def connect_with(self, frame: bytes) -> Client:
        """A client whose first request is there before the server accepts its connection."""
        opened = socket.create_connection(("127.0.0.1", self.server.listeners[0].port))
        opened.sendall(frame)
        client = Client(*await asyncio.open_connection(sock=opened))
        self.clients.append(client)
        return client

    def metric(self, name: str) -> float:
        return self.broker.metrics.snapshot()[name]

    async def close(self) -> None:
        await self.server.close()
        for client in self.clients:
            client.writer.close()


@asynccontextmanager
async def serve(
    handlers: Mapping[int, Handler] | None = None,
    *settings: str,
    warmed_apis: Sequence[ApiKey] = (),
    stored: ConfigRecord | None = None,
) -> AsyncGenerator[Bench]:
    config = load_config(None, {}, ("listeners=PLAINTEXT://127.0.0.1:0", *settings))
    broker = BudgetedBroker(config)
    if stored is not None:
        broker.image.replay(stored, MetadataChanges())
    plain: dict[int, Handler] = {PLAIN_API: _plain}
    server = Server(broker, config, plain if handlers is None else handlers, warmed_apis=warmed_apis)
    await server.start()
    bench = Bench(server, broker)
    try:
        yield bench
    finally:
        await bench.close()


def _plain(*_: object) -> EncodedBody:
    return body("plain")


async def test_the_port_of_the_system_is_opened_and_advertised() -> None:
    async with serve() as bench:
        (listener,) = bench.server.listeners
        assert listener.port == listener.advertised_port != 0
        client = await bench.connect()
        client.send(request_frame(PLAIN_API, 1))
        assert await client.answer() == (1, b"plain")


async def test_hundreds_of_clients_that_connect_together_wait_in_the_systems_queue() -> None:
    """One that finds the queue full would try again after seconds."""
    async with serve() as bench:
        address = "127.0.0.1", bench.server.listeners[0].port
        with ExitStack() as opened:
            clients = [opened.enter_context(socket.socket()) for _ in range(500)]
            for client in clients:
                client.setblocking(False)
                client.connect_ex(address)
            # There was no await, so none is accepted. A client that is not connected raises OSError.
            assert {client.getpeername() for client in clients} == {address}


async def test_a_request_is_answered_for_the_listener_of_its_connection() -> None:
    seen: list[str] = []

    def handle(context: Any, request: object) -> EncodedBody:
        seen.append(context.listener.name)
        return body("")

    two = "listeners=PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
    async with serve({PLAIN_API: handle}, two) as bench:
        for index in range(2):
            client = await bench.connect(index)
            client.send(request_frame(PLAIN_API, 1))
            await client.answer()
    assert seen == ["PLAINTEXT", "OUTSIDE"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (("listeners=PLAINTEXT://0.0.0.0:0",), {"127.0.0.1", "127.0.0.2"}),
        (("listeners=A://0.0.0.0:0", "advertised.listeners=A://broker.example:9092"), {"broker.example"}),
    ],
)
async def test_on_all_interfaces_each_client_gets_the_address_of_its_connection(
    settings: tuple[str, ...], expected: set[str]
) -> None:
    def handle(context: RequestContext, request: object) -> EncodedBody:
        return body(context.listener.advertised_host)

    async with serve({PLAIN_API: handle}, *settings) as bench:
        told = [await _advertised(bench, host) for host in ("127.0.0.1", "127.0.0.2")]
    assert set(told) == expected


async def test_an_ipv6_address_is_advertised_without_brackets() -> None:
    def handle(context: RequestContext, request: object) -> EncodedBody:
        return body(context.listener.advertised_host)

    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("There is no IPv6 here.")
    async with serve({PLAIN_API: handle}, "listeners=PLAINTEXT://[::]:0") as bench:
        assert await _advertised(bench, "::1") == "::1"


async def _advertised(bench: Bench, host: str) -> str:
    client = await bench.connect(host=host)
    client.send(request_frame(PLAIN_API, 1))
    _, answer = await client.answer()
    return answer.decode()


async def test_unread_answers_count_in_the_budget_until_the_client_is_gone() -> None:
    def fetch(*_: object) -> EncodedBody:
        return EncodedBody([bytes(64 * 1024 * 1024)], bench.broker.response_budget.take(5))

    async with serve({PLAIN_API: fetch}) as bench:
        client = await bench.connect()
        client.send(request_frame(PLAIN_API, 1))
        await client.reader.readexactly(4)
        assert bench.broker.response_budget.taken_bytes == 5
        client.writer.transport.abort()
        await bench.broker.connection_gone.wait()
        assert bench.broker.response_budget.taken_bytes == 0


async def test_an_address_in_use_is_refused_and_leaves_nothing_open() -> None:
    async with serve() as bench:
        taken = bench.server.listeners[0].port
        config = load_config(None, {}, (f"listeners=A://127.0.0.1:0,B://127.0.0.1:{taken}",))
        second = Server(BudgetedBroker(config), config, {PLAIN_API: _plain})
        with pytest.raises(OSError, match="address already in use"):
            await second.start()


async def test_a_long_poll_on_one_connection_does_not_stop_another() -> None:
    wait: asyncio.Future[EncodedBody] = asyncio.get_running_loop().create_future()
    async with serve({PLAIN_API: _plain, WAITING_API: always(wait)}) as bench:
        waiting_client, other_client = await bench.connect(), await bench.connect()
        waiting_client.send(request_frame(WAITING_API, 1))
        other_client.send(request_frame(PLAIN_API, 2))
        assert await other_client.answer() == (2, b"plain")
        wait.set_result(body("records"))
        assert await waiting_client.answer() == (1, b"records")


async def test_a_failing_handler_closes_no_other_connection() -> None:
    def fail(*_: object) -> EncodedBody:
        raise RuntimeError("broken handler")

    async with serve({PLAIN_API: _plain, WAITING_API: fail}) as bench:
        broken, sound = await bench.connect(), await bench.connect()
        with capture_logs() as lines:
            broken.send(request_frame(WAITING_API, 1))
            assert await broken.is_closed()
        sound.send(request_frame(PLAIN_API, 2))
        assert await sound.answer() == (2, b"plain")
        assert [line["event"] for line in lines if line["log_level"] == "error"] == ["request failed"]


async def test_a_connection_above_max_connections_is_closed_at_once() -> None:
    async with serve(None, "max.connections=2") as bench:
        first, _second = await bench.connect(), await bench.connect()
        first.send(request_frame(PLAIN_API, 1))
        await first.answer()
        third = await bench.connect()
        assert await third.is_closed()
        first.send(request_frame(PLAIN_API, 2))
        assert await first.answer() == (2, b"plain")
        assert bench.metric("barnabas_connections_refused_total") == 1
        assert bench.broker.closed_connection_ids == []


async def test_a_frame_above_socket_request_max_bytes_closes_the_connection() -> None:
    async with serve(None, "socket.request.max.bytes=100") as bench:
        client = await bench.connect()
        client.send((101).to_bytes(4, "big"))
        assert await client.is_closed()


async def test_an_http_request_is_answered_in_http_and_named_in_the_log_with_its_sender() -> None:
    async with serve() as bench:
        with capture_logs() as lines:
            client = await bench.connect()
            client.send(b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n")
            answer = await client.reader.read()
        host, port = client.writer.get_extra_info("sockname")
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b"Kafka" in answer.partition(b"\r\n\r\n")[2]
        (line,) = (line for line in lines if line["log_level"] == "warning")
        assert line["client"] == f"{host}:{port}"
        assert line["reason"] == (
            "An HTTP request (GET /metrics) came to this Kafka listener, which does not use HTTP."
        )


async def test_a_tls_client_that_tries_again_is_logged_once() -> None:
    async with serve() as bench:
        with capture_logs() as lines:
            for _ in range(5):
                client = await bench.connect()
                client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
                assert await client.is_closed()
        (line,) = (line for line in lines if line["log_level"] == "warning")
        assert "TLS ClientHello" in line["reason"]


async def test_an_idle_connection_is_closed_and_one_that_waits_for_an_answer_is_not() -> None:
    wait: asyncio.Future[EncodedBody] = asyncio.get_running_loop().create_future()
    handlers = {PLAIN_API: _plain, WAITING_API: always(wait)}
    async with serve(handlers, "connections.max.idle.ms=40") as bench:
        waiting_client = await bench.connect_with(request_frame(WAITING_API, 1))
        silent = await bench.connect()
        assert await silent.is_closed()
        wait.set_result(body("records"))
        assert await waiting_client.answer() == (1, b"records")
        assert bench.metric("barnabas_connections_idle_closed_total") >= 1


@pytest.mark.parametrize("setting", ["connections.max.idle.ms=600000", "connections.max.idle.ms=40"])
async def test_a_connection_whose_address_connects_too_often_is_closed_after_a_wait(setting: str) -> None:
    async with serve(None, setting) as bench:
        windows = QuotaWindows(sample_count=1, window_ms=50)
        bench.broker.connection_quotas = ConnectionQuotas(windows, bench.broker.clock.monotonic_ms)
        once_in_a_while = {CONNECTION_CREATION_RATE: 0.001}
        bench.broker.connection_quotas.quotas_changed({((IP, None),): once_in_a_while})
        client = await bench.connect()
        client.send(request_frame(PLAIN_API, 1))
        assert await client.is_closed(), "and nothing is answered"


async def test_the_broker_learns_which_connection_was_closed() -> None:
    async with serve() as bench:
        client = await bench.connect()
        client.send(request_frame(PLAIN_API, 1))
        await client.answer()
        assert bench.metric("barnabas_connections") == 1
        client.writer.close()
        await bench.broker.connection_gone.wait()
        assert bench.broker.closed_connection_ids == [1]
        assert bench.metric("barnabas_connections") == 0


async def test_closing_answers_requests_in_flight_and_accepts_no_more() -> None:
    appended = asyncio.Event()
    started = asyncio.Event()

    async def append(*_: object) -> EncodedBody:
        started.set()
        await appended.wait()
        return body("appended")

    async with serve({PLAIN_API: append}) as bench:
        client = await bench.connect()
        client.send(request_frame(PLAIN_API, 1))
        await started.wait()
        closing = asyncio.ensure_future(bench.server.close())
        await asyncio.sleep(0)
        with pytest.raises(OSError):
            await bench.connect()
        appended.set()
        assert await client.answer() == (1, b"appended")
        assert await client.is_closed()
        await closing


async def test_closing_waits_for_requests_whose_client_is_gone() -> None:
    appended, started, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def append(*_: object) -> EncodedBody:
        started.set()
        await appended.wait()
        finished.set()
        return body("appended")

    async with serve({PLAIN_API: append}) as bench:
        client = await bench.connect()
        client.send(request_frame(PLAIN_API, 1))
        await started.wait()
        client.writer.transport.abort()
        await bench.broker.connection_gone.wait()
        closing = asyncio.ensure_future(bench.server.close())
        await asyncio.sleep(0)
        assert not closing.done()
        appended.set()
        await closing
        assert finished.is_set()


async def test_closing_cuts_off_clients_that_do_not_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SHUTDOWN_GRACE_SECONDS", 0.02)
    started = asyncio.Event()

    async def never(*_: object) -> EncodedBody:
        started.set()
        unanswered: asyncio.Future[EncodedBody] = asyncio.get_running_loop().create_future()
        return await unanswered

    async with serve({PLAIN_API: never}) as bench:
        client = await bench.connect()
        client.send(request_frame(PLAIN_API, 1))
        await started.wait()
        with capture_logs() as lines:
            await bench.server.close()
        assert await client.is_closed()
        assert [line["event"] for line in lines if line["log_level"] == "warning"] == ["connections cut off"]


class NotedHandlers(dict[int, Handler]):
    """Each handler is loaded at its first use; `last` is done when that of EndTxn is."""

    def __init__(self) -> None:
        super().__init__()
        self.last: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __missing__(self, api_key: int) -> Handler:
        self[api_key] = _plain
        if api_key == ApiKey.END_TXN:
            self.last.set_result(None)
        return _plain


async def test_the_handlers_of_warmed_apis_are_loaded_in_their_order_before_they_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warming, "_STEP_SECONDS", 0)
    handlers = NotedHandlers()
    warmed = [ApiKey.METADATA, ApiKey.SHARE_FETCH, ApiKey.END_TXN]
    async with serve(handlers, warmed_apis=warmed):
        await handlers.last
    assert list(handlers) == warmed
