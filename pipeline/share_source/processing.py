"""Runs a function on each record, in the executors; a record for which it fails does not stall the stream.

    def parse(record: dict[str, Any]) -> dict[str, Any]:
        return json.loads(record["value"])

    stream.writeStream.foreachBatch(
        process_records(parse, schema="id bigint, city string", write=append, on_error="reject", ack_dir=...)
    )

`write` writes the function's results. It has to be idempotent by batch id, because `foreachBatch` is called
again with the same records after a failure. If the function raises for a record, that record is, by
`on_error`,

    sideTable   accepted, and written to the side table with the error
    reject      rejected: never delivered again, and copied to the dead letter topic if the group has one
    release     released: delivered again, until the group's delivery limit

With `side_table`, the side table gets failed records in each of these cases: Parquet, one directory per batch
id, which is replaced when a batch is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.share_source.acknowledging import BatchFunction, check_columns, write_decisions
from barnabas.pipeline.share_source.decisions import DecisionFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

RecordFunction = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""From a record's columns by name to those of the result; None for no result."""
OnError = Literal["sideTable", "reject", "release"]

ERROR_CHARS_MAX: Final = 1_000
"""The greatest length of an error's text."""


def process_records(
    function: RecordFunction,
    *,
    schema: str | StructType,
    write: Callable[[DataFrame, int], object],
    on_error: OnError,
    ack_dir: str | None = None,
    side_table: str | None = None,
) -> BatchFunction:
    """For `foreachBatch`: see above. `schema` is of the results; `ack_dir` is the source's option `ackDir`.

    A result that doesn't fit the schema is an error of its record. The batch needs the columns topic,
    partition and offset. Raises `OptionError` for a missing argument.
    """
    files = _decision_files(on_error, ack_dir)
    if on_error == "sideTable" and side_table is None:
        raise OptionError("side_table", "is needed with on_error=sideTable")

    def run(batch: DataFrame, batch_id: int) -> None:
        check_columns(batch)
        processed = _processed(batch, function, schema).persist()
        try:
            write(processed.where("attempt.result is not null").select("attempt.result.*"), batch_id)
            failed = processed.where("attempt.error is not null")
            failures = failed.select("*", "attempt.error").drop("attempt")
            if side_table is not None:
                failures.coalesce(1).write.mode("overwrite").parquet(f"{side_table}/batch={batch_id}")
            if files is not None:
                write_decisions(failures.selectExpr("*", f"'{on_error}' as ack"), batch_id, files)
        finally:
            processed.unpersist()

    return run


def _decision_files(on_error: OnError, ack_dir: str | None) -> DecisionFiles | None:
    if on_error not in {"sideTable", "reject", "release"}:
        raise OptionError("on_error", f"{on_error!r} is not sideTable or reject or release")
    if on_error == "sideTable":
        return None
    if ack_dir is None:
        raise OptionError("ack_dir", f"is needed with on_error={on_error}; it is the source's option ackDir")
    return DecisionFiles(ack_dir)


def _processed(batch: DataFrame, function: RecordFunction, schema: str | StructType) -> DataFrame:
    """The batch with the column `attempt`, which has an `error`, or null, and a `result`."""
    from pyspark.sql.functions import struct, udf
    from pyspark.sql.types import StringType, StructType

    result = schema if isinstance(schema, StructType) else _struct_of(schema)
    attempt = StructType().add("error", StringType()).add("result", result)
    # Without Arrow, for which Spark would need pandas.
    run = cast("Any", udf)(_Attempt(function, result), attempt, useArrow=False)
    return batch.withColumn("attempt", run(struct(*batch.columns)))


class _Attempt:
    """Runs the function on one record. Pickled to the executors."""

    def __init__(self, function: RecordFunction, schema: StructType) -> None:
        self._function = function
        self._schema = schema
        self._verify: Callable[[object], object] | None = None

    def __call__(self, record: Any) -> tuple[str | None, Mapping[str, Any] | None]:
        try:
            result = self._function(record.asDict(recursive=True))
            self._verifier()(result)
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:ERROR_CHARS_MAX], None
        return None, result

    def _verifier(self) -> Callable[[object], object]:
        """Raises if the result doesn't fit the schema: Spark would make it null, or fail the task."""
        if self._verify is None:
            types = import_module("pyspark.sql.types")
            self._verify = cast("Callable[[object], object]", types._make_type_verifier(self._schema))
        return self._verify

    def __getstate__(self) -> dict[str, Any]:
        return {"_function": self._function, "_schema": self._schema, "_verify": None}


def _struct_of(schema: str) -> StructType:
    from pyspark.sql.types import StructType

    return StructType([*cast("StructType", StructType.fromDDL(schema)).fields])
