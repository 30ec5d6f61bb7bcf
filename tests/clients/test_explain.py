"""`barnabas explain`: the broker and its data directory tell the same history of a record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.__main__ import main
from barnabas.cli.exit_codes import ExitCode
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import NEVER_MS, Cluster, numbered
from tests.clients.confluent_polling import poll_some, share_consumer

pytestmark = pytest.mark.barnabas

TOPIC, GROUP = "orders", "workers"
Explain = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def explain(own_broker: BrokerProcess, capsys: pytest.CaptureFixture[str]) -> Explain:
    """Runs the command; the rows that it printed."""

    def run(*arguments: object, exit_code: int = 0) -> list[dict[str, Any]]:
        given = ["explain", *map(str, arguments), "--json", "--bootstrap", own_broker.address]
        capsys.readouterr()
        assert main(given) == exit_code
        output = capsys.readouterr()
        assert output.err.count("\n") == (1 if exit_code else 0), output.err
        return [json.loads(line) for line in output.out.splitlines()]

    return run


def released_and_accepted(address: str) -> None:
    """Record 0 is released, and accepted at its second delivery."""
    cluster = Cluster(address)
    cluster.topic(name=TOPIC)
    settings = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(NEVER_MS)}
    cluster.set_group(GROUP, settings)
    cluster.produce(TOPIC, numbered(3))
    for policy in ("--release", "--accept"):
        assert main(["share", GROUP, TOPIC, policy, "--max", "1", "--bootstrap", address]) == 0


def test_the_broker_and_a_copy_of_its_directory_tell_the_same(
    own_broker: BrokerProcess, explain: Explain
) -> None:
    released_and_accepted(own_broker.address)
    record, *told = explain(GROUP, TOPIC, 0, 0)
    assert (record["value"], record["state"], record["delivery_count"]) == ("record-0", "acknowledged", 2)
    assert [(row["event"], row["state"], row["delivery_count"]) for row in told] == [
        ("release", "available", 1),
        ("accept", "acknowledged", 2),
    ]
    own_broker.kill()
    assert explain(GROUP, TOPIC, 0, 0, "--data-dir", own_broker.data_directory) == told


def test_a_held_record_names_its_holder(
    own_broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    released_and_accepted(own_broker.address)
    consumer = share_consumer(own_broker.address, GROUP, TOPIC)
    try:
        assert len(poll_some(consumer)) == 2
        capsys.readouterr()
        assert main(["explain", GROUP, TOPIC, "0", "1", "--bootstrap", own_broker.address]) == 0
        lines = capsys.readouterr().out.splitlines()
    finally:
        consumer.close()
    assert lines[0] == "orders-0, offset 1"
    assert lines[1].startswith("  produced ")
    assert "held by " in lines[-1]
    assert "(rdkafka) since 20" in lines[-1]
    assert lines[-1].endswith(" s more.")


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        ((GROUP, TOPIC, 0, 9), ExitCode.NOT_FOUND),
        ((GROUP, TOPIC, 7, 0), ExitCode.USAGE),
        ((GROUP, "no-such-topic", 0, 0), ExitCode.NOT_FOUND),
        (("no-such-group", TOPIC, 0, 0), ExitCode.REFUSED),
        ((GROUP, TOPIC, 0, 0, "--data-dir", "/no/such/directory"), ExitCode.REFUSED),
        ((GROUP, TOPIC, 5, 0, "--data-dir", "{data}"), ExitCode.NOT_FOUND),
        (("no-such-group", TOPIC, 0, 0, "--data-dir", "{data}"), ExitCode.NOT_FOUND),
    ],
)
def test_a_record_that_cannot_be_found_is_one_line(
    own_broker: BrokerProcess, explain: Explain, arguments: tuple[object, ...], exit_code: int
) -> None:
    released_and_accepted(own_broker.address)
    given = [str(one).format(data=own_broker.data_directory) for one in arguments]
    assert explain(*given, exit_code=exit_code) == []


def test_the_state_topic_keeps_no_history(
    barnabas_command: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {**TEST_SETTINGS, "share.state.store": "topic"}
    with started(BrokerProcess(barnabas_command, tmp_path / "data", settings)) as broker:
        released_and_accepted(broker.address)
        capsys.readouterr()
        assert main(["explain", GROUP, TOPIC, "0", "0", "--bootstrap", broker.address]) == 0
    *_, history, present = capsys.readouterr().out.splitlines()
    assert history == "  The broker keeps no histories (share.state.store=topic)."
    assert present.startswith("  Now: ")
