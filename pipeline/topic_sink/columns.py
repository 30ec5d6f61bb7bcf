"""The columns of rows to be written, and the parts of records that are made from them.

`value` is required; `key`, `headers`, `topic`, `partition` and `timestamp` are optional, with the names that
they have in reads. Text is written as UTF-8. The other columns of reads (`offset`, `timestampType`,
`deliveryCount`) are ignored; any other column is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.pipeline.columnar import Array, RecordBatch
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.errors import OptionError, PipelineError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TYPES: Final = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>", "array<struct<key:string,value:string>>"),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
IGNORED_COLUMNS: Final = frozenset({"offset", "timestampType", "deliveryCount"})

_MICROSECONDS_PER_MS: Final = 1000


class Row(NamedTuple):
    """One record to be written. `timestamp_ms` is None for the time of writing."""

    topic: str | None
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[Any] | None
    """Each with `key` and `value`."""
    timestamp_ms: int | None


def check_schema(schema: StructType, topic: str | None) -> None:
    """Raises `PipelineError` for columns that can't be written."""
    names = {field.name for field in schema}
    for field in schema:
        if field.name in IGNORED_COLUMNS:
            continue
        kinds = TYPES.get(field.name)
        if kinds is None:
            raise PipelineError(f"There is no column {field.name} to write; there are {', '.join(TYPES)}.")
        if field.dataType.simpleString() not in kinds:
            given = field.dataType.simpleString()
            raise PipelineError(f"The column {field.name} is {given}; it has to be {' or '.join(kinds)}.")
    if "value" not in names:
        raise PipelineError("There is no column value to write.")
    if topic is None and "topic" not in names:
        raise OptionError("topic", "is needed, since the rows have no column topic")


def rows(batch: RecordBatch, topic: str | None) -> Iterator[Row]:
    """The rows of a batch; `topic`, if it is given, wins over their column `topic`."""
    names = batch.schema.names
    count = batch.num_rows
    nulls = [None] * count

    def column(name: str) -> Sequence[Any]:
        return batch.column(names.index(name)).to_pylist() if name in names else nulls

    times = _times(batch.column(names.index("timestamp"))) if "timestamp" in names else nulls
    topics = [topic] * count if topic is not None else column("topic")
    parts = topics, column("partition"), _bytes(column("key")), _bytes(column("value"))
    return map(Row, *parts, column("headers"), times)


def topics_of(batch: RecordBatch, topic: str | None) -> set[str]:
    """The topics that rows name. Raises `PipelineError` for a row without one."""
    if topic is not None:
        return {topic}
    named = set(batch.column(batch.schema.names.index("topic")).unique().to_pylist())
    if None in named:
        raise PipelineError("A row has null in its column topic, and there is no option topic.")
    return named


def as_bytes(value: bytes | str | None) -> bytes | None:
    """Text as UTF-8."""
    return value.encode() if isinstance(value, str) else value


def _bytes(values: Sequence[Any]) -> Sequence[bytes | None]:
    return (
        [as_bytes(value) for value in values] if any(isinstance(value, str) for value in values) else values
    )


def _times(column: Array) -> Sequence[int | None]:
    """Milliseconds since 1970 of a column of Spark's timestamps, which are microseconds."""
    microseconds = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
    return [None if timestamp is None else timestamp // _MICROSECONDS_PER_MS for timestamp in microseconds]
