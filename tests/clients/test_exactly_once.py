"""Consume, process, produce, in transactions: with programs killed half-way, and brokers too, each record
exists once.

A copier reads a topic in a group and writes another, each time a few records and the group's offsets in one
transaction. It is killed, and so is the broker under the next copier. At the end a reader of committed
records finds each of them once.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients import copier
from tests.clients.broker_process import BrokerProcess, started
from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.committed_records import committed_records
from tests.clients.confluent_polling import text
from tests.clients.java_build import java_classpath, require
from tests.clients.polling import eventually
from tests.clients.program import Program, running

pytestmark = [pytest.mark.barnabas, pytest.mark.clients]

PARTITIONS = 3
RECORDS = 300
COMMITTED_BETWEEN_KILLS = 40
SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}

Command = Callable[..., list[str]]


def with_confluent(*arguments: str) -> list[str]:
    return [sys.executable, str(Path(copier.__file__)), *arguments]


def with_java(*arguments: str) -> list[str]:
    return [require("java"), "-Xmx128m", "-cp", java_classpath(), "barnabas.probe.Copier", *arguments]


def wait_for_committed(copying: Program, count: int) -> None:
    """Waits until the copier has committed this number of records."""

    def has_committed() -> bool:
        assert copying.is_running, "the copier has ended"
        return bool(copying.lines) and int(copying.lines[-1]) >= count

    eventually(has_committed, awaited=f"{count} records are committed")


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
        with running(command(*arguments)) as first:
            wait_for_committed(first, COMMITTED_BETWEEN_KILLS)
        with running(command(*arguments)) as last:
            wait_for_committed(last, COMMITTED_BETWEEN_KILLS)
            broker.kill()
            broker.start()
            found = committed_records(broker.address, target, RECORDS)
        assert Counter(map(text, found)) == Counter(values)
