"""The common part of the failure matrix: a sink that is idempotent by batch id, and queries that feed it.

A row makes something fail while a query runs, starts the query again until it ends by itself, and then holds
the sink against the produced records. `make matrix` runs each row several times.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.client import ShareConsumer
from tests.clients.cluster import Cluster
from tests.clients.polling import SECONDS_MAX

RUNS_MAX = 6
RECORDS = 300
BATCH_RECORDS = 100

Row = tuple[int, int, str]
"""Partition, offset, value."""


class InjectedError(Exception):
    """The error of a sink in a row."""


@dataclass
class Sink:
    """Writes each batch once; a repeated batch must have the same records. Files if there is a directory."""

    directory: Path
    before: Callable[[int], None] | None = None
    """Is called with the batch's id before it is written."""
    after: Callable[[int], None] | None = None
    replayed: list[int] = field(default_factory=list[int])
    change: Callable[[DataFrame], DataFrame] | None = None
    may_shrink: bool = False
    """Whether other queries of the group may have got records of a batch that comes again."""

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        changed = batch if self.change is None else self.change(batch)
        rows = sorted((row.partition, row.offset, bytes(row.value).decode()) for row in changed.collect())
        if self.before is not None:
            self.before(batch_id)
        path = self.directory / f"{batch_id}.json"
        if path.exists():
            self.replayed.append(batch_id)
            written = {tuple(row) for row in json.loads(path.read_text())}
            assert set(rows) <= written, "a replay holds other records"
            assert self.may_shrink or len(rows) == len(written), "a replay holds fewer records"
        else:
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(rows))
            unfinished.replace(path)
        if self.after is not None:
            self.after(batch_id)

    @property
    def batches(self) -> list[int]:
        """The ids of the batches that were written. A batch may be smaller than the query asks for."""
        return sorted(int(path.stem) for path in self.directory.glob("*.json"))

    @property
    def values(self) -> Counter[str]:
        """How often each value was written."""
        return Counter(
            value for path in self.directory.glob("*.json") for _, _, value in json.loads(path.read_text())
        )


def once(batch_id: int, fault: Callable[[], None]) -> Callable[[int], None]:
    """A hook that lets `fault` happen the first time that this batch passes."""
    passed: list[int] = []

    def hook(current: int) -> None:
        if current == batch_id and not passed:
            passed.append(current)
            fault()

    return hook


def outlast_a_lock(cluster: Cluster, *, duration_ms: int) -> None:
    """Return when a lock that begins now has expired: a second member gets the record of a first one.

    On a slow machine the record may reach its delivery limit on the way to them. Then the first member gets
    another one, and for the second one it is enough to have waited for several times as long as a lock.
    """
    topic = cluster.topic()
    group = cluster.group(record_lock_duration_ms=duration_ms)
    asyncio.run(_outlast_a_lock(cluster, topic, group, 5 * duration_ms / 1000))


async def _outlast_a_lock(cluster: Cluster, topic: str, group: str, poll_seconds: float) -> None:
    async with (
        ShareConsumer(cluster.bootstrap, group=group, topics=[topic], renew_locks=False) as first,
        ShareConsumer(cluster.bootstrap, group=group, topics=[topic], renew_locks=False) as second,
    ):
        cluster.produce(topic, ["witness"])
        while not await first.poll(timeout=poll_seconds):
            cluster.produce(topic, ["witness"])
        await second.poll(timeout=poll_seconds)


def start(
    spark: SparkSession, options: dict[str, Any], checkpoint: Path, sink: Sink, *, available_now: bool = True
) -> StreamingQuery:
    """Start a query on a checkpoint."""
    reading = spark.readStream.format("kafka-share")
    for name, value in options.items():
        reading = reading.option(name, value)
    writing = reading.load().writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return (writing.trigger(availableNow=True) if available_now else writing).start()


def run_to_the_end(
    spark: SparkSession, options: dict[str, Any], checkpoint: Path, sink: Sink, values: Iterable[str]
) -> int:
    """Start the query until it has ended by itself with all that was produced; how often that failed."""
    failure_count = 0
    expected = Counter(values)
    for _ in range(RUNS_MAX):
        query = start(spark, options, checkpoint, sink)
        try:
            assert query.awaitTermination(round(SECONDS_MAX)), "the query doesn't end"
        except StreamingQueryException:
            failure_count += 1
            continue
        finally:
            query.stop()
        if sink.values.total() >= expected.total():
            break
    assert sink.values == expected
    return failure_count


def run_driver(config: dict[str, Any]) -> int:
    """Run a query in a process of its own, `query_process`; the exit code, negative for a signal."""
    command = [sys.executable, "-m", "tests.pipeline.share_source.query_process", json.dumps(config)]
    with (Path(config["directory"]) / "output").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        return process.wait()
    finally:
        end_all_of(process.pid)


def end_all_of(group: int) -> None:
    """SIGKILLs the remaining processes of a group: a driver, its JVM, its workers."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
