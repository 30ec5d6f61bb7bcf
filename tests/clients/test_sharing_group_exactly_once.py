"""Consume, process, produce with a share group, in transactions: members and the broker are killed at any
step, and each record is copied once.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from tests.clients import share_copier
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import Cluster, numbered
from tests.clients.committed_records import committed_records
from tests.clients.confluent_polling import text
from tests.clients.polling import eventually
from tests.clients.program import Program, running

pytestmark = pytest.mark.barnabas

PARTITIONS = 2
MEMBERS = 2
KILLS = 6
RECORDS_PER_KILL = 50
BROKER_KILLED_EVERY = 3
SETTINGS = {
    **TEST_SETTINGS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.share.delivery.count.limit": "10",
}


class Copying:
    """The members of one group, and the records that they copy."""

    def __init__(self, broker: BrokerProcess, stack: ExitStack) -> None:
        self._broker = broker
        self._stack = stack
        self._values: list[str] = []
        self._cluster = Cluster(broker.address)
        self.source, self.target = self._cluster.topic(PARTITIONS), self._cluster.topic(PARTITIONS)
        self._group = self._cluster.group()
        self._members = [self._start(number) for number in range(MEMBERS)]

    def kill_member(self, number: int) -> None:
        """Kill a member. Another program takes its transactional id."""
        self._check()
        self._members[number].kill()
        self._members[number] = self._start(number)

    def kill_broker(self) -> None:
        self._broker.kill()
        self._broker.start()

    def produce(self, count: int) -> None:
        """Write more records."""
        values = numbered(count, f"record-{len(self._values)}")
        self._values += values
        self._cluster.produce(self.source, values)

    def produce_until(self, line: str) -> int:
        """Write more records, and wait until a member has printed this line again; returns its number."""
        before = [member.lines.count(line) for member in self._members]
        self.produce(RECORDS_PER_KILL)

        def found() -> list[int]:
            self._check()
            return [
                number
                for number, member in enumerate(self._members)
                if member.lines.count(line) > before[number]
            ]

        return eventually(found, awaited=f"a member has {line}")[0]

    def check_copies(self) -> None:
        """Each record was copied once, and the group has nothing left."""
        count = len(self._values)
        found = committed_records(self._broker.address, self.target, count)
        assert Counter(map(text, found)) == Counter(self._values)

    def _check(self) -> None:
        assert not any(member.has_failed for member in self._members)

    def _start(self, number: int) -> Program:
        command = [sys.executable, str(Path(share_copier.__file__)), self._broker.address]
        arguments = [self.source, self.target, self._group, f"{self._group}-{number}"]
        return self._stack.enter_context(running([*command, *arguments]))


@pytest.mark.parametrize("store", ["log", "topic"])
def test_each_record_is_copied_once_after_kills_of_members_and_broker(
    barnabas_command: Path, tmp_path: Path, store: str
) -> None:
    copy_with_kills(barnabas_command, tmp_path / "data", store, KILLS)


@pytest.mark.rare
@pytest.mark.parametrize("store", ["log", "topic"])
def test_each_record_is_copied_once_after_many_kills(
    barnabas_command: Path, tmp_path: Path, store: str, kills: int
) -> None:
    copy_with_kills(barnabas_command, tmp_path / "data", store, kills)


def copy_with_kills(barnabas_command: Path, data_directory: Path, store: str, kill_count: int) -> None:
    random = Random(kill_count)
    settings = {**SETTINGS, "share.state.store": store}
    with ExitStack() as stack:
        broker = stack.enter_context(started(BrokerProcess(barnabas_command, data_directory, settings)))
        copying = Copying(broker, stack)
        for kill in range(kill_count):
            number = copying.produce_until(random.choice(["copied", "acknowledged"]))
            if kill % BROKER_KILLED_EVERY:
                copying.kill_member(number)
            else:
                copying.kill_broker()
        copying.check_copies()
