"""`format("kafka-share")`: the methods that Spark calls (Python Data Source API, Spark 4.2).

    initialOffset           once, for a query without a checkpoint
    latestOffset            at each trigger, when every batch up to `start` is done
    partitions, read        for each batch, and for one that a stopped query left in its log
    reportLatestOffset      for the query's progress

One reader lives in a process on the driver as long as the query runs. Its copies on executors only `read`,
and have no open connections.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.schema import SHARE_COLUMNS, spark_schema
from barnabas.pipeline.share_source.driver import ShareDriver
from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.piece_reader import read_pieces
from barnabas.pipeline.share_source.settings import ShareSettings, parse_settings
from barnabas.pipeline.share_source.splitting import Piece, split


class ShareInputPartition(InputPartition):
    """The pieces that one task reads."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)


class ShareStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A query's reader. Offsets are the JSON of a `ShareOffset`."""

    def __init__(self, settings: ShareSettings) -> None:
        self._settings = settings
        self._driver: ShareDriver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_driver": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return ShareOffset(group_id=self._settings.group, member_id=_new_member_id()).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        count_max = self._settings.max_records_per_batch
        return ReadAllAvailable() if count_max is None else ReadMaxRows(count_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._opened().prepare_available_now()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        count_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = self._opened().next_offset(ShareOffset.from_json(start), count_max)
        return start if end is None else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._opened().metrics.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        tasks = split(
            self._opened().begin_batch(ShareOffset.from_json(end)),
            cores=self._settings.cores,
            min_task_count=self._settings.min_partitions,
            task_offsets_max=self._settings.max_records_per_partition,
        )
        return [ShareInputPartition(pieces) for pieces in tasks]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        assert isinstance(partition, ShareInputPartition)
        return read_pieces(self._settings, partition.pieces)

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.stop()
            self._driver = None

    def _opened(self) -> ShareDriver:
        if self._driver is None:
            self._driver = ShareDriver(self._settings)
        return self._driver


class ShareDataSource(DataSource):
    """The format; options are those of `settings`."""

    @classmethod
    def name(cls) -> str:
        return "kafka-share"

    def schema(self) -> StructType:
        return spark_schema(SHARE_COLUMNS, parse_settings(self.options).columns)

    def streamReader(self, schema: StructType) -> ShareStreamReader:  # noqa: N802
        return ShareStreamReader(parse_settings(self.options))


def _new_member_id() -> str:
    """An id like those of Kafka's clients: a random UUID in 22 characters."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
