"""Writes micro-batches to a table: the function for `foreachBatch`, with (rows, number of the batch).

A batch is written once, because the table knows the last batch of each query. The id in its checkpoint
identifies a query, not a name: a new checkpoint counts batches from zero. A checkpoint that was replaced by
an older copy uses numbers again; the batches' fingerprints reveal that, and it is an error.

With a schema, values are decoded. Records whose value doesn't fit go to the side table or are rejected before
the rest becomes part of the table. After a crash a record may be in both, but it is always in one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.ingest.invalid_records import TakesInvalid
from barnabas.pipeline.ingest.values.decoding import REASON_COLUMN, ValueDecoding
from barnabas.pipeline.spark_errors import is_py4j_error, is_spark_error, root_cause
from barnabas.pipeline.tables.batches import UNKNOWN, Batch
from barnabas.pipeline.tables.lake_table import AddedFiles, LakeTable
from barnabas.protocol.counted import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

log = logging.getLogger(__name__)

QUERY_ID_PROPERTY: Final = "sql.streaming.queryId"
"""Spark sets it for the jobs of a streaming query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBatch:
    """The result of a batch.

    Counts are None for a batch of an earlier try if its records are gone from the topic by now.
    """

    batch_id: int
    is_repeated: bool = False
    """Whether the table had it already."""
    record_count: int | None = None
    """Records of the batch that are in the table."""
    invalid_count: int | None = None
    file_count: int = 0
    size_bytes: int = 0


class BatchWriter:
    """An argument for `foreachBatch`."""

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
        """With `take_invalid` None a record that doesn't fit fails the batch; the error names the record.

        `query` is for callers other than Spark's streaming; `fingerprint` returns the fingerprint of a batch
        by its number; `at_batch` is called after each batch.
        """
        self._table = table
        self._decoding = decoding
        self._take_invalid = take_invalid
        self._query = query
        self._fingerprint = fingerprint
        self._at_batch = at_batch

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Writes a batch, unless it was written before. Raises `PipelineError`."""
        batch = Batch(self._query or _query_of(frame), batch_id, self._fingerprint(batch_id))
        try:
            written = self._write(frame, batch)
        except Exception as error:
            if not is_py4j_error(error):
                raise
            # Spark looks through a message that names this error for its cause, by a regular expression that
            # needs a stack as deep as the message is long. One with a Java stack in it overflows.
            raise PipelineError(f"Batch {batch_id} was not written: {root_cause(error)}") from None
        self._at_batch(written)

    def _write(self, frame: DataFrame, batch: Batch) -> WrittenBatch:
        decoded = frame if self._decoding is None else self._decoding.decoded(frame)
        counted, counts = _counted(decoded, is_decoded=self._decoding is not None)
        good = counted if self._decoding is None else self._decoding.fitting(counted)
        staged = self._table.stage(good, batch)
        if staged is None or staged.is_adopted:
            self._repeat_invalid(decoded, batch)
            added = None if staged is None else staged.commit()
            return self._repeated(decoded, batch.batch_id, added)
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

    def _repeated(self, decoded: DataFrame, batch_id: int, added: AddedFiles | None) -> WrittenBatch:
        """The result for a batch whose rows an earlier try wrote; `added` is None if the table has them."""
        record_count, invalid_count = _counted_again(decoded, is_decoded=self._decoding is not None)
        return WrittenBatch(
            batch_id=batch_id,
            is_repeated=added is None,
            record_count=None if record_count is None else record_count - (invalid_count or 0),
            invalid_count=invalid_count,
            file_count=0 if added is None else added.file_count,
            size_bytes=0 if added is None else added.size_bytes,
        )

    def _repeat_invalid(self, decoded: DataFrame, batch: Batch) -> None:
        """An earlier try had staged the rows, and so had handled the records that don't fit."""
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
            f"{counted(invalid_count, 'record')} of batch {batch.batch_id} cannot be read with the schema; "
            f"the first is {first[0]}-{first[1]} offset {first[2]}: {first[3]}"
        )


def _counted_again(frame: DataFrame, *, is_decoded: bool) -> tuple[int | None, int | None]:
    """The number of rows and of those that don't fit, read once more; None if they are gone by now."""
    try:
        row = frame.agg(*_sums(is_decoded=is_decoded)).first()
    except Exception as error:
        if not is_spark_error(error):
            raise
        log.warning("The records of a repeated batch cannot be counted: %s", root_cause(error))
        return None, None
    assert row is not None, "an aggregation without groups has one row"
    return int(row["records"]), int(row["invalid"])


def _counted(frame: DataFrame, *, is_decoded: bool) -> tuple[DataFrame, Callable[[], tuple[int, int]]]:
    """The rows, and a function that returns their number and the number that don't fit, after the write."""
    from pyspark.sql import Observation

    observation = Observation()
    watched = frame.observe(observation, *_sums(is_decoded=is_decoded))

    def counts() -> tuple[int, int]:
        found: dict[str, Any] = observation.get
        return int(found["records"]), int(found["invalid"])

    return watched, counts


def _sums(*, is_decoded: bool) -> tuple[Column, Column]:
    from pyspark.sql.functions import col, count, lit

    invalid = count(col(REASON_COLUMN)) if is_decoded else count(lit(None))
    return count(lit(1)).alias("records"), invalid.alias("invalid")


def _query_of(frame: DataFrame) -> str:
    query: str | None = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID_PROPERTY)
    if query is None:
        raise PipelineError("This is no batch of a streaming query: pass the argument query to the writer.")
    return query
