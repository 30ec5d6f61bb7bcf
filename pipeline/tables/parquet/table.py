"""A plain Parquet table to which batches are added, each exactly once.

    TABLE/_staging/QUERY-BATCH-.../       staged rows, hidden
    TABLE/batch=QUERY-BATCH/date=.../     a batch, moved here in one step
    TABLE/_spark_metadata/N.compact       the log: the files and the batches of the table

A crash before the move leaves hidden files, which the same query's next commit removes. A crash between the
move and the log leaves the whole batch in its place; the batch's next try finds it and adds it to the log.
Readers of the log see it then. Readers that list directories see it, whole and once, since the move.

Moving a directory must be one step. Object stores cannot do that and are refused: use Delta Lake or Iceberg
for them. The guarantees hold when processes die, not when a filesystem loses written data.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.tables.batches import Batch, has_batch
from barnabas.pipeline.tables.columns import (
    check_same_columns,
    check_same_partitions,
    with_nullable_columns,
)
from barnabas.pipeline.tables.hadoop_files import WITHOUT_ATOMIC_RENAME, HadoopFiles
from barnabas.pipeline.tables.lake_table import AddedFiles
from barnabas.pipeline.tables.parquet.log import Snapshot, TableFile
from barnabas.pipeline.tables.parquet.log_files import LogFiles
from barnabas.pipeline.tables.parquet.placing import no_step, placed_files
from barnabas.pipeline.tables.partitioning import with_partition_columns
from barnabas.pipeline.tables.staging import DIRECTORY as STAGING
from barnabas.pipeline.tables.staging import StagedFile, staged_files, total_bytes, write_staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.pipeline.tables.options import TableOptions

BATCH_COLUMN: Final = "batch"
"""The additional column of each row: the name of its batch, from the directory."""

_SHAPE_FILE: Final = "_shape"


class ParquetTable:
    """One table. Several queries may write to it at once, and one compaction beside them."""

    def __init__(
        self, spark: SparkSession, options: TableOptions, at_step: Callable[[str], None] = no_step
    ) -> None:
        """Calls `at_step` after each step. Raises `OptionError` for an unusable location."""
        self._files = HadoopFiles(spark, options.location)
        self._log = LogFiles(self._files)
        self._location = options.location
        self._partition_by = options.partition_columns
        self._at_step = at_step
        refuse_object_store(self._files)

    def stage(self, frame: DataFrame, batch: Batch) -> ParquetBatch | None:
        """See `LakeTable`."""
        snapshot = self._log.latest()
        if has_batch(self._location, snapshot.batches.get(batch.query), batch):
            return None
        frame = with_nullable_columns(with_partition_columns(frame, self._partition_by))
        wanted = self._shaped(snapshot, frame)
        staged = ParquetBatch(self._files, self._log, wanted, batch, self._at_step)
        if not staged.is_adopted:
            staged.write(frame)
        return staged

    def _shaped(self, snapshot: Snapshot, frame: DataFrame) -> Snapshot:
        """The table with these rows' columns. Raises `OptionError` or `PipelineError` if they don't fit."""
        from pyspark.sql.types import StructType

        if BATCH_COLUMN in (name.casefold() for name in frame.columns):
            raise OptionError(
                "flatten", f"the rows have a column {BATCH_COLUMN!r}, which the table has itself"
            )
        wanted = replace(
            snapshot,
            partition_by=tuple(column.name for column in self._partition_by),
            schema=frame.schema.json(),
        )
        if snapshot.schema is None:
            self._refuse_foreign_files()
            return wanted
        check_same_partitions(self._location, snapshot.partition_by, self._partition_by)
        existing = StructType.fromJson(json.loads(snapshot.schema))
        is_wider = check_same_columns(self._location, existing, frame.schema)
        return wanted if is_wider else replace(wanted, schema=snapshot.schema)

    def _refuse_foreign_files(self) -> None:
        for entry in self._files.entries(""):
            if not entry.name.startswith(("_", ".", f"{BATCH_COLUMN}=")):
                raise PipelineError(
                    f"{entry.uri} was not written by ingest: name an empty place for the table."
                )


class ParquetBatch:
    """A batch of one query on its way into a table."""

    def __init__(
        self,
        files: HadoopFiles,
        log: LogFiles,
        wanted: Snapshot,
        batch: Batch,
        at_step: Callable[[str], None],
    ) -> None:
        """`wanted` has the columns and partitions that the table is to have."""
        self._files = files
        self._log = log
        self._wanted = wanted
        self._batch = batch
        self._at_step = at_step
        self._staging = f"{STAGING}/{batch.name}-{uuid.uuid4().hex}"
        self._place = f"{BATCH_COLUMN}={batch.name}"
        self.is_adopted: Final[bool] = self._find_placed()

    def write(self, frame: DataFrame) -> None:
        """Writes the rows to the staging directory."""
        write_staged(frame, self._files, self._staging, self._wanted.partition_by)
        self._files.write_text(f"{self._staging}/{_SHAPE_FILE}", self._shape())
        self._at_step("staged")

    def commit(self) -> AddedFiles:
        """Moves the rows into their place, if there are any, and adds them to the log."""
        where = self._place if self.is_adopted else self._staging
        found = staged_files(self._files, where)
        if found and not self.is_adopted:
            self._files.rename(self._staging, self._place)  # False: another try of this batch was faster
            self._at_step("placed")
            found = staged_files(self._files, self._place)
        if found:
            self._add_to_log(found)
            self._at_step("committed")
        self._remove_leftovers()
        self._at_step("cleaned")
        return AddedFiles(len(found), total_bytes(found))

    def discard(self) -> None:
        """Removes the written files, which hold no rows."""
        self._remove_leftovers()

    def _add_to_log(self, found: list[StagedFile]) -> None:
        self._log.change(
            partial(self._with_batch, placed_files(self._files, self._place, found)),
            "this batch can be added",
        )

    def _with_batch(self, added: list[TableFile], latest: Snapshot) -> Snapshot | None:
        """The version with this batch; None if the table has it."""
        if has_batch(self._files.root_uri, latest.batches.get(self._batch.query), self._batch):
            return None
        shaped = replace(latest, partition_by=self._wanted.partition_by, schema=self._wanted.schema)
        return shaped.with_batch(self._batch, added)

    def _find_placed(self) -> bool:
        """Whether an earlier try put the batch in place. Moves one with other columns or records away."""
        if not self._files.exists(self._place):
            return False
        if self._files.read_text(f"{self._place}/{_SHAPE_FILE}") == self._shape():
            return True
        self._files.rename(self._place, self._staging + "-old")
        return False

    def _shape(self) -> str:
        return json.dumps([self._wanted.partition_by, self._wanted.schema, self._batch.fingerprint])

    def _remove_leftovers(self) -> None:
        """Removes tries of this batch and earlier ones; a later batch may be under way elsewhere."""
        own = f"{self._batch.name}~"
        for entry in self._files.entries(STAGING):
            if entry.name.startswith(f"{self._batch.query}-") and entry.name < own:
                self._files.delete(f"{STAGING}/{entry.name}")


def refuse_object_store(files: HadoopFiles) -> None:
    """Raises `OptionError` for a filesystem where moving a directory takes many steps."""
    if files.scheme in WITHOUT_ATOMIC_RENAME:
        raise OptionError(
            "location",
            f"{files.scheme} cannot move a directory in one step, which plain Parquet tables need: "
            "choose the format delta or iceberg",
        )


def committed_files(spark: SparkSession, location: str) -> list[str]:
    """The URIs of the table's files, all of one version; none for an empty table.

    For readers that don't use the log, such as PyArrow or DuckDB.
    """
    return [file.uri for file in LogFiles(HadoopFiles(spark, location)).latest().files]
