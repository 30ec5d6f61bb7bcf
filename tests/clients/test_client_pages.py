"""The programs in the pages of the asyncio clients run unchanged, except for the broker's address."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, confluent_admin
from tests.clients.java_build import PROJECT
from tests.clients.polling import eventually
from tests.clients.test_readme import blocks, running

RECORD_COUNT = 10


def values_in(output: Path) -> list[str]:
    """The last word of each line so far; the programs print a line at a time."""
    return [line.split()[-1] for line in output.read_text().splitlines()]


@pytest.mark.barnabas
def test_records_are_produced_copied_and_consumed_by_the_programs(
    own_broker: BrokerProcess, tmp_path: Path
) -> None:
    producing, copying = blocks(PROJECT / "docs" / "asyncio-producer.md", "python")
    consuming = blocks(PROJECT / "docs" / "asyncio-consumer.md", "python")[0]
    new_topics = [confluent_admin.NewTopic(name, num_partitions=1) for name in ("orders", "copies")]
    cluster = Cluster(own_broker.address)
    for created in cluster.admin.create_topics(new_topics).values():
        created.result(20)
    reading_copies = consuming.replace('"orders"', '"copies"').replace('"reports"', '"copy-reports"')
    outputs = {name: tmp_path / name for name in ("producing", "copying", "consuming", "copies")}
    programs = (producing, copying, consuming, reading_copies)
    with ExitStack() as stack:
        for output, program in zip(outputs.values(), programs, strict=True):
            stack.enter_context(running(program, own_broker, output))
        eventually(
            lambda: all(len(values_in(outputs[name])) == RECORD_COUNT for name in ("consuming", "copies")),
            awaited="both readers get all records",
            deadline_seconds=40,
        )
    assert "RecordMetadata(topic='orders', partition=0, offset=9" in outputs["producing"].read_text()
    assert "records copied" in outputs["copying"].read_text()
    for name in ("consuming", "copies"):
        assert values_in(outputs[name]) == [repr(str(number).encode()) for number in range(RECORD_COUNT)]
