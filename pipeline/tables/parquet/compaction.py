"""Merges the small files of a plain Parquet table. Readers of the log see each record once at any time.

The steps; a crash may come after any of them:

    claimed     the files to be replaced are written down
    staged      the merged files are written, hidden
    placed      they are moved to their place, but are not in the log
    committed   one version of the log replaces the small files by the merged ones
    removed     the small files are removed
    released    the claim is given up

The next run undoes the work of a run that got no further than `placed`, and finishes the work of one that got
further. A run that another one has taken over stops. If it was alive, it may leave a directory that no claim
names; the next run removes such directories, too.

A reader that lists directories instead of reading the log sees records twice between `placed` and `removed`.
A query that looked up the files before `committed` and opens one after `removed` fails; run it again.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.lake_table import Compacted, no_table
from barnabas.pipeline.tables.merging import Merge, plan_merges
from barnabas.pipeline.tables.parquet.claims import Claim, Claims, HeldClaim
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
_STAGED: Final = re.compile(rf"{_NAME}[0-9a-f]{{32}}")
"""The names of a compaction's staging directories; those of batches end in 12 digits."""
_PLACE: Final = re.compile(rf"{BATCH_COLUMN}={_STAGED.pattern}")


def compact_parquet(
    spark: SparkSession, options: CompactOptions, at_step: Callable[[str], None] = no_step
) -> Compacted:
    """Merges small files. Calls `at_step` after each step. Raises `PipelineError`."""
    files = HadoopFiles(spark, options.table.location)
    refuse_object_store(files)
    log = LogFiles(files)
    found = log.latest()
    if found.version < 0:
        raise no_table(options.table.location)
    compaction = _Compaction(spark, files, log, at_step)
    if not options.dry_run:
        compaction.settle_earlier(found)
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

    def settle_earlier(self, found: Snapshot) -> None:
        """Finishes or undoes the work of earlier runs that were cut short, or were taken over."""
        earlier = self._claims.current()
        if earlier is not None:
            held = self._claims.take_over(earlier, self._owner)
        elif self._strays(found):
            held = self._claims.claim(self._claim(()))
        else:
            return
        self._fence()
        latest = self._log.latest()
        if held.claim.place in self._directories(latest):
            self._remove(held.claim.replaced, latest)
        for path in self._strays(latest):  # with those of this claim
            self._files.delete(path)
        self._claims.release(held)

    def run(self, snapshot: Snapshot, merges: list[Merge[TableFile]]) -> int:
        """Runs all steps; returns the number of merged files."""
        replaced = tuple(file.uri for merge in merges for file in merge.files)
        held = self._claims.claim(self._claim(replaced))
        self._at_step("claimed")
        try:
            for merge in merges:
                self._write(snapshot, merge, held.claim)
            self._at_step("staged")
            self._files.rename(held.claim.staging, held.claim.place)
            self._at_step("placed")
            added = self._commit(held)
        except Exception:
            self._claims.require(held)  # a compaction that took over removes files: report that instead
            raise
        self._at_step("committed")
        self._claims.require(held)  # a compaction that took over removes these files itself
        self._remove(replaced, self._log.latest())
        self._at_step("removed")
        self._claims.release(held)
        self._at_step("released")
        return len(added)

    def _claim(self, replaced: tuple[str, ...]) -> Claim:
        name = f"{_NAME}{self._owner}"
        return Claim(self._owner, f"{BATCH_COLUMN}={name}", f"{STAGING}/{name}", replaced)

    def _strays(self, snapshot: Snapshot) -> list[str]:
        """Directories of compactions without a file of this version.

        They are of use only to the compaction that holds the claim.
        """
        in_use = self._directories(snapshot)
        placed = self._files.entries("", f"{BATCH_COLUMN}={_NAME}*")  # among those of all batches
        places = [entry.name for entry in placed if _PLACE.fullmatch(entry.name)]
        staged = [entry.name for entry in self._files.entries(STAGING) if _STAGED.fullmatch(entry.name)]
        return [*(name for name in places if name not in in_use), *(f"{STAGING}/{name}" for name in staged)]

    def _directories(self, snapshot: Snapshot) -> set[str]:
        """The directories with the files of this version, percent-encoded."""
        begin = f"{self._files.root_uri}/"
        return {file.uri.removeprefix(begin).partition("/")[0] for file in snapshot.files}

    def _write(self, snapshot: Snapshot, merge: Merge[TableFile], claim: Claim) -> None:
        use_plain_timestamps(self._spark)
        paths = [self._files.location_of(file.uri) for file in merge.files]
        # By a recursive look-up: otherwise Spark would make columns of the directories' names.
        reader = self._spark.read.schema(_file_schema(snapshot)).option("recursiveFileLookup", "true")
        partition = partition_of(merge.files[0].uri, self._files.root_uri)
        target = self._files.location_of(f"{self._files.uri(claim.staging)}/{partition}".rstrip("/"))
        reader.parquet(*paths).coalesce(merge.output_count).write.mode("append").parquet(target)

    def _commit(self, held: HeldClaim) -> list[TableFile]:
        place = held.claim.place
        added = placed_files(self._files, place, staged_files(self._files, place))
        self._log.change(partial(self._replaced, held, added), "this compaction")
        return added

    def _replaced(self, held: HeldClaim, added: list[TableFile], latest: Snapshot) -> Snapshot:
        # After `latest` was read: a compaction that takes over adds a version, so adding this one fails.
        self._claims.require(held)
        wanted = latest.with_files_replaced(held.claim.replaced, added)
        if wanted is None:
            raise PipelineError(f"{self._files.root_uri}: files to be merged are gone from the table.")
        return wanted

    def _fence(self) -> None:
        """Adds a version without changes, so that no earlier run can add the version that it has prepared."""
        self._log.change(_next_version, "this compaction")

    def _remove(self, replaced: tuple[str, ...], latest: Snapshot) -> None:
        """Removes files that no new version names; directories without other files are removed whole."""
        begin = f"{self._files.root_uri}/"
        live = {file.uri for file in latest.files}
        gone = {uri.removeprefix(begin) for uri in replaced if uri not in live}
        kept = self._directories(latest)
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
