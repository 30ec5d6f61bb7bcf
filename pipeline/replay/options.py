"""The options of `replay`. Wrong values raise `OptionError`, which names the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.tables.options import TableOptions

CHUNK_RECORDS: Final = 100_000
CHUNK_RECORDS_MAX: Final = 10_000_000

CHUNK_SECONDS_MAX: Final = 30
"""The longest time for a throttled chunk: the sink's transaction must not time out meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """Records of a table or of topics, back into a topic."""

    table: TableOptions | None = None
    """Where they come from; either this or `topic_options`."""
    topic_options: Mapping[str, str] | None = None
    """The same as options of `kafka-topic` for reading: `servers`, `topics`, `startingOffsets`, ..."""
    sink_options: Mapping[str, str]
    """Where they go, as options of `kafka-topic` for writing: `servers`, `topic`, ..."""
    progress: str = ""
    """A directory for this replay alone, where it keeps its progress. Needed unless `dry_run`."""
    where: str | None = None
    """An expression of Spark SQL over the columns; the records for which it is true are replayed."""
    from_ms: int | None = None
    """Records with this timestamp or a later one, in ms since 1970."""
    to_ms: int | None = None
    """Records with an earlier timestamp than this."""
    partitions: Sequence[int] | None = None
    """Records of these partitions of the original topic."""
    key: str = "key"
    """The key to write: a column or an expression, such as `value.id` in a table of decoded values."""
    value: str = "value"
    """The value to write, such as `to_json(value)` for a decoded value."""
    keep_timestamps: bool = False
    """Whether records keep their time; otherwise they get the time of the replay, which retention uses."""
    keep_partitions: bool = False
    """Whether records keep the number of their partition; otherwise their key decides."""
    records_per_second: float | None = None
    bytes_per_second: float | None = None
    """Bounds for all tasks together, of keys and values; with either of them, one task writes."""
    chunk_records: int = CHUNK_RECORDS
    """Records that are written at once; a chunk is one transaction if the brokers have transactions."""
    dry_run: bool = False
    """Count, and write nothing."""

    def __post_init__(self) -> None:
        if (self.table is None) == (self.topic_options is None):
            raise OptionError("table", "give either a table or topic_options to replay from")
        if not self.dry_run and not self.progress.strip():
            raise OptionError("progress", "is needed: a directory for this replay alone")
        if not 1 <= self.chunk_records <= CHUNK_RECORDS_MAX:
            raise OptionError("chunk_records", f"{self.chunk_records} is not from 1 to {CHUNK_RECORDS_MAX}")
        for name in ("records_per_second", "bytes_per_second"):
            rate = getattr(self, name)
            if rate is not None and not rate > 0:
                raise OptionError(name, f"{rate} is not more than 0")
        if self.from_ms is not None and self.to_ms is not None and self.from_ms >= self.to_ms:
            raise OptionError("to_ms", f"{self.to_ms} is not later than from_ms, {self.from_ms}")

    @property
    def is_throttled(self) -> bool:
        """Whether there is a bound on the rate."""
        return self.records_per_second is not None or self.bytes_per_second is not None

    @property
    def rows_per_chunk(self) -> int:
        """The most rows of a chunk, before they are filtered."""
        if self.records_per_second is None:
            return self.chunk_records
        return max(1, min(self.chunk_records, int(self.records_per_second * CHUNK_SECONDS_MAX)))
