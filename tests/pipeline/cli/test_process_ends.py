"""A command as a process: its output when it, its workers or its JVM are stopped or killed."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from benchmarks.brokers.process import LocalBroker

from tests.clients.cluster import Cluster
from tests.clients.installation import installed_barnabas
from tests.clients.polling import eventually

pytestmark = pytest.mark.long

RECORD_COUNT = 20_000
PER_BATCH = 500


class Ingest:
    """`barnabas pipeline ingest` that goes on until it is stopped, in a process group of its own."""

    def __init__(self, address: str, topic: str, directory: Path) -> None:
        self.table = directory / "table"
        self.log = directory / "command.log"
        self._errors = directory / "errors"
        checkpoint = str(directory / "checkpoint")
        self._arguments = ["--servers", address, "--topics", topic, "--checkpoint", checkpoint]
        self._arguments += ["--table", str(self.table), "--quiet", "--json", "--log-file", str(self.log)]
        self._arguments += ["--option", f"maxOffsetsPerTrigger={PER_BATCH}"]
        self.process = self._start(["--interval-ms", "0"])

    def _start(self, more: Sequence[str]) -> subprocess.Popen[bytes]:
        command = [str(installed_barnabas()), "pipeline", "ingest", *self._arguments, *more]
        with self._errors.open("wb") as errors:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, start_new_session=True)

    def wait_for_batches(self, count: int) -> None:
        """Waits until the table has this number of batches."""
        eventually(
            lambda: len(list(self.table.glob("batch=*"))) >= count or self.process.poll() is not None,
            awaited=f"the table has {count} batches",
        )
        assert self.process.poll() is None, self._errors.read_text()

    def jvm(self) -> int:
        return children(self.process.pid)[0]

    def workers(self) -> list[int]:
        """The Python workers, which the daemons that the JVM started have forked."""
        return [worker for daemon in children(self.jvm()) for worker in children(daemon)]

    def end(self) -> tuple[int, str]:
        """The exit code and the lines on standard error."""
        self.process.communicate()
        return self.process.returncode, self._errors.read_text()

    def finish(self) -> dict[str, int]:
        """The same command again, until all is in the table; its result."""
        self.process = self._start([])
        output, _ = self.process.communicate()
        assert (self.process.returncode, self._errors.read_text()) == (0, "")
        result: dict[str, int] = json.loads(output)
        return result


def children(process: int) -> list[int]:
    """Of all of its threads: a JVM forks in any of them."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


@pytest.fixture
def ingest(start_broker: Callable[[str], LocalBroker], tmp_path: Path) -> Iterator[Ingest]:
    broker = start_broker("barnabas")
    cluster = Cluster(broker.address)
    topic = cluster.topic(2)
    cluster.produce(topic, [f"{number}" for number in range(RECORD_COUNT)])
    started = Ingest(broker.address, topic, tmp_path)
    yield started
    with started.process:  # waits, and closes the pipe
        started.process.kill()


def test_killed_workers_are_survived_and_a_stop_of_the_group_is_one_line(ingest: Ingest) -> None:
    ingest.wait_for_batches(2)
    workers = ingest.workers()
    assert workers
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    ingest.wait_for_batches(6)
    os.killpg(ingest.process.pid, signal.SIGTERM)
    assert ingest.end() == (0, "barnabas: Stopped. The same command goes on where this one stopped.\n")
    assert "StackOverflowError" not in ingest.log.read_text()
    written = ingest.finish()
    assert 0 < written["records"] <= RECORD_COUNT - 5 * PER_BATCH
    assert written["records"] % PER_BATCH == 0


def test_a_jvm_that_is_killed_ends_the_command_with_one_line(ingest: Ingest) -> None:
    ingest.wait_for_batches(1)
    os.kill(ingest.jvm(), signal.SIGKILL)
    reason = "Spark's JVM was killed by signal 9: is there enough memory?"
    assert ingest.end() == (1, f"barnabas: {reason}. Details: {ingest.log}\n")
