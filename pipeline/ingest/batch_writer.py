"""Writes micro-batches to a table: what `foreachBatch` calls, with (rows, number of the batch).

A batch is written once: the table knows which batches of which query it has. The query goes by the id that
its checkpoint holds, not by a name, for a new checkpoint counts batches from zero. One that an older copy has
replaced gives out numbers again: the batches' fingerprints tell, and that is an error.

With a schema, values are decoded on the way. Those that don't fit go to the side table or are rejected,
before the rest becomes part of the table: where both are cut short, a record may be in both and is never in
neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.ingest.batches import UNKNOWN, Batch
from barnabas.pipeline.ingest.invalid_records import TakesInvalid
from barnabas.pipeline.ingest.tables import AddedFiles, LakeTable
from barnabas.pipeline.ingest.values.decoding import REASON_COLUMN, ValueDecoding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID_PROPERTY: Final = "sql.streaming.queryId"
"""Spark sets it for what a streaming query runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBatch:
    """What became of a batch. Counts are None where an earlier try had written the rows."""

    batch_id: int
    is_repeated: bool = False
    """Whether the table had it already."""
    record_count: int | None = None
    invalid_count: int | None = None
    file_count: int = 0
    size_bytes: int = 0


class BatchWriter:
    """To be given to `foreachBatch`."""

    def __init__(
        self,
        table: LakeTable,
        decoding: ValueDecoding | None = None,
        take_invalid: TakesInvalid | None = None,
        *,
        query: str | None = None,
        fingerprint: Callable[[int], int] = lambda _batch_id: UNKNOWN,
        at_batch: Callable[[WrittenBatch], None] = lambda _written: None,
    ) -> None:
        """`take_invalid` None fails the batch at the first record that doesn't fit, naming it.

        `query` is for callers that aren't Spark's streaming; `fingerprint` answers a batch's, by its number;
        `at_batch` hears of each batch that is done.
        """
        self._table = table
        self._decoding = decoding
        self._take_invalid = take_invalid
        self._query = query
        self._fingerprint = fingerprint
        self._at_batch = at_batch

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Writes a batch, unless it has been written before."""
        batch = Batch(self._query or _query_of(frame), batch_id, self._fingerprint(batch_id))
        self._at_batch(self._write(frame, batch))

    def _write(self, frame: DataFrame, batch: Batch) -> WrittenBatch:
        decoded = frame if self._decoding is None else self._decoding.decoded(frame)
        counted, counts = _counted(decoded, is_decoded=self._decoding is not None)
        good = counted if self._decoding is None else self._decoding.fitting(counted)
        staged = self._table.stage(good, batch)
        if staged is None or staged.is_adopted:
            self._repeat_invalid(decoded, batch)
            added = None if staged is None else staged.commit()
            return _repeated(batch.batch_id, added)
        record_count, invalid_count = counts()
        if invalid_count:
            self._pass_on_invalid(decoded, batch, invalid_count)
        if record_count == invalid_count:
            staged.discard()
            return WrittenBatch(batch_id=batch.batch_id, record_count=0, invalid_count=invalid_count)
        added = staged.commit()
        return WrittenBatch(
            batch_id=batch.batch_id,
            record_count=record_count - invalid_count,
            invalid_count=invalid_count,
            file_count=added.file_count,
            size_bytes=added.size_bytes,
        )

    def _repeat_invalid(self, decoded: DataFrame, batch: Batch) -> None:
        """An earlier try had come to the table's part, and so had passed on what didn't fit."""
        if self._decoding is not None and self._take_invalid is not None and self._take_invalid.has_to_repeat:
            self._take_invalid(self._decoding.failing(decoded), batch)

    def _pass_on_invalid(self, decoded: DataFrame, batch: Batch, invalid_count: int) -> None:
        assert self._decoding is not None
        invalid = self._decoding.failing(decoded)
        if self._take_invalid is not None:
            self._take_invalid(invalid, batch)
            return
        first = invalid.select("topic", "partition", "offset", REASON_COLUMN).first()
        assert first is not None
        raise PipelineError(
            f"{invalid_count} records of batch {batch.batch_id} don't fit the schema, the first of them "
            f"{first[0]}-{first[1]} offset {first[2]}: {first[3]}"
        )


def _repeated(batch_id: int, added: AddedFiles | None) -> WrittenBatch:
    if added is None:
        return WrittenBatch(batch_id=batch_id, is_repeated=True)
    return WrittenBatch(batch_id=batch_id, file_count=added.file_count, size_bytes=added.size_bytes)


def _counted(frame: DataFrame, *, is_decoded: bool) -> tuple[DataFrame, Callable[[], tuple[int, int]]]:
    """The rows, and how many there were and didn't fit, to be asked once they have been written."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import col, count, lit

    observation = Observation()
    invalid = count(col(REASON_COLUMN)) if is_decoded else count(lit(None))
    watched = frame.observe(observation, count(lit(1)).alias("records"), invalid.alias("invalid"))

    def counts() -> tuple[int, int]:
        found: dict[str, Any] = observation.get
        return int(found["records"]), int(found["invalid"])

    return watched, counts


def _query_of(frame: DataFrame) -> str:
    query: str | None = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID_PROPERTY)
    if query is None:
        raise PipelineError("This is no batch of a streaming query: give the writer a name to know it by.")
    return query
