"""Members of a group share partitions, and copy the records in transactions. Programs are killed, or stopped
for too long, and the broker is killed. Each record is copied once, and the records of a key in their order.

A program that was stopped for longer than its session believes that it still has its share. If it has not
committed its ranges, it goes on after others have copied its records, and its commit is refused. If it has,
other members wait for its share until the transaction ends: it may still be committed.
"""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.__main__ import main
from tests.clients import sharing_copier
from tests.clients.broker_process import BrokerProcess, started
from tests.clients.cluster import Cluster, unique
from tests.clients.committed_records import committed_records
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.program import Program, running

pytestmark = pytest.mark.barnabas

KEYS = 40
SESSION_MS = 2_000
SETTINGS = {
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
}


class Group:
    """The copiers of one group, with the records that they copy."""

    def __init__(self, broker: BrokerProcess, stack: ExitStack, *, partition_count: int, order: str) -> None:
        self._broker = broker
        self._stack = stack
        self._name = unique("copiers")
        self._partition_count = partition_count
        self._programs: list[Program] = []
        self._written: list[list[int]] = [[] for _ in range(partition_count)]
        """The keys of all records, by partition."""
        cluster = Cluster(broker.address)
        self._source, self._target = cluster.topic(partition_count), cluster.topic(partition_count)
        cluster.set_group(self._name, {"individual.commit.order": order})

    def start(self, member: str, *stop: str) -> Program:
        """A copier whose client id and transactional id is `member`; `stop` says where it stops itself."""
        command = [sys.executable, str(Path(sharing_copier.__file__)), self._broker.address]
        command += [self._source, self._target, self._name, member, *stop]
        program = self._stack.enter_context(running(command))
        self._programs.append(program)
        return program

    def produce(self, count: int) -> None:
        """Write records whose keys take turns, each key in one partition."""
        producer = Producer({"bootstrap.servers": self._broker.address, "linger.ms": 1})
        for number in range(count):
            key = number % KEYS
            partition = key % self._partition_count
            producer.produce(self._source, b"value", key=b"key-%d" % key, partition=partition)
            self._written[partition].append(key)
        assert producer.flush(SECONDS_MAX) == 0

    def wait_for_members(self, *members: str) -> None:
        """Wait until exactly these members read the topic."""
        eventually(lambda: sorted(self._sharers()) == sorted(members), awaited=f"{members} are the members")

    def wait_without(self, *members: str) -> None:
        """Wait until these members have lost their shares."""

        def is_gone() -> bool:
            sharers = self._sharers()
            return bool(sharers) and not {*members}.intersection(sharers)

        eventually(is_gone, awaited=f"{members} are removed")

    def produce_under_way(self, count: int) -> None:
        """Write records, and return as soon as more are copied; the others are under way."""
        before = self._copied_count
        self.produce(count)
        eventually(lambda: self._copied_count > before, awaited="copies are made")

    def wait_for_commits(self, in_partitions: int | None = None) -> None:
        """Wait until all records of the partitions, or of this number of them, are committed."""
        count = self._partition_count if in_partitions is None else in_partitions
        ends: list[tuple[int, list[object]]] = [(len(keys), []) for keys in self._written]

        def are_committed() -> bool:
            committed = [(one["committed_offset"], one["ranges"]) for one in self._report()]
            return sum(one == end for one, end in zip(committed, ends, strict=False)) >= count

        eventually(are_committed, awaited=f"{count} partitions are committed")

    def check_copies(self) -> None:
        """Each record was copied once, and the records of a key in their order. No program has failed."""
        assert not any(program.has_failed for program in self._programs)
        count = sum(map(len, self._written))
        copies = committed_records(self._broker.address, self._target, count)
        places = [_place(copy.value()) for copy in copies]
        assert Counter(places) == Counter(
            (partition, offset) for partition, keys in enumerate(self._written) for offset in range(len(keys))
        )
        last: dict[int, int] = {}
        for partition, offset in places:
            key = self._written[partition][offset]
            assert last.get(key, -1) < offset, f"key {key} of partition {partition} is out of order"
            last[key] = offset

    @property
    def _copied_count(self) -> int:
        lines = [line.split() for program in self._programs for line in program.lines]
        return sum(int(words[1]) for words in lines if words[0] == "copied")

    def _sharers(self) -> list[str]:
        return [sharer["client_id"] for partition in self._report() for sharer in partition["sharers"]]

    def _report(self) -> list[dict[str, Any]]:
        """The partitions as `barnabas ranges` shows them; empty before the group exists."""
        arguments = ["--bootstrap", self._broker.address, "--topic", self._source, "--json"]
        output = io.StringIO()
        with redirect_stdout(output):
            if main(["ranges", self._name, *arguments]):
                return []
        return [one for one in map(json.loads, output.getvalue().splitlines()) if one["type"] == "partition"]


def _place(value: bytes | None) -> tuple[int, int]:
    """The partition and the offset that a copier has written."""
    assert value is not None
    partition, offset = value.decode().split("-")
    return int(partition), int(offset)


def wait_for_stop(program: Program) -> None:
    """Wait until it has stopped itself."""
    eventually(lambda: program.is_stopped, awaited="it stops")


def go_on_until(program: Program, line: str) -> None:
    """Continue it. The transaction in which it was stopped ends with a line that begins like this."""
    assert program.lines[-1] == "stops"
    count = len(program.lines)
    program.go_on()
    eventually(lambda: len(program.lines) > count, awaited=line)
    assert program.lines[count].startswith(line)


@pytest.fixture
def broker(barnabas_command: Path, tmp_path: Path) -> Iterator[BrokerProcess]:
    with started(BrokerProcess(barnabas_command, tmp_path / "data", SETTINGS)) as broker:
        yield broker


@pytest.mark.parametrize("order", [pytest.param("none", marks=pytest.mark.rare), "partition"])
def test_members_of_one_partition_copy_each_record_once_after_kills_and_a_stop(
    broker: BrokerProcess, order: str
) -> None:
    with ExitStack() as stack:
        group = Group(broker, stack, partition_count=1, order=order)
        killed, zombie = group.start("a"), group.start("z", "ranges", "2")
        group.start("b")
        group.wait_for_members("a", "b", "z")
        group.produce(120)
        wait_for_stop(zombie)
        killed.kill()
        group.start("a")
        group.produce_under_way(100)
        broker.kill()
        broker.start()
        group.wait_without("z")
        group.wait_for_commits()
        go_on_until(zombie, "CommitFailedError")
        group.produce(40)
        group.wait_for_commits()
        group.check_copies()


@pytest.mark.rare
@pytest.mark.parametrize("order", ["none", "partition"])
def test_five_members_of_three_partitions_copy_each_record_once_after_many_kills_and_three_stops(
    broker: BrokerProcess, order: str
) -> None:
    with ExitStack() as stack:
        group = Group(broker, stack, partition_count=3, order=order)
        killed = {name: group.start(name) for name in "abc"}
        # In its first transaction no commit of its own can wait for the other program that stops.
        replaced, removed = group.start("y", "commit", "1"), group.start("z", "ranges", "1")
        group.wait_for_members(*"abcyz")
        group.produce(400)
        wait_for_stop(removed)
        wait_for_stop(replaced)
        killed["y"] = group.start("y")
        for kill, name in enumerate("abcyab"):
            group.produce_under_way(200)
            killed[name].kill()
            killed[name] = group.start(name)
            if kill % 2:
                broker.kill()
                broker.start()
        group.wait_without("z")
        group.wait_for_commits()  # otherwise the next member could stop before the others have come
        undecided = group.start("x", "commit", "1")
        group.wait_for_members(*"abcxy")
        group.produce(400)
        wait_for_stop(undecided)
        group.wait_without("x")
        group.wait_for_commits(in_partitions=2)
        go_on_until(undecided, "copied")
        group.wait_for_commits()
        go_on_until(removed, "CommitFailedError")
        go_on_until(replaced, "ProducerFencedError")
        group.produce(200)
        group.wait_for_commits()
        group.check_copies()
