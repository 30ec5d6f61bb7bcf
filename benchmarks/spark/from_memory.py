"""The cost of any source written in Python: rows with the columns of `kafka-share`, from memory.

Nothing is read or decoded. A task passes the same Arrow batch to Spark each time, so only Spark's own work
remains: planning, its logs, the communication of a task with its Python worker, conversion from Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.schema import SHARE_COLUMNS, spark_schema
from barnabas.pipeline.tables.arrow_types import to_arrow

VALUE = bytes(100)


class FromMemorySource(DataSource):
    """Option: maxRecordsPerBatch."""

    @classmethod
    def name(cls) -> str:
        return "from-memory"

    def schema(self) -> StructType:
        return _schema()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return FromMemoryReader(int(self.options["maxrecordsperbatch"]))


class FromMemoryReader(DataSourceStreamReader):
    """Offsets count the batches; each is one task."""

    def __init__(self, record_count: int) -> None:
        self._record_count = record_count

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"batches": 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        return {"batches": start["batches"] + 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(self._record_count)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        yield _rows(partition.value)


@cache
def _rows(count: int) -> RecordBatch:
    """Created once in each Python worker."""
    row: dict[str, object] = {
        "key": None,
        "value": VALUE,
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "timestampType": 0,
        "headers": [],
        "deliveryCount": 1,
    }
    batch: RecordBatch = pa.RecordBatch.from_pylist([row] * count, schema=to_arrow(_schema()))
    return batch


def _schema() -> StructType:
    return spark_schema(SHARE_COLUMNS, list(SHARE_COLUMNS))
