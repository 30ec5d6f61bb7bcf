"""No exception stops a port from accepting, with either loop; a broken port reports it."""

import asyncio
import errno
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
import uvloop

from barnabas.broker.network.open_port import PortLost, SystemPort, open_port

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.SelectorEventLoop, uvloop.Loop]


class Greeter(asyncio.Protocol):
    """Sends one word to each client, and closes the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        asyncio.get_running_loop().call_soon(self._greet)

    def _greet(self) -> None:
        self._transport.write(b"hello")
        self._transport.close()


class Scene:
    """A port on one address, with a protocol that the test can make fail."""

    def __init__(self, port: SystemPort) -> None:
        self.port = port
        self.failures: Iterator[Exception] = iter(())
        self.lost: list[PortLost] = []
        self.noted: list[tuple[str, str]] = []
        port.serve(self._connect, self.lost.append, lambda event, reason: self.noted.append((event, reason)))

    def _connect(self) -> asyncio.Protocol:
        for failure in self.failures:
            raise failure
        return Greeter()

    async def heard(self) -> bytes:
        """All bytes that a new client receives."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port.number)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


def play(scene: Callable[[Scene], Awaitable[None]], loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        port = await open_port("127.0.0.1", 0, 50)
        try:
            await scene(Scene(port))
        finally:
            port.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_connection_for_which_there_is_no_memory_is_closed_and_the_next_one_served(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scene(scene: Scene) -> None:
        scene.failures = iter([MemoryError(), RuntimeError("broken")])
        assert [await scene.heard() for _ in range(4)] == [b"", b"", b"hello", b"hello"]
        assert scene.noted == [
            ("connection not accepted", "MemoryError"),
            ("connection not accepted", "broken"),
        ]
        assert not scene.lost

    play(scene, loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_without_descriptors_clients_wait_until_there_are_some(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scene(scene: Scene) -> None:
        await scene.heard()  # the loop opens some files at first use
        client = socket.socket()
        client.setblocking(False)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (_open_descriptors_end(), limits[1]))
        try:
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", scene.port.number))
            while not scene.noted:  # noqa: ASYNC110  only the note reports it
                await asyncio.sleep(0.001)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert scene.noted[0][0] == "accepting pauses"
        with client:
            assert await asyncio.get_running_loop().sock_recv(client, 10) == b"hello"

    play(scene, loop)


def _open_descriptors_end() -> int:
    """The least limit at which no file can be opened, if there are no free descriptors below it."""
    fillers: list[socket.socket] = []
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    while not fillers or fillers[-1].fileno() < highest:
        fillers.append(socket.socket())
    lowest_free = fillers[0].fileno()
    for filler in fillers:
        filler.close()
    return lowest_free


@pytest.mark.parametrize("loop", LOOPS)
def test_a_socket_that_no_longer_listens_ends_the_port(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        port = SystemPort([listening])
        lost: asyncio.Future[PortLost] = asyncio.get_running_loop().create_future()
        port.serve(Greeter, lost.set_result, lambda _event, _reason: None)
        number = port.number
        listening.shutdown(socket.SHUT_RDWR)
        assert str(await lost) == (
            f"The listener on port {number} failed, so the broker ended: Invalid argument."
        )
        assert listening.fileno() == -1

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


async def test_all_interfaces_listen_on_one_port() -> None:
    port = await open_port("", 0, 50)
    try:
        scene = Scene(port)
        assert await scene.heard() == b"hello"
    finally:
        port.close()


async def test_an_address_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(
            OSError, match=rf"127.0.0.1:{number} cannot be listened on: address already in use"
        ) as refused:
            await open_port("127.0.0.1", number, 50)
    assert refused.value.errno == errno.EADDRINUSE


async def test_a_host_that_cannot_be_found_is_named() -> None:
    with pytest.raises(OSError, match=r"the host no-such-host\.invalid cannot be found: .*--listen"):
        await open_port("no-such-host.invalid", 0, 1)
