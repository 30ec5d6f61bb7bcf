"""The programs of docs/audit.md run unchanged, except for their paths and ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.brokers.process import LocalBroker
from pyspark.sql import Row, SparkSession

from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.test_readme import blocks
from tests.pipeline.brokers import new_broker
from tests.pipeline.export.both_ways import produce_all_kinds, some_of_each, work

PAGE = PROJECT / "docs" / "audit.md"
TOPIC, GROUP = "orders", "workers"
RECORD_COUNT = 30
LATE_VALUE = "late"


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """The group has accepted a third of the records, rejected a third, and released a third.

    It never got the last record.
    """
    broker = new_broker("barnabas", tmp_path_factory.mktemp("worked"))
    broker.start()
    try:
        cluster = Cluster(broker.address)
        cluster.topic(name=TOPIC)
        cluster.set_group(GROUP, {"share.auto.offset.reset": "earliest"})
        produce_all_kinds(broker, TOPIC, 0, RECORD_COUNT)
        work(broker, GROUP, TOPIC, RECORD_COUNT, some_of_each)
        cluster.produce(TOPIC, [LATE_VALUE])
        yield broker
    finally:
        broker.kill()


@pytest.mark.parametrize("number", range(len(blocks(PAGE, "python"))))
def test_the_programs_run(number: int, worked: LocalBroker, spark: SparkSession, tmp_path: Path) -> None:
    program = blocks(PAGE, "python")[number]
    for name, path in (
        ("./data", worked.directory / "data"),
        ("./outcomes", tmp_path / "outcomes"),
        ("audit.html", tmp_path / "audit.html"),
    ):
        program = program.replace(f'"{name}"', f'"{path}"')
    exec(compile(program, str(PAGE), "exec"), {"spark": spark})
    if (tmp_path / "outcomes").exists():
        check_outcomes(spark.read.parquet(str(tmp_path / "outcomes")).collect())
    else:
        assert (tmp_path / "audit.html").exists()


def check_outcomes(rows: list[Row]) -> None:
    """Each record once, with its value; only final ones have a cause, a member and a time."""
    *worked, late = sorted(rows, key=lambda row: row.offset)
    assert [row.value and bytes(row.value) for row in worked] == [
        None if number % 5 == 0 else f"value {number}".encode() for number in range(RECORD_COUNT)
    ]
    assert [(row.state, row.cause, row.deliveryCount) for row in worked] == [
        (("acknowledged", "accept", 1), ("archived", "reject", 1), ("available", None, 1))[number % 3]
        for number in range(RECORD_COUNT)
    ]
    final = [row for row in worked if row.state != "available"]
    assert all(row.decidedAt is not None for row in final)
    assert len({row.member for row in final}) == 1
    assert None not in {row.member for row in final}
    assert bytes(late.value).decode() == LATE_VALUE
    assert (late.state, late.cause, late.member, late.decidedAt, late.deliveryCount) == (None,) * 5
