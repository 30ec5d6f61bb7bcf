"""What `ingest` and `compact` are asked for. Wrong values raise `OptionError`, naming the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.ingest.partitioning import PartitionColumn, parse_partitioning
from barnabas.pipeline.ingest.values.options import ValueOptions

TABLE_FORMATS: Final = ("parquet", "delta", "iceberg")
SOURCES: Final = ("kafka-share", "kafka-topic")
INVALID_ACTIONS: Final = ("fail", "side-table", "reject")

TARGET_BYTES: Final = 128 * 1024 * 1024
TARGET_BYTES_MIN: Final = 1024
TARGET_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """A table: where it is, what it is, how it is partitioned."""

    location: str
    """A path or URI; for Iceberg the table's name in its catalog, such as `sales.orders`."""
    format: Literal["parquet", "delta", "iceberg"] = "parquet"
    partition_by: Sequence[str] = ()
    """Columns, or `NAME=EXPRESSION` of Spark SQL; `date` is the day of `timestamp` in UTC."""
    storage: Mapping[str, str] = field(default_factory=dict[str, str])
    """For Delta Lake its object store's settings, for Iceberg the catalog's properties; not for Parquet."""

    def __post_init__(self) -> None:
        if not self.location.strip():
            raise OptionError("location", "is needed, such as 's3a://lake/orders'")
        require_choice("format", self.format, TABLE_FORMATS)
        if self.format == "parquet" and self.storage:
            raise OptionError("storage", "is not for parquet, which takes Spark's own settings")
        parse_partitioning(self.partition_by)

    @property
    def partition_columns(self) -> tuple[PartitionColumn, ...]:
        """The columns that the table is partitioned by, in that order."""
        return parse_partitioning(self.partition_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """A stream of records into a table."""

    source: Literal["kafka-share", "kafka-topic"] = "kafka-share"
    source_options: Mapping[str, str]
    """As the source takes them: `servers`, `group`, `topics`, ..."""
    table: TableOptions
    checkpoint: str
    """Where Spark keeps how far the stream is. It belongs to this stream alone and must outlive it."""
    values: ValueOptions | None = None
    """How values are decoded; None leaves them as bytes."""
    invalid: Literal["fail", "side-table", "reject"] = "fail"
    """What happens to records whose value doesn't fit the schema. `reject` is for share groups."""
    side_table: TableOptions | None = None
    """Where they go with `side-table`."""
    interval_ms: int | None = None
    """Time between the beginnings of two batches; None takes what is there now and ends."""
    name: str | None = None
    """The query's name, in Spark's pages and metrics."""

    def __post_init__(self) -> None:
        require_choice("source", self.source, SOURCES)
        require_choice("invalid", self.invalid, INVALID_ACTIONS)
        if not self.checkpoint.strip():
            raise OptionError("checkpoint", "is needed: a directory of this stream's own")
        if self.interval_ms is not None and self.interval_ms < 0:
            raise OptionError("interval_ms", f"{self.interval_ms} is not 0 or more")
        self._check_invalid()

    def _check_invalid(self) -> None:
        if self.invalid != "fail" and self.values is None:
            raise OptionError("invalid", f"{self.invalid} needs a schema that values can fail to fit")
        if (self.side_table is None) == (self.invalid == "side-table"):
            raise OptionError("side_table", "and invalid=side-table need each other")
        if self.side_table is not None and self.side_table.location == self.table.location:
            raise OptionError("side_table", "is the table itself")
        if self.invalid == "reject" and self.source != "kafka-share":
            raise OptionError(
                "invalid", "reject is for the source kafka-share: nothing else has dead letters"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions:
    """Merging of a table's small files."""

    table: TableOptions
    target_bytes: int = TARGET_BYTES
    """Files of at most half of this are merged, to about this size."""
    dry_run: bool = False

    def __post_init__(self) -> None:
        if not TARGET_BYTES_MIN <= self.target_bytes <= TARGET_BYTES_MAX:
            raise OptionError(
                "target_bytes", f"{self.target_bytes} is not from {TARGET_BYTES_MIN} to {TARGET_BYTES_MAX}"
            )


def require_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raises `OptionError` unless the value is one of the choices."""
    if value not in choices:
        raise OptionError(option, f"{value!r} is not {' or '.join(choices)}")
