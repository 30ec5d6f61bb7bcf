"""Micro-batches of topics: the available records, the part that a batch takes, and lost records.

Each trigger looks again for matching topics, new partitions and their ends. A batch's records depend only on
its two offsets, so a replayed batch holds the same records.

Data loss is an error unless `failOnDataLoss` is false: a topic that was deleted or created again, a partition
that ends before the stream's offset, records that retention deleted before they were read. Skipped records
are always logged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from barnabas.client.cluster.topics import Topic
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.topic_source.batch_reader import TopicTask, read_task
from barnabas.pipeline.topic_source.catalog import Catalog
from barnabas.pipeline.topic_source.planning import ranges_between, share, split
from barnabas.pipeline.topic_source.positions import Positions, find_topics, latest, starts
from barnabas.pipeline.topic_source.stream_offset import StreamOffset, parse_stream_offset, stream_offset
from barnabas.pipeline.topic_source.topic_options import TopicOptions

log = logging.getLogger(__name__)


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One query's view of its topics. Lives on the driver; a copy without connections reads in tasks."""

    def __init__(self, options: TopicOptions) -> None:
        self._options = options
        self._catalog = Catalog(options.servers)
        self._target: tuple[list[Topic], Positions] | None = None
        """The query's end, with Trigger.AvailableNow."""
        self._seen: StreamOffset | None = None
        """The ends of all partitions at the last look."""

    # Spark calls these methods.

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        topics = find_topics(self._catalog, self._options)
        first = starts(self._catalog, topics, self._options, "latest")
        return stream_offset(topics, first).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        count_max = self._options.offsets_per_trigger_max
        return ReadAllAvailable() if count_max is None else ReadMaxRows(count_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        topics = self._topics()
        self._target = topics, latest(self._catalog, topics, self._options.isolation)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begun = parse_stream_offset(start)
        topics, ends = self._available()
        self._seen = stream_offset(topics, ends)
        self._check_topics(begun, topics)
        available: dict[Any, int] = {}
        reached: dict[Any, int] = {}
        for topic in topics:
            for partition in topic.partitions:
                if partition in ends:
                    reached[partition] = begun.next_offset(topic.name, partition)
                    self._check_end(topic.name, partition.partition, reached[partition], ends[partition])
                    available[partition] = max(ends[partition] - reached[partition], 0)
        taken = available
        if isinstance(limit, ReadMaxRows):
            taken = share(available, limit.max_rows, turn=sum(reached.values()))
        reached = {
            partition: min(offset, ends[partition]) + taken[partition]
            for partition, offset in reached.items()
        }
        return stream_offset(topics, reached).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._seen is None else self._seen.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        planned = ranges_between(parse_stream_offset(start), parse_stream_offset(end))
        return [TopicTask(ranges) for ranges in split(planned, self._options.partitions_min)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """The task's rows as Arrow batches."""
        return read_task(partition.wanted, self._options) if isinstance(partition, TopicTask) else iter(())

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: Spark's checkpoint has the progress."""

    def stop(self) -> None:
        self._catalog.close()

    # Available and missing records.

    def _available(self) -> tuple[list[Topic], Positions]:
        if self._target is not None:
            return self._target
        topics = self._topics()
        return topics, latest(self._catalog, topics, self._options.isolation)

    def _topics(self) -> list[Topic]:
        if self._options.pattern is not None:
            return self._catalog.match(self._options.pattern)
        return self._catalog.find_known(self._options.topics or ())

    def _check_topics(self, begun: StreamOffset, topics: Sequence[Topic]) -> None:
        found = {topic.name: topic for topic in topics}
        for name, known in begun.topics.items():
            topic = found.get(name)
            if topic is None:
                self._lost(f"The topic {name} was deleted.")
            elif topic.topic_id != known.topic_id:
                self._lost(
                    f"The topic {name} was deleted and created again: {topic.topic_id}, not {known.topic_id}."
                )

    def _check_end(self, topic: str, partition: int, reached: int, end: int) -> None:
        if end < reached:
            self._lost(f"{topic}-{partition} ends at {end}, before the stream's offset {reached}.")

    def _lost(self, what: str) -> None:
        if self._options.fails_on_data_loss:
            raise PipelineError(f"{what} Records may be lost; failOnDataLoss=false goes on with the others.")
        log.warning("%s The stream goes on with the other records, because failOnDataLoss is false.", what)
