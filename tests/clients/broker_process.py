"""The broker under test as a child process: started, killed, and started again on the same data."""

import re
import signal
import socket
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.clients.forked_command import ForkedCommand
from tests.clients.polling import eventually

TEST_SETTINGS: Mapping[str, str] = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.max.record.lock.duration.ms": "3600000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "2000",
    "group.share.assignment.interval.ms": "0",
}
"""For short joins, and for locks that end soon or never. A broker given by --broker needs them, too."""


def reserved_port() -> int:
    """A port of this machine for a server that a test is about to start, and may start again.

    No other program gets it: this process keeps a socket bound to it, which does not listen. A server that is
    told of the port can listen all the same, because servers set SO_REUSEADDR.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    port: int = holder.getsockname()[1]
    holder.detach()  # stays open until this process ends
    return port


@contextmanager
def started(broker: "BrokerProcess") -> Generator["BrokerProcess"]:
    """Starts it, and kills it at the end."""
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


@dataclass
class BrokerProcess:
    """One broker with its data directory. `start` after `kill` serves on the same address and data."""

    command: Path
    data_directory: Path
    settings: Mapping[str, str] = field(default_factory=lambda: TEST_SETTINGS)
    options: Sequence[str] = ()
    """Further options of `barnabas serve`."""
    port: int = field(default_factory=reserved_port)
    errors: IO[str] | None = None
    """The file for its log; None for the log of this process."""

    @property
    def address(self) -> str:
        """The address that it serves, as host:port."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        return self._process.pid

    def start(self) -> None:
        """Start it and return when it has printed the address that it serves on."""
        settings = [f"--set={name}={value}" for name, value in self.settings.items()]
        arguments = ["serve", "--listen", self.address, "--data-dir", str(self.data_directory), *settings]
        errors = {} if self.errors is None else {"errors": self.errors.fileno()}
        self._process = ForkedCommand(self.command, [*arguments, *self.options], **errors)
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read_output, name="broker-output", daemon=True)
        self._reader.start()
        eventually(self._serves, awaited="the broker serves")

    def kill(self) -> None:
        """SIGKILL: data that is not in a file is lost."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM: a clean end; returns its exit code."""
        return self._end(signal.SIGTERM)

    def running(self) -> bool:
        """Whether the process runs."""
        return self._process.exit_code is None

    def _serves(self) -> bool:
        assert self.running(), f"the broker ended with exit code {self._process.exit_code}"
        return any(re.search(rf":{self.port}\b", line) for line in self._lines)

    def _read_output(self) -> None:
        with self._process.output as output:
            self._lines.extend(output)

    def _end(self, number: signal.Signals) -> int:
        code = self._process.end(number)
        self._reader.join()
        return code
