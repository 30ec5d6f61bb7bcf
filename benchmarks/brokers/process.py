"""A broker for the benchmarks: an address, and for a local one also a process to measure and to kill."""

import os
import signal
import subprocess
import sys
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from tests.clients.broker_process import reserved_port
from tests.clients.raw_frames import RawConnection, api_versions_request

_SHOWN_LINES = 20
START_SECONDS = 600.0
"""Also on a machine that is busy with tests."""


def end_orderly_on_sigterm() -> None:
    """Let SIGTERM unwind this process's stack, so that the brokers that it started end with it."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)


class Broker:
    """A server that speaks Kafka's protocol. `name` is its column in the report."""

    name: str
    address: str

    def start(self) -> None:
        """Start it and return when it answers ApiVersions."""

    def stop(self) -> None:
        """Stop it."""

    def cpu_seconds(self) -> float | None:
        """CPU time that its process has used; None if unknown."""
        return None

    def fresh(self) -> "LocalBroker | None":
        """Another broker of this kind with an empty data directory, not started yet; None if not possible."""
        return None


class Peer(Broker):
    """A broker that was not started by the benchmarks."""

    def __init__(self, address: str) -> None:
        self.name = "peer"
        self.address = address


class LocalBroker(Broker):
    """A broker that runs as a child process on a port of its own, with its data in `directory`."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.port = reserved_port()
        self.address = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> Sequence[str]:
        """The command line that serves on `port`."""

    def prepare(self) -> None:
        """Work before the first start, such as formatting storage."""

    def environment(self) -> Mapping[str, str]:
        """The environment of the process."""
        return os.environ

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        if not self.directory.exists():
            self.directory.mkdir(parents=True)
            self.prepare()
        self.launch()
        self.await_answer()

    def launch(self) -> None:
        """Start the process and return immediately."""
        with (self.directory / "output").open("ab") as output:
            self._process = subprocess.Popen(
                self.command(), stdout=output, stderr=output, env=self.environment()
            )

    def await_answer(self) -> None:
        """Return when ApiVersions is answered."""
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                lines = (self.directory / "output").read_text(errors="replace").splitlines()
                raise RuntimeError(
                    "\n".join([f"{self.name} does not serve; it printed", *lines[-_SHOWN_LINES:]])
                )
            time.sleep(0.002)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Stop it with SIGKILL."""
        self._end(signal.SIGKILL)

    def cpu_seconds(self) -> float:
        """From the scheduler's figures of the threads; the process's own counts in ticks of 10 ms."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def resident_bytes(self) -> int:
        """Resident memory of the process."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        kibibytes = next(line.split()[1] for line in lines if line.startswith("VmRSS"))
        return int(kibibytes) * 1024

    def _answers(self) -> bool:
        try:
            with RawConnection(self.address, 5.0) as connection:
                connection.exchange(api_versions_request())
        except (TimeoutError, ConnectionError, EOFError):
            return False
        return True

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None


def sibling(directory: Path) -> Path:
    """A directory beside this one that does not exist yet."""
    number = 1
    while (candidate := directory.with_name(f"{directory.name}-{number}")).exists():
        number += 1
    return candidate
