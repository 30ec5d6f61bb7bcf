"""Merges the small files of a plain Parquet table. Readers of the log see each record once at any time.

The steps; a crash may come after any of them:

    claimed     the files to be replaced are written down
    staged      the merged files are written, hidden
    placed      they are moved to their place, but are not in the log
    committed   one version of the log replaces the small files by the merged ones
    removed     the small files are removed
    released    the claim is removed

The next run undoes the work of a run that got no further than `placed`, and finishes the work of one that got
further. A reader that lists directories instead of reading the log sees records twice between `placed` and
`removed`. A query that looked up the files before `committed` and opens one after `removed` fails; run it
again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.lake_table import Compacted, no_table
from barnabas.pipeline.tables.merging import Merge, plan_merges
from barnabas.pipeline.tables.parquet.claims import Claim, Claims
from barnabas.pipeline.tables.parquet.log import Snapshot, TableFile
from barnabas.pipeline.tables.parquet.log_files import LogFiles
from barnabas.pipeline.tables.parquet.placing import no_step, placed_files
from barnabas.pipeline.tables.parquet.table import BATCH_COLUMN, refuse_object_store
from barnabas.pipeline.tables.staging import DIRECTORY as STAGING
from barnabas.pipeline.tables.staging import staged_files, use_plain_timestamps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from barnabas.pipeline.tables.options import CompactOptions

_NAME: Final = "compacted-"


def compact_parquet(
    spark: SparkSession, options: CompactOptions, at_step: Callable[[str], None] = no_step
) -> Compacted:
    """Merges small files. Calls `at_step` after each step. Raises `PipelineError`."""
    files = HadoopFiles(spark, options.table.location)
    refuse_object_store(files)
    log = LogFiles(files)
    if log.latest().version < 0:
        raise no_table(options.table.location)
    compaction = _Compaction(spark, files, log, at_step)
    if not options.dry_run:
        compaction.settle_earlier()
    snapshot = log.latest()
    merges = plan_merges(
        ((partition_of(file.uri, files.root_uri), file.size_bytes, file) for file in snapshot.files),
        options.target_bytes,
    )
    planned = [file for merge in merges for file in merge.files]
    result = Compacted(
        len(planned), sum(merge.output_count for merge in merges), sum(file.size_bytes for file in planned)
    )
    if merges and not options.dry_run:
        return replace(result, added_count=compaction.run(snapshot, merges))
    return result


class _Compaction:
    """One run on one table."""

    def __init__(
        self, spark: SparkSession, files: HadoopFiles, log: LogFiles, at_step: Callable[[str], None]
    ) -> None:
        self._spark = spark
        self._files = files
        self._log = log
        self._claims = Claims(files)
        self._at_step = at_step
        self._owner = uuid.uuid4().hex

    def settle_earlier(self) -> None:
        """Finishes or undoes the work of an earlier run that was cut short."""
        earlier = self._claims.current()
        if earlier is None:
            return
        self._claims.take_over(earlier, self._owner)
        self._fence()
        live = {file.uri for file in self._log.latest().files}
        place = f"{self._files.uri(earlier.place)}/"
        if any(uri.startswith(place) for uri in live):
            self._remove(earlier.replaced, live)
        else:
            self._files.delete(earlier.place)
        self._files.delete(earlier.staging)
        self._claims.release()

    def run(self, snapshot: Snapshot, merges: list[Merge[TableFile]]) -> int:
        """Runs all steps; returns the number of merged files."""
        name = f"{_NAME}{self._owner}"
        replaced = tuple(file.uri for merge in merges for file in merge.files)
        claim = Claim(self._owner, f"{BATCH_COLUMN}={name}", f"{STAGING}/{name}", replaced)
        self._claims.claim(claim)
        self._at_step("claimed")
        try:
            for merge in merges:
                self._write(snapshot, merge, claim)
            self._at_step("staged")
            self._files.rename(claim.staging, claim.place)
            self._at_step("placed")
            added = self._commit(claim)
        except Exception:
            self._claims.require(claim)  # a compaction that took over removes files: report that instead
            raise
        self._at_step("committed")
        self._remove(replaced, {file.uri for file in self._log.latest().files})
        self._at_step("removed")
        self._claims.release()
        self._at_step("released")
        return len(added)

    def _write(self, snapshot: Snapshot, merge: Merge[TableFile], claim: Claim) -> None:
        use_plain_timestamps(self._spark)
        paths = [self._files.location_of(file.uri) for file in merge.files]
        # By a recursive look-up: otherwise Spark would make columns of the directories' names.
        reader = self._spark.read.schema(_file_schema(snapshot)).option("recursiveFileLookup", "true")
        partition = partition_of(merge.files[0].uri, self._files.root_uri)
        target = self._files.location_of(f"{self._files.uri(claim.staging)}/{partition}".rstrip("/"))
        reader.parquet(*paths).coalesce(merge.output_count).write.mode("append").parquet(target)

    def _commit(self, claim: Claim) -> list[TableFile]:
        added = placed_files(self._files, claim.place, staged_files(self._files, claim.place))
        self._log.change(partial(self._replaced, claim, added), "this compaction")
        return added

    def _replaced(self, claim: Claim, added: list[TableFile], latest: Snapshot) -> Snapshot:
        # After `latest` was read: a compaction that takes over adds a version, so adding this one fails.
        self._claims.require(claim)
        wanted = latest.with_files_replaced(claim.replaced, added)
        if wanted is None:
            raise PipelineError(f"{self._files.root_uri}: files to be merged are gone from the table.")
        return wanted

    def _fence(self) -> None:
        """Adds a version without changes, so that no earlier run can add the version that it has prepared."""
        self._log.change(_next_version, "this compaction")

    def _remove(self, replaced: tuple[str, ...], live: set[str]) -> None:
        """Removes files that no new version names; directories without other files are removed whole."""
        begin = f"{self._files.root_uri}/"
        gone = {uri.removeprefix(begin) for uri in replaced if uri not in live}
        kept = {uri.removeprefix(begin).partition("/")[0] for uri in live}
        for directory in sorted({path.partition("/")[0] for path in gone} - kept):
            self._files.delete_uri(f"{begin}{directory}")
        for path in sorted(path for path in gone if path.partition("/")[0] in kept):
            self._files.delete_uri(f"{begin}{path}")


def _next_version(latest: Snapshot) -> Snapshot:
    return replace(latest, version=latest.version + 1)


def partition_of(uri: str, root_uri: str) -> str:
    """The directories between the batch's directory and the file, percent-encoded; '' without partitions."""
    return "/".join(uri.removeprefix(f"{root_uri}/").split("/")[1:-1])


def _file_schema(snapshot: Snapshot) -> StructType:
    """The columns that are in the files."""
    from pyspark.sql.types import StructType

    assert snapshot.schema is not None, "a table that was written to"
    schema = StructType.fromJson(json.loads(snapshot.schema))
    return StructType([field for field in schema.fields if field.name not in snapshot.partition_by])
