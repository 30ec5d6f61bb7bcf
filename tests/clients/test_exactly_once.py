"""Consume, process, produce, in transactions: with programs killed half-way, and brokers too, each record
exists once.

A copier reads a topic in a group and writes another, each time a few records and the group's offsets in one
transaction. It is killed, and so is the broker under the next copier. At the end a reader of committed
records finds each of them once.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.clients import copier
from tests.clients.broker_process import BrokerProcess, started
from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.java_build import java_classpath, require
from tests.clients.polling import eventually

pytestmark = pytest.mark.barnabas

PARTITIONS = 3
RECORDS = 300
COMMITTED_BETWEEN_KILLS = 40
SECONDS = 60.0
SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}

Command = Callable[..., list[str]]


def with_confluent(*arguments: str) -> list[str]:
    return [sys.executable, str(Path(copier.__file__)), *arguments]


def with_java(*arguments: str) -> list[str]:
    return [require("java"), "-Xmx128m", "-cp", java_classpath(), "barnabas.probe.Copier", *arguments]


class Copying:
    """A copier at work."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.committed = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, count: int) -> None:
        """Waits until it has committed this number of records."""
        what = f"{count} records are committed"
        eventually(lambda: self._has(count), awaited=what, deadline_seconds=SECONDS)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def _has(self, count: int) -> bool:
        assert self._process.poll() is None, "the copier has ended"
        return self.committed >= count

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self.committed = int(line)


@contextmanager
def copying(command: list[str]) -> Generator[Copying]:
    """Kills it at the end."""
    copying = Copying(command)
    try:
        yield copying
    finally:
        copying.kill()


def committed_values(address: str, topic: str, count: int) -> Counter[str]:
    """The committed records of the topic, as soon as there are this many."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": unique("reader"),
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found: Counter[str] = Counter()

    def poll() -> bool:
        for message in consumer.consume(100, 0.1):
            value = message.value()
            if message.error() is None and value is not None:
                found[value.decode()] += 1
        return len(found) >= count

    try:
        eventually(poll, awaited=f"{count} records are read", deadline_seconds=SECONDS)
        for _ in range(5):
            poll()
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("command", [with_confluent, with_java])
def test_each_record_is_copied_once_after_kills_of_copier_and_broker(
    barnabas_command: Path, tmp_path: Path, command: Command
) -> None:
    with started(BrokerProcess(barnabas_command, tmp_path / "data", SETTINGS)) as broker:
        cluster = Cluster(broker.address)
        source, target = cluster.topic(PARTITIONS), cluster.topic(PARTITIONS)
        values = numbered(RECORDS)
        cluster.produce(source, values)
        arguments = (broker.address, source, target, unique("copiers"), unique("copier"))
        with copying(command(*arguments)) as first:
            first.wait_for(COMMITTED_BETWEEN_KILLS)
        with copying(command(*arguments)) as last:
            last.wait_for(COMMITTED_BETWEEN_KILLS)
            broker.kill()
            broker.start()
            found = committed_values(broker.address, target, RECORDS)
        assert found == Counter(values)
