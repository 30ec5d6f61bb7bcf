"""The programs of docs/audit.md run unchanged, except for their paths and ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.brokers.process import LocalBroker
from pyspark.sql import SparkSession

from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.test_readme import blocks
from tests.pipeline.brokers import new_broker
from tests.pipeline.export.both_ways import produce_all_kinds, some_of_each, work

PAGE = PROJECT / "docs" / "audit.md"
TOPIC, GROUP = "orders", "workers"
RECORD_COUNT = 30

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """The group has accepted a third of the records, rejected a third, and released a third."""
    broker = new_broker("barnabas", tmp_path_factory.mktemp("worked"))
    broker.start()
    try:
        cluster = Cluster(broker.address)
        cluster.topic(name=TOPIC)
        cluster.set_group(GROUP, {"share.auto.offset.reset": "earliest"})
        produce_all_kinds(broker, TOPIC, 0, RECORD_COUNT)
        work(broker, GROUP, TOPIC, RECORD_COUNT, some_of_each)
        yield broker
    finally:
        broker.kill()


@pytest.mark.parametrize("number", range(len(blocks(PAGE, "python"))))
def test_the_programs_run(number: int, worked: LocalBroker, spark: SparkSession, tmp_path: Path) -> None:
    program = blocks(PAGE, "python")[number]
    for name, path in (
        ("./data", worked.directory / "data"),
        ("./acknowledged", tmp_path / "acknowledged"),
        ("audit.html", tmp_path / "audit.html"),
    ):
        program = program.replace(f'"{name}"', f'"{path}"')
    exec(compile(program, str(PAGE), "exec"), {"spark": spark})
    if (tmp_path / "acknowledged").exists():
        rows = spark.read.parquet(str(tmp_path / "acknowledged")).select("value").collect()
        accepted = [number for number in range(RECORD_COUNT) if number % 3 == 0]
        expected = [None if one % 5 == 0 else f"value {one}".encode() for one in accepted]
        assert sorted(map(str, (row.value and bytes(row.value) for row in rows))) == sorted(
            map(str, expected)
        )
    else:
        assert (tmp_path / "audit.html").exists()
