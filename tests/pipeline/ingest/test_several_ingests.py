"""Several ingests of one group: SIGTERM ends each in order, and no record is in two tables."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import eventually
from tests.pipeline.share_source.matrix import end_all_of

BATCH_RECORDS = 100
CHUNK_RECORDS = 3 * BATCH_RECORDS

pytestmark = [pytest.mark.matrix, pytest.mark.long]


class Ingests:
    """`barnabas pipeline ingest` by the name of its table, from one topic that grows."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self._cluster = cluster
        self._directory = directory
        self._topic, self._group = cluster.topic(2), cluster.group()
        self.produced: list[str] = []

    def produce(self) -> None:
        values = numbered(CHUNK_RECORDS, f"chunk-{len(self.produced)}")
        self._cluster.produce(self._topic, values)
        self.produced += values

    def start(self, name: str, *more: str) -> subprocess.Popen[bytes]:
        where = [
            "--table",
            str(self.table(name)),
            "--checkpoint",
            str(self._directory / f"{name}-checkpoint"),
        ]
        reading = ["--servers", self._cluster.bootstrap, "--topics", self._topic, "--group", self._group]
        limits = ["--option", f"maxRecordsPerBatch={BATCH_RECORDS}", "--quiet"]
        command = [sys.executable, "-m", "barnabas", "pipeline", "ingest", *reading, *where, *limits, *more]
        with (self._directory / "output").open("ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)

    def table(self, name: str) -> Path:
        return self._directory / name

    def logged(self, name: str, log: str) -> set[str]:
        """The batches in one of the logs of a checkpoint."""
        return {path.name for path in (self._directory / f"{name}-checkpoint" / log).glob("[0-9]*")}


def test_ingests_that_are_stopped_in_any_order_write_each_record_to_one_table(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    names, ingests = ["first", "second"], Ingests(cluster, tmp_path)

    def both_have_written() -> bool:
        """Produces just enough that a batch is always under way."""
        batch_counts = [len(ingests.logged(name, "commits")) for name in names]
        if len(ingests.produced) <= (sum(batch_counts) + 3) * BATCH_RECORDS:
            ingests.produce()
        return all(batch_counts)

    running = [ingests.start(name, "--interval-ms", "50") for name in names]
    try:
        eventually(both_have_written, awaited="both have written")
        for process in running:
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
    finally:
        for process in running:
            end_all_of(process.pid)
    for name in names:
        assert ingests.logged(name, "offsets") == ingests.logged(name, "commits"), "a batch was cut short"
    for name in names:
        assert ingests.start(name).wait() == 0
    written = Counter(
        row[0]
        for name in names
        for row in spark.read.parquet(str(ingests.table(name))).selectExpr("string(value)").collect()
    )
    assert written == Counter(ingests.produced)
    assert "may have got" not in (tmp_path / "output").read_text()
