"""A source's reader driven by hand, by the calls that Spark makes and in the order in which it makes them.

A `Query` has the contents of a checkpoint: the offsets of its batches, written ahead, and the done ones. A
restart makes another reader of the same checkpoint, which repeats a batch that isn't done. A pickled copy of
the reader does the executors' work.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from barnabas.pipeline.share_source.source import ShareDataSource, ShareStreamReader
from tests.clients.cluster import Cluster
from tests.clients.polling import eventually

Row = dict[str, Any]


class SinkError(Exception):
    """A sink that fails."""


@dataclass
class Query:
    """A query and its checkpoint. `options` are the source's, without servers."""

    cluster: Cluster
    options: dict[str, str]
    log: list[str] = field(default_factory=list[str])
    """By batch id, the offset at which the batch ends."""
    done_count: int = 0
    """Batches that are done."""
    sink: dict[int, list[Row]] = field(default_factory=dict[int, list[Row]])
    """By batch id, its written rows; a batch that is there is not written again."""
    replays: list[list[Row]] = field(default_factory=list[list[Row]])
    """Batches that were there already when they were to be written."""
    reader: ShareStreamReader | None = None
    before_commit: Callable[[int], None] | None = None
    """Is called with a batch's id once its rows are in the sink."""
    first: str | None = None

    @contextmanager
    def running(self, *, available_now: bool = False) -> Generator[Query]:
        """Runs the query on its checkpoint, from start to stop."""
        source = ShareDataSource({"servers": self.cluster.bootstrap, **self.options})
        self.reader = source.streamReader(source.schema())
        try:
            if available_now:
                self.reader.prepareForTriggerAvailableNow()
            if not self.log:
                self.first = json.dumps(self.reader.initialOffset())
            if len(self.log) > self.done_count:
                self._run_batch()
            yield self
        finally:
            self.reader.stop()
            self.reader = None

    def trigger(self) -> list[Row] | None:
        """One trigger: the batch's rows, None if there is nothing to do."""
        if not self.acquire():
            return None
        return self._run_batch()

    def acquire(self) -> bool:
        """The first half of a trigger: the next batch is in the log, if there is one."""
        assert self.reader is not None
        start = self._start(len(self.log))
        limit = self.reader.getDefaultReadLimit()
        assert isinstance(limit, ReadAllAvailable | ReadMaxRows)
        end = json.dumps(self.reader.latestOffset(json.loads(start), limit))
        if end == start:
            return False
        self.log.append(end)
        return True

    def drain(self, count: int) -> None:
        """Triggers until the sink has `count` rows and the last batch is settled."""
        eventually(
            lambda: self.trigger() is None and len(self.rows) >= count, awaited=f"{count} rows are read"
        )

    def drain_available(self) -> None:
        """Trigger until there is nothing to do, as Trigger.AvailableNow does."""
        with self.running(available_now=True):
            while self.trigger() is not None:
                pass

    @property
    def rows(self) -> list[Row]:
        return [row for _, rows in sorted(self.sink.items()) for row in rows]

    @property
    def values(self) -> list[str]:
        """Of the rows, in any order."""
        return sorted(row["value"].decode() for row in self.rows)

    @property
    def metrics(self) -> dict[str, int]:
        assert self.reader is not None
        return self.reader.reportLatestOffset()

    @property
    def end(self) -> dict[str, Any]:
        """The newest offset."""
        found: dict[str, Any] = json.loads(self.log[-1])
        return found

    def _start(self, batch_id: int) -> str:
        start = self.log[batch_id - 1] if batch_id else self.first
        assert start is not None
        return start

    def _run_batch(self) -> list[Row]:
        batch_id = len(self.log) - 1
        rows = self.read(batch_id)
        if batch_id in self.sink:
            self.replays.append(rows)
        else:
            self.sink[batch_id] = rows
        if self.before_commit is not None:
            self.before_commit(batch_id)
        self.done_count = len(self.log)
        return rows

    def read(self, batch_id: int) -> list[Row]:
        """The rows of a batch, as executors read them."""
        assert self.reader is not None
        start = None if batch_id == 0 else json.loads(self.log[batch_id - 1])
        tasks = self.reader.partitions(start or {}, json.loads(self.log[batch_id]))
        copy: ShareStreamReader = pickle.loads(pickle.dumps(self.reader))
        return [
            row
            for task in tasks
            for batch in copy.read(pickle.loads(pickle.dumps(task)))
            for row in batch.to_pylist()
        ]


def query(cluster: Cluster, group: str, topic: str, **options: object) -> Query:
    """A query that is not started; options as Spark has them."""
    given = {"group": group, "topics": topic, **{name: str(value) for name, value in options.items()}}
    return Query(
        cluster, {name: value.lower() if value in _TRUTH else value for name, value in given.items()}
    )


_TRUTH = {"True", "False"}
