"""The programs of docs/ordering.md run unchanged, except for the broker's address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.test_readme import blocks, printed, running

RECORD_COUNT = 60
KEYS = [b"customer-%d" % number for number in range(7)]
PLAIN, IN_ORDER, SHARED = range(3)


@pytest.fixture
def cluster(own_broker: BrokerProcess) -> Iterator[Cluster]:
    """A broker with keyed records in the topics of the page, and share groups that begin with the first
    record.
    """
    cluster = Cluster(own_broker.address)
    for group in ("resize-images", "ship-orders"):
        cluster.set_group(group, {"share.auto.offset.reset": "earliest"})
    producer = Producer({"bootstrap.servers": own_broker.address})
    for topic in ("images", "orders", "payments"):
        cluster.topic(name=topic)
        for number in range(RECORD_COUNT):
            producer.produce(topic, b"value", key=KEYS[number % len(KEYS)])
    assert not producer.flush(SECONDS_MAX)
    yield cluster


def offsets_of(output: Path) -> list[int]:
    """The offsets that a program has printed so far."""
    return [int(line.split()[1]) for line in printed(output)]


def seen_in(outputs: Sequence[Path]) -> set[int]:
    """All offsets that were printed, except those in the last lines, which may be cut."""
    return {offset for output in outputs for offset in offsets_of(output)}


@pytest.mark.barnabas
@pytest.mark.parametrize("example", [PLAIN, IN_ORDER, SHARED])
def test_two_consumers_of_an_example_share_a_partition(
    own_broker: BrokerProcess, cluster: Cluster, tmp_path: Path, example: int
) -> None:
    del cluster
    program = blocks(PROJECT / "docs" / "ordering.md", "python")[example]
    outputs = [tmp_path / name for name in ("first", "second")]
    with ExitStack() as programs:
        for output in outputs:
            programs.enter_context(running(program, own_broker, output))
        eventually(
            lambda: len(seen_in(outputs)) >= RECORD_COUNT - len(outputs),
            awaited="both consumers together print the records",
        )
    if example == PLAIN:
        return
    for output in outputs:
        for key in range(len(KEYS)):
            of_key = [offset for offset in offsets_of(output) if offset % len(KEYS) == key]
            assert of_key == sorted(of_key)
