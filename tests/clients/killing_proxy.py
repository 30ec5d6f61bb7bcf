"""A proxy between a program and its broker, which kills the program at one of its requests.

The proxy counts certain requests of the client with a certain id. At the request with the chosen number it
kills the program: before the request reaches the broker, or after the broker has answered it, before the
answer reaches the program. The broker must advertise the proxy's address.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import threading
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any, Final

from barnabas.protocol.api import ApiKey
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started

_HEADER: Final = struct.Struct(">hhih")


class Moment(Enum):
    """When to kill, relative to the broker's handling of the request."""

    BEFORE = "before"
    AFTER = "after"


class KillingProxy:
    """Created by `proxying`."""

    def __init__(self, listener: socket.socket, client_id: str, requests: Collection[ApiKey]) -> None:
        self._listener = listener
        self._client_id = client_id.encode()
        self._requests = requests
        self._lock = threading.Lock()
        self._broker: tuple[str, int] = ("127.0.0.1", 0)
        self._victim: subprocess.Popen[Any] | None = None
        self._moment = Moment.BEFORE
        self._left = 0

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def lead_to(self, port: int) -> None:
        """Serve the broker on this port of the same machine."""
        self._broker = ("127.0.0.1", port)
        threading.Thread(target=self._accept, daemon=True).start()

    def kill_at(self, number: int, moment: Moment, victim: subprocess.Popen[Any]) -> None:
        """Kill this process, which has sent nothing yet, at its request of this number, from 1 on."""
        with self._lock:
            self._left, self._moment, self._victim = number, moment, victim

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._broker)
                fatal: set[int] = set()
                for pump in (self._pump_requests, self._pump_answers):
                    threading.Thread(target=pump, args=(client, broker, fatal), daemon=True).start()

    def _pump_requests(self, client: socket.socket, broker: socket.socket, fatal: set[int]) -> None:
        with suppress(OSError), client, broker:
            while frame := _read_frame(client):
                if self._is_the_one(frame):
                    if self._moment is Moment.BEFORE:
                        self._kill()
                        return
                    fatal.add(_HEADER.unpack_from(frame, 4)[2])
                broker.sendall(frame)

    def _pump_answers(self, client: socket.socket, broker: socket.socket, fatal: set[int]) -> None:
        with suppress(OSError), client, broker:
            while frame := _read_frame(broker):
                (correlation_id,) = struct.unpack_from(">i", frame, 4)
                if correlation_id in fatal:
                    self._kill()
                    return
                client.sendall(frame)

    def _is_the_one(self, frame: bytes) -> bool:
        api_key, _, _, name_length = _HEADER.unpack_from(frame, 4)
        name_at = 4 + _HEADER.size
        if api_key not in self._requests or frame[name_at : name_at + name_length] != self._client_id:
            return False
        with self._lock:
            self._left -= 1
            return self._left == 0

    def _kill(self) -> None:
        assert self._victim is not None, "`kill_at` was called"
        self._victim.kill()


def _read_frame(connection: socket.socket) -> bytes:
    """A frame with its length; empty at the end."""
    prefix = _read(connection, 4)
    return prefix + _read(connection, int.from_bytes(prefix, "big")) if prefix else b""


def _read(connection: socket.socket, size_bytes: int) -> bytes:
    data = b""
    while len(data) < size_bytes:
        some = connection.recv(size_bytes - len(data))
        if not some:
            return b""
        data += some
    return data


@contextmanager
def proxying(client_id: str, requests: Collection[ApiKey]) -> Generator[KillingProxy]:
    """A proxy that listens, and counts these requests; call `lead_to` when the broker serves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield KillingProxy(listener, client_id, requests)
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied_barnabas(
    command: Path, directory: Path, client_id: str, requests: Collection[ApiKey]
) -> Generator[KillingProxy]:
    """A proxy in front of a broker that was started by this command."""
    with proxying(client_id, requests) as proxy:
        settings = {**TEST_SETTINGS, "advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        with started(BrokerProcess(command, directory, settings)) as broker:
            proxy.lead_to(broker.port)
            yield proxy
