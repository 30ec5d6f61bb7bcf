"""The options of a table and of `compact`. Wrong values raise `OptionError`, which names the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.options import require_choice
from barnabas.pipeline.tables.partitioning import PartitionColumn, parse_partitioning

TABLE_FORMATS: Final = ("parquet", "delta", "iceberg")

TARGET_BYTES: Final = 128 * 1024 * 1024
TARGET_BYTES_MIN: Final = 1024
TARGET_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """A table: its location, format and partitions."""

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

    @property
    def partition_names(self) -> list[str]:
        """Their names."""
        return [column.name for column in self.partition_columns]


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
