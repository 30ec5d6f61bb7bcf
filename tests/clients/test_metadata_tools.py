"""Kafka's own metadata shell and log dump read the metadata from the files: the log and its snapshots."""

from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.polling import eventually
from tests.clients.tools import DUMP_LOG, METADATA_SHELL, run_tool

pytestmark = pytest.mark.barnabas

SMALL_SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "1000",
    "metadata.snapshot.min.cleanable.ratio": "0",
}


@pytest.fixture
def directory(barnabas_command: Path, tmp_path: Path) -> Path:
    """The metadata of a broker that ran twice: a topic, settings of a topic and of a group, and
    producer ids.
    """
    broker = BrokerProcess(barnabas_command, tmp_path / "data")
    broker.settings = {**broker.settings, **SMALL_SNAPSHOTS}
    for run in range(2):
        broker.start()
        cluster = Cluster(broker.address)
        topic = cluster.topic(3, retention_ms="12345")
        cluster.produce(topic, ["x"], enable_idempotence=True)
        cluster.set_group(f"workers-{run}", {"share.auto.offset.reset": "earliest"})
        (tmp_path / f"topic-{run}").write_text(topic)
        assert broker.stop() == 0
    return tmp_path / "data" / "__cluster_metadata-0"


def topics(directory: Path) -> list[str]:
    return [(directory.parents[1] / f"topic-{run}").read_text() for run in range(2)]


def newest_snapshot(directory: Path) -> Path:
    return max(directory.glob("*.checkpoint"))


def shell(snapshot: Path, *command: str) -> list[str]:
    """The lines that the metadata shell prints, stripped.

    It may run the command before it has published the content of the snapshot, and then shows nothing.
    """

    def attempt() -> list[str]:
        printed = run_tool(METADATA_SHELL, "--snapshot", snapshot, *command)
        lines = [line.strip() for line in printed.splitlines()]
        return lines if "Optional[4.3-IV0]" in lines else []

    return eventually(attempt, awaited="the shell has published the snapshot")


@pytest.mark.clients
@pytest.mark.skip("Kafka 4.3.1's shell reads no metadata.version 33, and that of 4.4.0 is not published.")
def test_the_metadata_shell_finds_everything_in_a_snapshot(directory: Path) -> None:
    snapshot = newest_snapshot(directory)
    shown = shell(snapshot, "tree", "/")
    for topic in topics(directory):
        assert f"{topic}:" in shown, "by name"
        assert shown.count(topic) == 2, "by id and by name"
        settings = shown[shown.index(f"TOPIC:{topic}:") :]
        assert settings[1:3] == ["retention.ms:", "12345"]
    for run in range(2):
        settings = shown[shown.index(f"GROUP:workers-{run}:") :]
        assert settings[1:3] == ["share.auto.offset.reset:", "earliest"]
    assert shown[shown.index("finalized_share.version:") + 1] == "2"
    assert shown[shown.index("nextProducerId:") + 1] == "2000"
    (registered,) = [line for line in shown if line.startswith("BrokerRegistration(")]
    assert registered.startswith("BrokerRegistration(id=1, epoch=1,")
    partitions = [line for line in shown if line.startswith("PartitionRegistration(replicas=[1]")]
    assert len(partitions) == 2 * 2 * 3, "by id and by name, two topics of three"


def test_the_log_dump_reads_snapshot_and_log(directory: Path) -> None:
    snapshot = newest_snapshot(directory)
    dumped = run_tool(DUMP_LOG, "--cluster-metadata-decoder", "--files", snapshot)
    assert "SnapshotHeader" in dumped
    assert "SnapshotFooter" in dumped
    assert all(topic in dumped for topic in topics(directory))
    segment = max(directory.glob("*.log"))
    dumped = run_tool(DUMP_LOG, "--cluster-metadata-decoder", "--files", segment)
    assert "isvalid: true" in dumped
    assert topics(directory)[1] in dumped


def test_the_log_begins_with_the_snapshot_before_the_newest(directory: Path) -> None:
    older, newest = sorted(int(path.stem.split("-")[0]) for path in directory.glob("*.checkpoint"))
    lines = (directory.parent / "log-start-offset-checkpoint").read_text().split("\n")
    (start,) = [int(line.split()[2]) for line in lines if line.startswith("__cluster_metadata 0 ")]
    assert start == older < newest
