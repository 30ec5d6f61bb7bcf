"""The ends of `barnabas consume --follow`, with Barnabas and, with `--clients`, with Apache Kafka."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.cli.exit_codes import ExitCode
from tests.clients.cluster import Cluster

pytestmark = pytest.mark.barnabas


@pytest.fixture
def cluster_of_address(address: str) -> Cluster:
    return Cluster(address)


@contextmanager
def following(
    command: Path, cluster: Cluster, topic: str, *arguments: str
) -> Generator[subprocess.Popen[str]]:
    """A command that follows the topic and has printed its record `first`; it waits for the next one."""
    given = [str(command), "consume", topic, "--follow", "--bootstrap", cluster.bootstrap, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(given, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            cluster.produce(topic, ["first"])
            assert process.stdout.readline() == "first\n"
            yield process
        finally:
            process.kill()


def test_the_last_wanted_record_ends_the_command(cluster_of_address: Cluster, barnabas_command: Path) -> None:
    topic = cluster_of_address.topic(2)
    with following(barnabas_command, cluster_of_address, topic, "--max", "3") as process:
        cluster_of_address.produce(topic, ["second", "third", "fourth"])
        output, errors = process.communicate()
    assert (process.returncode, len(output.split()), errors) == (ExitCode.DONE, 2, "")


def test_the_end_of_the_reader_ends_the_command_without_words(
    cluster_of_address: Cluster, barnabas_command: Path
) -> None:
    topic = cluster_of_address.topic(2)
    with following(barnabas_command, cluster_of_address, topic) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        cluster_of_address.produce(topic, ["second"])
        assert (process.wait(), process.stderr.read()) == (ExitCode.STOPPED, "")


def test_the_deletion_of_the_topic_ends_the_command_with_one_line(
    cluster_of_address: Cluster, barnabas_command: Path
) -> None:
    topic = cluster_of_address.topic(2)
    topic_id = cluster_of_address.topic_id(topic)
    with following(barnabas_command, cluster_of_address, topic) as process:
        for deleted in cluster_of_address.admin.delete_topics([topic]).values():
            deleted.result()
        output, errors = process.communicate()
    line = f"barnabas: The topic {topic} (id {topic_id}) was deleted.\n"
    assert (process.returncode, output, errors) == (ExitCode.NOT_FOUND, "", line)
