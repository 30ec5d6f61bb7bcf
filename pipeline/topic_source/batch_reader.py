"""One scan of topics: planned on the driver with the query's filters, read in tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from barnabas.client.cluster.topics import Topic
from barnabas.client.consume.topic_reader import ReadSettings
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.filters import LEAST, MOST, Kept, take_filters
from barnabas.pipeline.reading import Gone, PartitionRanges, read_records
from barnabas.pipeline.topic_source.catalog import Catalog
from barnabas.pipeline.topic_source.planning import split
from barnabas.pipeline.topic_source.positions import Positions, ends, find_topics, starts
from barnabas.pipeline.topic_source.topic_options import TopicOptions

log = logging.getLogger(__name__)


class TopicTask(InputPartition):
    """The ranges that one task reads."""

    def __init__(self, wanted: PartitionRanges) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class TopicBatchReader(DataSourceReader):
    """Reads all records that the options name."""

    def __init__(self, options: TopicOptions) -> None:
        self._options = options
        self._kept = Kept()

    def partitions(self) -> list[InputPartition]:
        catalog = Catalog(self._options.servers)
        try:
            planned = self._plan(catalog)
        finally:
            catalog.close()
        return [TopicTask(ranges) for ranges in split(planned, self._options.partitions_min)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """The task's rows as Arrow batches. With nothing to read, Spark calls it once without a task."""
        if not isinstance(partition, TopicTask):
            return iter(())
        times = self._kept.time_range_ms
        return read_task(partition.wanted, self._options, None if times == (LEAST, MOST) else times)

    def _plan(self, catalog: Catalog) -> list[PartitionRanges]:
        kept = self._kept
        topics = [
            topic
            for topic in find_topics(catalog, self._options)
            if any(kept.has_partition(topic.name, partition.partition) for partition in topic.partitions)
        ]
        first = starts(catalog, topics, self._options, "earliest")
        behind = ends(catalog, topics, self._options)
        not_older = self._not_older(catalog, topics, behind)
        planned: list[PartitionRanges] = []
        for topic in topics:
            for partition in topic.partitions:
                begin = max(first[partition], kept.offset_range[0], not_older.get(partition, 0))
                end = min(behind[partition] - 1, kept.offset_range[1])
                if begin <= end and kept.has_partition(topic.name, partition.partition):
                    planned.append(PartitionRanges(topic.name, partition, ((begin, end, 0),)))
        return planned

    def _not_older(self, catalog: Catalog, topics: list[Topic], behind: Positions) -> Positions:
        """The first offsets that may be new enough for the filters: all records in front are older."""
        first_ms = self._kept.time_range_ms[0]
        if first_ms <= 0:
            # Brokers look up no time before 1970, and -1 is the time of records that have none.
            return {}
        at_time = {partition: first_ms for topic in topics for partition in topic.partitions}
        found = catalog.offsets(list(at_time), at_time, self._options.isolation)
        return {
            partition: behind[partition] if offset is None else offset for partition, offset in found.items()
        }


class FilteringTopicBatchReader(TopicBatchReader):
    """Reads the records that a query's filters select."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        self._kept, left = take_filters(self._kept, filters)
        return left


def read_task(
    wanted: PartitionRanges, options: TopicOptions, timestamps: tuple[int, int] | None = None
) -> Iterator[RecordBatch]:
    """One task's records."""
    return read_records(
        options.servers,
        [wanted],
        options.columns,
        settings=ReadSettings(isolation=options.isolation),
        timestamps=timestamps,
        on_gone=None if options.fails_on_data_loss else _warn,
    )


def _warn(gone: Gone) -> None:
    log.warning("%s Reading goes on behind them, because failOnDataLoss is false.", gone)
