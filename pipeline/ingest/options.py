"""The options of `ingest`. Wrong values raise `OptionError`, which names the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.ingest.values.options import ValueOptions
from barnabas.pipeline.options import require_choice
from barnabas.pipeline.tables.options import TableOptions

SOURCES: Final = ("kafka-share", "kafka-topic")
INVALID_ACTIONS: Final = ("fail", "side-table", "reject")


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """A stream of records into a table."""

    source: Literal["kafka-share", "kafka-topic"] = "kafka-share"
    source_options: Mapping[str, str]
    """The options of the source: `servers`, `group`, `topics`, ..."""
    table: TableOptions
    checkpoint: str
    """Where Spark keeps the stream's progress. It belongs to this stream alone and must outlive it."""
    values: ValueOptions | None = None
    """How values are decoded; None leaves them as bytes."""
    invalid: Literal["fail", "side-table", "reject"] = "fail"
    """How to handle records whose value doesn't fit the schema. `reject` is for share groups."""
    side_table: TableOptions | None = None
    """Their table with `side-table`."""
    interval_ms: int | None = None
    """Time between the beginnings of two batches; None reads up to the present end, and stops."""
    name: str | None = None
    """The query's name, in Spark's pages and metrics."""

    def __post_init__(self) -> None:
        require_choice("source", self.source, SOURCES)
        require_choice("invalid", self.invalid, INVALID_ACTIONS)
        if not self.checkpoint.strip():
            raise OptionError("checkpoint", "is needed: a directory for this stream alone")
        if self.interval_ms is not None and self.interval_ms < 0:
            raise OptionError("interval_ms", f"{self.interval_ms} is not 0 or more")
        self._check_invalid()

    def _check_invalid(self) -> None:
        if self.invalid != "fail" and self.values is None:
            raise OptionError("invalid", f"{self.invalid} needs a schema for the values")
        if (self.side_table is None) == (self.invalid == "side-table"):
            raise OptionError("side_table", "is needed with invalid=side-table, and only then")
        if self.side_table is not None and self.side_table.location == self.table.location:
            raise OptionError("side_table", "is the table itself")
        if self.invalid == "reject" and self.source != "kafka-share":
            raise OptionError(
                "invalid", "reject is for the source kafka-share; other sources have no dead letters"
            )
