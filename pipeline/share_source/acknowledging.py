"""Acknowledges single records from `foreachBatch`, by a column `ack` (accept, release, reject).

    def work(batch: DataFrame, batch_id: int) -> DataFrame:
        batch.where("ok").write...                      # idempotent by batch_id
        return batch.selectExpr("topic", "partition", "offset", "if(ok, 'accept', 'reject') as ack")

    stream.writeStream.foreachBatch(acknowledge_by_column(work, ack_dir="/var/lib/orders/acks"))

`ack_dir` is the source's option `ackDir`. Records whose `ack` is null, and missing records, are accepted.
Released records come again in a later batch, until the group's delivery limit; rejected ones never do. The
source sends the decisions to the broker after the batch, see `decisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.decisions import Decision, DecisionFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BatchFunction = Callable[["DataFrame", int], None]
"""The type of an argument for `foreachBatch`."""

_COORDINATES: Final = ("topic", "partition", "offset")


def acknowledge_by_column(function: Callable[[DataFrame, int], DataFrame], *, ack_dir: str) -> BatchFunction:
    """For `foreachBatch`: the rows from `function` need the columns topic, partition, offset and ack.

    They are evaluated once more after `function` has returned: cache them if that is expensive. Of several
    decisions on one record, reject wins over release, and release over accept. Raises `PipelineError` for
    other values of `ack`.
    """
    files = DecisionFiles(ack_dir)

    def run(batch: DataFrame, batch_id: int) -> None:
        write_decisions(function(batch, batch_id), batch_id, files)

    return run


def write_decisions(decided: DataFrame, batch_id: int, files: DecisionFiles) -> None:
    """Writes the decisions of one batch, and replaces earlier ones."""
    check_columns(decided, (*_COORDINATES, "ack"))
    others = decided.where("ack is not null and ack <> 'accept'").select(*_COORDINATES, "ack")
    files.write(batch_id, _rows(others))


def check_columns(batch: DataFrame, needed: tuple[str, ...] = _COORDINATES) -> None:
    """Raises `PipelineError` if a column is missing."""
    missing = [column for column in needed if column not in batch.columns]
    if missing:
        raise PipelineError(
            f"To acknowledge single records the batch needs the columns {', '.join(needed)}; "
            f"it lacks {', '.join(missing)}."
        )


def _rows(decided: DataFrame) -> Iterator[tuple[str, int, int, Decision]]:
    for row in cast("Any", decided).toArrow().to_pylist():
        yield row["topic"], row["partition"], row["offset"], row["ack"]
