"""Runs a broker for tests in this process: on a loop whose time can be advanced, with the controls beside it.

It prints one line, a JSON object with its addresses, when it is ready. It ends with a signal, or when its
standard input ends: the process of the tests holds the other end, so no broker outlives its tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Final, NamedTuple

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.handlers.lazy_handlers import WARMED_APIS
from barnabas.broker.network.server import Server
from barnabas.broker.node.opening import open_broker
from barnabas.broker.testing.clock_control import ClockControl, read_shift_ns
from barnabas.broker.testing.connected_members import ConnectedMembers
from barnabas.broker.testing.control_port import ControlPort
from barnabas.broker.testing.controls import Controls
from barnabas.broker.testing.faults import Faults
from barnabas.broker.testing.intercepted_handlers import InterceptedHandlers
from barnabas.broker.testing.routes import Routes
from barnabas.cli.process.descriptors import divide_descriptors, raise_limit
from barnabas.runtime.collector import keep_out_of_collections
from barnabas.runtime.logging import log_errors_of
from barnabas.runtime.stepping_loop import SteppingClock, SteppingLoop
from barnabas.storage.filesystem import RealFileSystem

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


_INPUT: Final = 0
"""The descriptor of the standard input."""


class InputError(Exception):
    """The standard input cannot tell when the tests end."""

    def __init__(self) -> None:
        super().__init__(
            "The standard input is closed, a file, or /dev/null, so it cannot tell when the tests end. "
            "Connect it to a pipe or a terminal (docker run --interactive), or use barnabas serve."
        )


class ControlAddress(NamedTuple):
    """The address on which the controls listen."""

    host: str = "127.0.0.1"
    """Empty for all interfaces."""
    port: int = 0
    """0 for a free one."""


def serve_for_tests(config: BrokerConfig, token: str, control: ControlAddress) -> None:
    """Serve until a signal, or the end of the standard input.

    Raises InputError, StorageError, OSError, PortLost.
    """
    loop = SteppingLoop(read_shift_ns(config.log_directory))
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        log_errors_of(runner.get_loop())
        runner.run(_run(loop, config, token, control))


async def _run(loop: SteppingLoop, config: BrokerConfig, token: str, control: ControlAddress) -> None:
    end = _await_end(loop)
    shares = divide_descriptors(raise_limit())
    members, faults = ConnectedMembers(), Faults()
    broker = await open_broker(config, clock=SteppingClock(loop), open_segments_max=shares.segments)
    try:
        handlers = InterceptedHandlers(broker, faults, members)
        server = Server(broker, config, handlers, warmed_apis=WARMED_APIS, connections_max=shares.connections)
        broker.dynamic_settings.bind_server(server.limit_connections, server.keys_changed)
        clock = ClockControl(loop, RealFileSystem(), config.log_directory, members)
        port = ControlPort(Routes(Controls(broker, server, clock, faults)), token)
        await server.start()
        opened = await port.start(control.host, control.port)
        keep_out_of_collections()
        addresses = ",".join(listener.address for listener in server.listeners)
        ready = {"bootstrap_servers": addresses, "control": f"http://{_url_host(control.host)}:{opened}"}
        print(json.dumps(ready), flush=True)
        for failed in (broker.failed, server.failed, port.failed):
            failed.add_done_callback(lambda _: end.set())
        await end.wait()
        await port.close()
        await server.close()
    finally:
        await broker.close()
    for failed in (broker.failed, server.failed, port.failed):
        if failed.done():
            raise failed.result()


def _url_host(host: str) -> str:
    """The host of the controls' URL for a client on this machine."""
    host = host or "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _await_end(loop: asyncio.AbstractEventLoop) -> asyncio.Event:
    """Set by a signal, or by the end of the standard input. Raises InputError."""
    end = asyncio.Event()
    for number in _SIGNALS:
        loop.add_signal_handler(number, end.set)

    def on_input() -> None:
        if not os.read(_INPUT, 1):
            loop.remove_reader(_INPUT)
            end.set()

    try:
        loop.add_reader(_INPUT, on_input)
    except OSError as error:
        # epoll watches no files, so EPERM; EBADF is a closed input.
        raise InputError from error
    return end
