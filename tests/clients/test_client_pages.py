"""The programs in the pages of the asyncio clients run unchanged, except for the broker's address.

Each gets a name as its argument, which those with transactions use as their id.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, confluent_admin
from tests.clients.java_build import PROJECT
from tests.clients.page_commands import run_commands
from tests.clients.polling import eventually
from tests.clients.test_readme import blocks, running

RECORD_COUNT = 10


def values_in(output: Path) -> list[str]:
    """The last word of each line so far; the programs print a line at a time."""
    return [line.split()[-1] for line in output.read_text().splitlines()]


def new_topics(broker: BrokerProcess, *names: str) -> None:
    wanted = [confluent_admin.NewTopic(name, num_partitions=1) for name in names]
    cluster = Cluster(broker.address)
    for created in cluster.admin.create_topics(wanted).values():
        created.result()


NUMBERS = [repr(str(number).encode()) for number in range(RECORD_COUNT)]


@pytest.mark.barnabas
def test_records_are_produced_copied_and_consumed_by_the_programs(
    own_broker: BrokerProcess, tmp_path: Path
) -> None:
    producing, copying, _ = blocks(PROJECT / "docs" / "asyncio-producer.md", "python")
    consuming = blocks(PROJECT / "docs" / "asyncio-consumer.md", "python")[0]
    assert run_commands(PROJECT / "docs" / "asyncio-producer.md", own_broker) == 2
    reading_copies = consuming.replace('"orders"', '"copies"').replace('"reports"', '"copy-reports"')
    outputs = {name: tmp_path / name for name in ("producing", "copying", "consuming", "copies")}
    programs = (producing, copying, consuming, reading_copies)
    with ExitStack() as stack:
        for (name, output), program in zip(outputs.items(), programs, strict=True):
            stack.enter_context(running(program, own_broker, output, name))
        eventually(
            lambda: all(len(values_in(outputs[name])) == RECORD_COUNT for name in ("consuming", "copies")),
            awaited="both readers get all records",
        )
        eventually(
            lambda: "records copied" in outputs["copying"].read_text(), awaited="the copier has committed"
        )
    assert "RecordMetadata(topic='orders', partition=0, offset=9" in outputs["producing"].read_text()
    for name in ("consuming", "copies"):
        assert values_in(outputs[name]) == NUMBERS


@pytest.mark.barnabas
def test_programs_that_share_a_partition_consume_and_copy_each_record_once(
    own_broker: BrokerProcess, tmp_path: Path
) -> None:
    producing, _, copying = blocks(PROJECT / "docs" / "asyncio-producer.md", "python")
    consuming, _, sharing = blocks(PROJECT / "docs" / "asyncio-consumer.md", "python")
    assert run_commands(PROJECT / "docs" / "asyncio-producer.md", own_broker) == 2
    producing = producing.replace('key=b"customer-7"', 'key=b"customer-%d" % number')
    reading_copies = consuming.replace('"orders"', '"copies"').replace("auto_offset_reset", _COMMITTED)
    programs = {
        "sharing-1": sharing,
        "sharing-2": sharing,
        "copying-1": copying,
        "copying-2": copying,
        "copies": reading_copies,
        "producing": producing,
    }
    outputs = {name: tmp_path / name for name in programs}
    with ExitStack() as stack:
        for name, program in programs.items():
            stack.enter_context(running(program, own_broker, outputs[name], name))

        def shared() -> list[str]:
            return values_in(outputs["sharing-1"]) + values_in(outputs["sharing-2"])

        eventually(
            lambda: len(shared()) >= RECORD_COUNT and len(values_in(outputs["copies"])) >= RECORD_COUNT,
            awaited="the sharers have read all records, and copied them",
        )
        assert sorted(shared()) == NUMBERS
        assert sorted(values_in(outputs["copies"])) == NUMBERS


_COMMITTED = 'isolation_level="read_committed", auto_offset_reset'


@pytest.mark.barnabas
def test_a_share_group_copies_each_record_once(own_broker: BrokerProcess, tmp_path: Path) -> None:
    producing = blocks(PROJECT / "docs" / "asyncio-producer.md", "python")[0]
    consuming = blocks(PROJECT / "docs" / "asyncio-consumer.md", "python")[0]
    page = PROJECT / "docs" / "asyncio-client.md"
    copying = next(one for one in blocks(page, "python") if "transactional_id" in one)
    new_topics(own_broker, "orders")
    assert run_commands(page, own_broker) == 2
    reading_copies = consuming.replace('"orders"', '"copies"').replace("auto_offset_reset", _COMMITTED)
    programs = {
        "copying-1": copying,
        "copying-2": copying,
        "copies": reading_copies,
        "producing": producing,
    }
    outputs = {name: tmp_path / name for name in programs}
    with ExitStack() as stack:
        for name, program in programs.items():
            stack.enter_context(running(program, own_broker, outputs[name], name))
        eventually(
            lambda: len(values_in(outputs["copies"])) >= RECORD_COUNT, awaited="all records are copied"
        )
        assert sorted(values_in(outputs["copies"])) == NUMBERS
