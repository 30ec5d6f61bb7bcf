"""The commands of docs/backup.md save and restore topics, committed offsets and the state of share groups."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, reserved_port, started
from tests.clients.cluster import Cluster
from tests.clients.committed_records import FURTHER_POLLS
from tests.clients.confluent_polling import poll, poll_some, settle, share_consumer, text
from tests.clients.java_build import PROJECT
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.test_readme import blocks

PAGE = PROJECT / "docs" / "backup.md"
COPY, TRY, RESTORE = range(3)
PORT_OF_THE_TRIAL = "19092"
GROUP, TOPIC = "workers", "orders"
SAVED_COUNT, ACCEPTED_COUNT, COMMITTED_OFFSET = 10, 4, 7


@pytest.fixture(params=["log", "topic"])
def settings(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """With either store of share state."""
    return {**TEST_SETTINGS, "share.state.store": request.param}


@pytest.fixture
def broker(barnabas_command: Path, tmp_path: Path, settings: Mapping[str, str]) -> BrokerProcess:
    """A broker on the directory that the page calls ./data; it is not started."""
    return BrokerProcess(barnabas_command, tmp_path / "data", settings)


def run_commands(number: int, broker: BrokerProcess) -> str:
    """The commands of one block of the page, beside the data directory; their output.

    A broker that they start gets the settings of this one by the environment.
    """
    commands = blocks(PAGE, "sh")[number].replace(PORT_OF_THE_TRIAL, str(reserved_port()))
    settings = {
        f"BARNABAS_{name.replace('.', '_').upper()}": value for name, value in broker.settings.items()
    }
    path = f"{broker.command.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-eux", "-c", commands],
        check=True,
        cwd=broker.data_directory.parent,
        env={**os.environ, **settings, "BARNABAS_CLIENT_BOOTSTRAP": broker.address, "PATH": path},
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def use(broker: BrokerProcess) -> None:
    """Ten records, four of them accepted by a share group; a consumer group has committed 7."""
    cluster = Cluster(broker.address)
    cluster.topic(name=TOPIC)
    cluster.set_group(GROUP, {"share.auto.offset.reset": "earliest"})
    cluster.produce(TOPIC, map(str, range(SAVED_COUNT)))
    accept(broker, ACCEPTED_COUNT)
    reader = Consumer({"bootstrap.servers": broker.address, "group.id": "readers"})
    reader.commit(offsets=[TopicPartition(TOPIC, 0, COMMITTED_OFFSET)], asynchronous=False)
    reader.close()


def accept(broker: BrokerProcess, count: int) -> None:
    """Accepts the first records, and releases the others."""
    consumer = share_consumer(broker.address, GROUP, TOPIC)
    messages = poll_some(consumer)
    settle(consumer, messages[:count], consumer.acknowledge)
    consumer.close()


def check_trial(printed: str) -> None:
    """Both brokers have the same topics and groups: ids, offsets and lags."""
    _, verified, lists = printed.partition("all is well")
    assert verified
    lines = lists.split("\n", 1)[1].splitlines()
    running, trial = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    assert running == trial
    assert any(line.split()[0] == TOPIC for line in trial)
    assert [line.split()[-1] for line in trial if line.split()[0] == GROUP] == [
        str(SAVED_COUNT - ACCEPTED_COUNT)
    ]


def check_saved_state(broker: BrokerProcess) -> None:
    """The share group gets the records that it had not accepted, and no others; the offset is committed."""
    consumer = share_consumer(broker.address, GROUP, TOPIC, mode="implicit")
    values: list[str] = []
    wanted = [str(number) for number in range(ACCEPTED_COUNT, SAVED_COUNT)]

    def look() -> bool:
        values.extend(map(text, poll(consumer)))
        return len(values) >= len(wanted)

    eventually(look, awaited="the records that were not accepted")
    for _ in range(FURTHER_POLLS):
        look()
    assert sorted(values) == wanted
    consumer.close()
    reader = Consumer({"bootstrap.servers": broker.address, "group.id": "readers"})
    (committed,) = reader.committed([TopicPartition(TOPIC, 0)], timeout=SECONDS_MAX)
    reader.close()
    assert committed.offset == COMMITTED_OFFSET


@pytest.mark.barnabas
@pytest.mark.clients
def test_a_restored_broker_has_the_state_of_the_backup(broker: BrokerProcess) -> None:
    with started(broker):
        use(broker)
        assert broker.stop() == 0
    assert "all is well" in run_commands(COPY, broker)
    with started(broker):
        check_trial(run_commands(TRY, broker))
        Cluster(broker.address).produce(TOPIC, ["later"])
        accept(broker, 1)
        assert broker.stop() == 0
    assert "all is well" in run_commands(RESTORE, broker)
    with started(broker):
        check_saved_state(broker)
        Cluster(broker.address).produce(TOPIC, ["after the restore"])


@pytest.mark.barnabas
@pytest.mark.clients
def test_a_snapshot_of_a_running_broker_can_be_served(broker: BrokerProcess, tmp_path: Path) -> None:
    """A process that stands still for the time of the copy changes no file: that is a snapshot."""
    snapshot = tmp_path / "snapshot"
    with started(broker):
        use(broker)
        os.kill(broker.pid, signal.SIGSTOP)
        subprocess.run(["cp", "--archive", broker.data_directory, snapshot], check=True)
        os.kill(broker.pid, signal.SIGCONT)
        copy = BrokerProcess(broker.command, snapshot, broker.settings, port=reserved_port())
        with started(copy):
            check_saved_state(copy)
