"""Bytes that are delayed, cut, lost, or waiting for a reader."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tests.simulation.simulated_network import SOCKET_BYTES, Link, SimulatedNetwork
from tests.simulation.virtual_loop import VirtualLoop, run_to_end


class Ear(asyncio.Protocol):
    """Keeps everything it receives."""

    def __init__(self) -> None:
        self.heard = b""
        self.lost: list[Exception | None] = []
        self.pauses: list[bool] = []

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)

    def pause_writing(self) -> None:
        self.pauses.append(True)

    def resume_writing(self) -> None:
        self.pauses.append(False)


class Scene:
    """A network with one connection; `client` and `server` are the data that its ends received."""

    def __init__(self, network: SimulatedNetwork, link: Link, client: Ear, server: Ear) -> None:
        self.network, self.link, self.client, self.server = network, link, client, server


def play(scene: Callable[[Scene], Awaitable[None]]) -> None:
    """Plays the scene with a few seeds."""
    for seed in range(10):
        loop = VirtualLoop()

        async def main(seed: int = seed) -> None:
            network = SimulatedNetwork(Random(seed))
            client, server = Ear(), Ear()
            network.listen(lambda: server, 1)
            await scene(Scene(network, await network.connect(lambda: client, 1), client, server))

        run_to_end(loop, main())


def test_bytes_arrive_in_order_after_a_delay() -> None:
    async def scene(scene: Scene) -> None:
        for number in range(10):
            scene.link.client.write(bytes([number]) * 3)
        await asyncio.sleep(0)
        assert scene.server.heard == b""
        await asyncio.sleep(1)
        assert scene.server.heard == b"".join(bytes([number]) * 3 for number in range(10))

    play(scene)


def test_a_connection_to_a_closed_port_is_refused() -> None:
    async def scene(scene: Scene) -> None:
        with pytest.raises(ConnectionRefusedError):
            await scene.network.connect(Ear, 2)

    play(scene)


def test_bytes_written_before_the_end_arrive() -> None:
    async def scene(scene: Scene) -> None:
        scene.link.client.write(b"last words")
        scene.link.client.close()
        await asyncio.sleep(1)
        assert scene.server.heard == b"last words"
        assert scene.server.lost == [None]
        assert scene.client.lost == [None]
        assert scene.network.links == []

    play(scene)


def test_both_ends_notice_a_cut() -> None:
    async def scene(scene: Scene) -> None:
        scene.link.cut()
        await asyncio.sleep(1)
        assert [type(error) for error in (*scene.client.lost, *scene.server.lost)] == [
            ConnectionResetError,
            ConnectionResetError,
        ]

    play(scene)


def test_no_end_notices_silence() -> None:
    async def scene(scene: Scene) -> None:
        scene.link.fall_silent()
        scene.link.client.write(b"hello?")
        scene.link.server.write(b"hello?")
        scene.link.client.close()
        await asyncio.sleep(100)
        assert scene.server.heard == scene.client.heard == b""
        assert scene.server.lost == []

    play(scene)


def test_when_silence_ends_both_ends_notice_it() -> None:
    async def scene(scene: Scene) -> None:
        scene.link.fall_silent()
        scene.network.end_silence()
        await asyncio.sleep(1)
        assert [type(one) for one in scene.client.lost + scene.server.lost] == [ConnectionResetError] * 2

    play(scene)


def test_when_silence_ends_the_clients_of_a_machine_that_vanished_notice_it() -> None:
    async def scene(scene: Scene) -> None:
        scene.network.vanish()
        await asyncio.sleep(100)
        assert scene.client.lost == []
        scene.network.end_silence()
        await asyncio.sleep(1)
        assert [type(one) for one in scene.client.lost] == [ConnectionResetError]

    play(scene)


def test_a_reader_that_pauses_makes_the_writer_pause() -> None:
    async def scene(scene: Scene) -> None:
        scene.link.server.set_write_buffer_limits(high=100)
        scene.link.client.pause_reading()
        scene.link.server.write(bytes(SOCKET_BYTES + 101))
        await asyncio.sleep(1)
        assert scene.server.pauses == [True]
        assert scene.client.heard == b""
        scene.link.client.resume_reading()
        await asyncio.sleep(1)
        assert scene.server.pauses == [True, False]
        assert len(scene.client.heard) == SOCKET_BYTES + 101

    play(scene)


def test_the_end_of_the_process_resets_its_connections() -> None:
    async def scene(scene: Scene) -> None:
        scene.network.end_process()
        await asyncio.sleep(1)
        assert [type(error) for error in scene.client.lost] == [ConnectionResetError]
        with pytest.raises(ConnectionRefusedError):
            await scene.network.connect(Ear, 1)

    play(scene)


def test_clients_do_not_notice_a_loss_of_power() -> None:
    async def scene(scene: Scene) -> None:
        scene.network.vanish()
        await asyncio.sleep(100)
        assert scene.client.lost == []

    play(scene)
