"""A Delta Lake table to which batches are added, each exactly once (extra `[delta]`).

Spark writes the data files. The `deltalake` package adds them to the table's log on the driver. The same
commit sets two application transactions of the query: the batch's number and its fingerprint. Each release of
Delta's own Spark package needs one Spark version; this works with all of them.

Files of a batch that was cut short are in no version of the table; Delta's vacuum removes them.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.columnar import ArrowSchema
from barnabas.pipeline.errors import PipelineError, install_hint
from barnabas.pipeline.tables.arrow_types import from_arrow, to_arrow
from barnabas.pipeline.tables.batches import UNKNOWN, Batch, has_batch
from barnabas.pipeline.tables.columns import (
    all_nullable,
    check_same_columns,
    check_same_partitions,
    with_nullable_columns,
)
from barnabas.pipeline.tables.hadoop_files import HadoopFiles, with_scheme
from barnabas.pipeline.tables.lake_table import Compacted, no_table
from barnabas.pipeline.tables.logged_batch import LoggedBatch
from barnabas.pipeline.tables.partitioning import with_partition_columns
from barnabas.pipeline.tables.staging import StagedFile, record_counts, write_staged

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from barnabas.pipeline.tables.options import CompactOptions, TableOptions

_HADOOP_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}
"""Delta's scheme for an object store, by Hadoop's."""

_FINGERPRINT: Final = ".fingerprint"
"""The application with this suffix behind the query's name has the last batch's fingerprint."""


class DeltaLakeTable:
    """One table. Several writers of any kind may write to it at once."""

    def __init__(self, spark: SparkSession, options: TableOptions) -> None:
        """Raises `PipelineError` without the package."""
        self._deltalake: Any = _package()
        self._spark = spark
        self._files = HadoopFiles(spark, options.location)
        self.options = options

    def stage(self, frame: DataFrame, batch: Batch) -> DeltaBatch | None:
        """See `LakeTable`."""
        table = self.open()
        if table is not None and has_batch(self.options.location, last_batch(table, batch.query), batch):
            return None
        columns = self.options.partition_columns
        frame = with_nullable_columns(with_partition_columns(frame, columns))
        if table is not None:
            self._check(table, frame.schema)
        directory = f"{batch.name}-{uuid.uuid4().hex}"
        write_staged(frame, self._files, directory, self.options.partition_names)
        return DeltaBatch(self, self._files, frame.schema, directory, batch)

    def open(self) -> DeltaTable | None:
        """The table as it is now; None if there is none."""
        uri, storage = self._uri(), dict(self.options.storage)
        if not self._deltalake.DeltaTable.is_deltatable(uri, storage):
            return None
        table: DeltaTable = self._deltalake.DeltaTable(uri, storage_options=storage)
        return table

    def open_or_create(self, schema: StructType) -> DeltaTable:
        """The table as it is now, made with these columns if there is none."""
        table = self.open()
        if table is not None:
            return table
        made: DeltaTable = self._deltalake.DeltaTable.create(
            self._uri(),
            to_arrow(all_nullable(schema)),
            mode="ignore",
            partition_by=self.options.partition_names,
            storage_options=dict(self.options.storage),
        )
        return made

    def counted(self, directory: str, found: list[StagedFile]) -> dict[str, int]:
        """How many records each file has, by path."""
        return record_counts(self._spark, self._files, directory, found)

    def _check(self, table: DeltaTable, given: StructType) -> None:
        check_same_partitions(
            self.options.location, table.metadata().partition_columns, self.options.partition_columns
        )
        existing = from_arrow(arrow_schema(table))
        if check_same_columns(self.options.location, existing, given):
            names = {field.name for field in existing.fields}
            wider: Any = self._deltalake.Schema.from_arrow(to_arrow(all_nullable(given)))
            table.alter.add_columns([field for field in wider.fields if field.name not in names])

    def _uri(self) -> str:
        return with_scheme(self._files.root_uri, _HADOOP_SCHEMES)


class DeltaBatch(LoggedBatch["DeltaTable", Any]):
    """A batch of one query on its way into a table."""

    def __init__(
        self,
        table: DeltaLakeTable,
        files: HadoopFiles,
        schema: StructType,
        directory: str,
        batch: Batch,
    ) -> None:
        super().__init__(files, directory, batch)
        self._table = table
        self._schema = schema

    def additions(self, found: list[StagedFile]) -> list[Any]:
        """See `LoggedBatch`."""
        counts = self._table.counted(self.directory, found)
        return [_added(f"{self.directory}/{file.path}", file, counts[file.path]) for file in found]

    def open_table(self) -> DeltaTable:
        """See `LoggedBatch`."""
        return self._table.open_or_create(self._schema)

    def last_batch(self, table: DeltaTable) -> Batch | None:
        """See `LoggedBatch`."""
        return last_batch(table, self.batch.query)

    def try_to_add(self, table: DeltaTable, additions: list[Any]) -> bool:
        """See `LoggedBatch`."""
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import CommitProperties, Transaction

        query, batch_id, fingerprint = self.batch
        properties = CommitProperties(
            app_transactions=[
                Transaction(query, batch_id),
                Transaction(f"{query}{_FINGERPRINT}", fingerprint),
            ],
            custom_metadata={"barnabas.batch": f"{query}-{batch_id}"},
        )
        names = self._table.options.partition_names
        try:
            table.create_write_transaction(
                additions, "append", table.schema(), names, commit_properties=properties
            )
        except CommitFailedError:
            return False
        return True


def compact_delta(spark: SparkSession, options: CompactOptions) -> Compacted:
    """Merges small files with Delta's own package, on the driver. Delta's vacuum removes replaced files."""
    table = DeltaLakeTable(spark, options.table).open()
    if table is None:
        raise no_table(options.table.location)
    if options.dry_run:
        actions: Any = table.get_add_actions(flatten=True)
        sizes = [
            size for size in actions.column("size_bytes").to_pylist() if size * 2 <= options.target_bytes
        ]
        return Compacted(len(sizes), 0, sum(sizes))
    metrics = table.optimize.compact(target_size=options.target_bytes)
    removed: dict[str, Any] = json.loads(metrics["filesRemoved"])
    return Compacted(metrics["numFilesRemoved"], metrics["numFilesAdded"], int(removed.get("totalSize") or 0))


def last_batch(table: DeltaTable, query: str) -> Batch | None:
    """The last batch of a query in the table."""
    batch_id = table.transaction_version(query)
    if batch_id is None:
        return None
    return Batch(query, batch_id, table.transaction_version(f"{query}{_FINGERPRINT}") or UNKNOWN)


def _added(path: str, file: StagedFile, record_count: int) -> Any:
    from deltalake.transaction import AddAction

    return AddAction(
        path=path,
        size=file.size_bytes,
        partition_values=file.partition_values,
        modification_time=file.modified_ms,
        data_change=True,
        stats=json.dumps({"numRecords": record_count}),
    )


def arrow_schema(table: DeltaTable) -> ArrowSchema:
    """The table's columns as PyArrow's schema, through Arrow's own interface for exchange."""
    from barnabas.pipeline.decoding.arrow import pa

    schema: ArrowSchema = pa.schema(table.schema().to_arrow())
    return schema


def _package() -> Any:
    try:
        import deltalake
    except ModuleNotFoundError as error:
        raise PipelineError(f"Delta Lake needs its package: {install_hint('delta')}") from error
    return deltalake
