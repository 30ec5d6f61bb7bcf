"""The bytes that have arrived on a connection while its reading is paused."""

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from barnabas.broker.network.unread_bytes import unread_bytes
from tests.broker.network.edge_fakes import FakeTransport


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_received_bytes_count_until_they_are_read_or_the_connection_ends(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def count() -> tuple[int, int, int]:
        near, far = socket.socketpair()
        near.setblocking(False)
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=near)
        transport.pause_reading()
        before = unread_bytes(transport)
        far.sendall(bytes(1000))
        come = unread_bytes(transport)
        transport.abort()
        far.close()
        return before, come, unread_bytes(transport)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(count()) == (0, 1000, 0)


def test_a_transport_without_a_socket_has_none() -> None:
    assert unread_bytes(_WithoutSocket()) == 0


class _WithoutSocket(FakeTransport):
    def get_extra_info(self, name: str, default: object = None) -> object:
        return default
