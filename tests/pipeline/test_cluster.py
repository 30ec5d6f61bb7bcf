"""The pipeline on a cluster, a master and two workers: with the wheel beside the job, and with an archive.

Executors get only the files that spark-submit sends: their Python has no Barnabas, and
their working directories are the workers' own.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.brokers.process import LocalBroker

from tests.clients.cluster import Cluster, numbered
from tests.pipeline.cluster_environment import built_wheel, node_environment, packed_packages
from tests.pipeline.standalone_cluster import StandaloneCluster

pytestmark = [
    pytest.mark.parametrize("broker", ["barnabas"], indirect=True),
    pytest.mark.long,
]

JOB = Path(__file__).with_name("cluster_job.py")
RECORDS = 2_000
BARE_PYTHON = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
"""The Python that this one's environment was made of: it has no packages."""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A master with two workers."""
    workers = StandaloneCluster(tmp_path_factory.mktemp("standalone"), worker_count=2)
    try:
        workers.start()
        yield workers
    finally:
        workers.stop()


def arguments(broker: LocalBroker, cluster: Cluster, directory: Path) -> Sequence[str]:
    """The job's arguments: a topic with records in four partitions, and a group that has read nothing."""
    topic = cluster.topic(4)
    cluster.produce(topic, numbered(RECORDS))
    given = {
        "address": broker.address,
        "topic": topic,
        "target": cluster.topic(),
        "group": cluster.group(),
        "log-directory": str(broker.directory / "data"),
        "checkpoint": str(directory / "checkpoint"),
    }
    return [f"--{name}={value}" for name, value in given.items()]


def check(report: Any) -> None:
    everything = [RECORDS, RECORDS]
    assert {name: report[name] for name in report if name != "executors"} == {
        "kafka-topic": everything,
        "kafka-log": everything,
        "kafka-share": everything,
        "kafka-topic sink": everything,
    }
    directories = [directory for directory, _, _ in report["executors"]]
    assert len(directories) == 2, "both workers had work"


def test_a_job_runs_with_the_wheel_where_the_nodes_have_its_dependencies(
    workers: StandaloneCluster, broker: LocalBroker, cluster: Cluster, tmp_path: Path
) -> None:
    # Spark opens files of --py-files only if they are named .zip, .egg or .jar; a wheel is a zip file.
    wheel = shutil.copy(built_wheel(), tmp_path / "barnabas.zip")
    report = workers.submit(
        JOB,
        arguments(broker, cluster, tmp_path),
        python=str(node_environment() / "bin" / "python"),
        directory=tmp_path,
        options=["--py-files", str(wheel)],
        # Streams are planned in a process of the driver's that --py-files does not reach.
        environment={"PYTHONPATH": str(wheel)},
    )
    check(report)
    for _, file, is_native in report["executors"]:
        assert "barnabas.zip/barnabas/" in file, "it comes out of the wheel"
        assert str(tmp_path) not in file, "it was brought to the executor"
        assert not is_native, "no native module can be loaded out of a zip file"


def test_a_job_runs_with_an_archive_where_the_nodes_have_nothing(
    workers: StandaloneCluster, broker: LocalBroker, cluster: Cluster, tmp_path: Path
) -> None:
    archive = packed_packages(tmp_path)
    packages = tmp_path / "packages"
    with tarfile.open(archive) as packed:
        packed.extractall(packages, filter="data")
    report = workers.submit(
        JOB,
        arguments(broker, cluster, tmp_path),
        python=BARE_PYTHON,
        directory=tmp_path,
        options=[
            *("--archives", f"{archive}#packages"),
            *("--conf", "spark.executorEnv.PYTHONPATH=packages"),
        ],
        environment={"PYTHONPATH": str(packages)},
    )
    check(report)
    for _, file, is_native in report["executors"]:
        assert "packages/barnabas/" in file, "it comes out of the archive"
        assert str(packages) not in file, "it was brought to the executor"
        assert is_native == has_native_module(built_wheel())


def has_native_module(wheel: Path) -> bool:
    """Whether a compiler was there when the wheel was built."""
    with zipfile.ZipFile(wheel) as opened:
        return any(name.startswith("barnabas/pipeline/decoding/_native.c") for name in opened.namelist())
