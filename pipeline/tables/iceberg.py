"""An Iceberg table to which batches are added, each exactly once (extra `[iceberg]`).

Spark writes the data files. PyIceberg adds them on the driver. The same commit sets two properties of the
table for the query: the batch's number and its fingerprint. Such properties stay when snapshots expire. The
commit succeeds only if no other writer has changed the table since the properties were read. Each release of
Iceberg's own Spark runtime needs one Spark version; this works with all of them.

The option `storage` has the properties of the catalog, under PyIceberg's names: `type`, `uri`, `warehouse`,
... Partitions are by identity: compute a column for any other transform.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.pipeline.columnar import ArrowSchema
from barnabas.pipeline.errors import OptionError, PipelineError, install_hint
from barnabas.pipeline.tables.arrow_types import from_arrow, to_arrow
from barnabas.pipeline.tables.batches import Batch, has_batch
from barnabas.pipeline.tables.columns import (
    all_nullable,
    check_same_columns,
    check_same_partitions,
    with_nullable_columns,
)
from barnabas.pipeline.tables.hadoop_files import HadoopFiles, with_scheme
from barnabas.pipeline.tables.logged_batch import LoggedBatch
from barnabas.pipeline.tables.partitioning import with_partition_columns
from barnabas.pipeline.tables.staging import StagedFile, write_staged

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from barnabas.pipeline.tables.options import TableOptions

BATCH_PROPERTY: Final = "barnabas.batch."
FINGERPRINT_PROPERTY: Final = "barnabas.fingerprint."

_HADOOP_SCHEMES: Final = {"s3": "s3a"}
"""Hadoop's scheme for an object store, by Iceberg's."""

_COPY: Final = "__partition_"
"""Iceberg needs partition columns in the files, but Spark leaves them out: copies name the directories."""


class IcebergTable:
    """One table. Several writers of any kind may write to it at once."""

    def __init__(self, spark: SparkSession, options: TableOptions) -> None:
        """Raises `OptionError` for an unusable catalog or name, `PipelineError` without the package."""
        self._spark = spark
        self._options = options
        self._catalog = _catalog(options)
        if "." not in options.location:
            raise OptionError(
                "location", f"{options.location} is no table of a namespace, such as sales.orders"
            )

    def stage(self, frame: DataFrame, batch: Batch) -> IcebergBatch | None:
        """See `LakeTable`."""
        columns = self._options.partition_columns
        frame = with_nullable_columns(with_partition_columns(frame, columns))
        table = self.open_or_create(frame.schema)
        if has_batch(self._options.location, last_batch(table, batch.query), batch):
            return None
        self._check(table, frame.schema)
        files = hadoop_files_of(self._spark, table)
        directory = f"data/{batch.name}-{uuid.uuid4().hex}"
        names = self._options.partition_names
        copied = frame.withColumns({f"{_COPY}{name}": frame[name] for name in names})
        write_staged(copied, files, directory, [f"{_COPY}{name}" for name in names])
        return IcebergBatch(self, files, directory, batch)

    def open(self) -> Table:
        """The table as it is now, with one attempt for each commit."""
        table: Table = self._catalog.load_table(self._options.location)
        # PyIceberg would repeat a commit that lost against another one, and ignore that one's changes.
        table.metadata.properties["commit.retry.num-retries"] = "0"
        return table

    def open_or_create(self, schema: StructType) -> Table:
        """The table as it is now, made with these columns if there is none."""
        from pyiceberg.exceptions import TableAlreadyExistsError

        location = self._options.location
        if not self._catalog.table_exists(location):
            self._catalog.create_namespace_if_not_exists(location.rpartition(".")[0])
            try:
                creation = self._catalog.create_table_transaction(location, to_arrow(all_nullable(schema)))
                with creation, creation.update_spec() as spec:
                    for name in self._options.partition_names:
                        spec.add_identity(name)
            except TableAlreadyExistsError:
                pass  # another writer has just made it
        return self.open()

    def _check(self, table: Table, given: StructType) -> None:
        location, columns = self._options.location, self._options.partition_columns
        spec = table.spec()
        check_same_partitions(location, [field.name for field in spec.fields], columns)
        existing = from_arrow(plain_schema(table))
        if check_same_columns(location, existing, given):
            with table.update_schema() as update:
                cast("Any", update).union_by_name(to_arrow(all_nullable(given)))


class IcebergBatch(LoggedBatch["Table", str]):
    """A batch of one query on its way into a table."""

    def __init__(self, table: IcebergTable, files: HadoopFiles, directory: str, batch: Batch) -> None:
        super().__init__(files, directory, batch)
        self._table = table

    def additions(self, found: list[StagedFile]) -> list[str]:
        """See `LoggedBatch`: paths below the table's location."""
        return [f"{self.directory}/{file.path}" for file in found]

    def open_table(self) -> Table:
        """See `LoggedBatch`; `stage` has made it."""
        return self._table.open()

    def last_batch(self, table: Table) -> Batch | None:
        """See `LoggedBatch`."""
        return last_batch(table, self.batch.query)

    def try_to_add(self, table: Table, additions: list[str]) -> bool:
        """See `LoggedBatch`."""
        from pyiceberg.exceptions import CommitFailedException

        query, batch_id, fingerprint = self.batch
        noted = {
            f"{BATCH_PROPERTY}{query}": str(batch_id),
            f"{FINGERPRINT_PROPERTY}{query}": str(fingerprint),
        }
        try:
            with table.transaction() as transaction:
                transaction.set_properties(noted)
                transaction.add_files(
                    [f"{table.location()}/{path}" for path in additions],
                    snapshot_properties={"barnabas.query": query, "barnabas.batch": str(batch_id)},
                    check_duplicate_files=False,
                )
        except CommitFailedException:
            return False
        return True


def last_batch(table: Table, query: str) -> Batch | None:
    """The last batch of a query in the table."""
    batch_id = table.properties.get(f"{BATCH_PROPERTY}{query}")
    if batch_id is None:
        return None
    return Batch(query, int(batch_id), int(table.properties[f"{FINGERPRINT_PROPERTY}{query}"]))


def hadoop_files_of(spark: SparkSession, table: Table) -> HadoopFiles:
    """A table's files, for Spark."""
    return HadoopFiles(spark, with_scheme(table.location(), _HADOOP_SCHEMES))


def plain_schema(table: Table) -> ArrowSchema:
    """A table's columns, without large types and field numbers, which Spark's types don't have."""
    from barnabas.pipeline.decoding.arrow import pa

    fields = [(field.name, _plain_type(field.type)) for field in cast("Any", table.schema()).as_arrow()]
    schema: ArrowSchema = pa.schema(fields)
    return schema


def _plain_type(kind: Any) -> Any:
    from barnabas.pipeline.decoding.arrow import pa

    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain_type(field.type)) for field in kind])
    return kind


def _catalog(options: TableOptions) -> Any:
    try:
        from pyiceberg.catalog import load_catalog
    except ModuleNotFoundError as error:
        raise PipelineError(f"Iceberg needs its package: {install_hint('iceberg')}") from error
    try:
        properties = dict(options.storage)
        return load_catalog(properties.pop("name", None), **properties)
    except Exception as error:  # each kind of catalog has errors of its own
        raise OptionError("storage", f"there is no such Iceberg catalog: {error}") from error
