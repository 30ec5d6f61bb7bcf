"""A version of a Parquet table's log: the table's files, and the last batch of each query.

The format is that of Spark's streaming file sink, and each version holds the whole list: a line with the
format's version, then one JSON object for each file. All versions are named `N.compact`, which tells Spark
that none needs an earlier one. One more line has the fields that Spark's format lacks; it names a directory,
which readers ignore.

This module handles only text; `log_files` reads and writes the files. A table has at most `FILES_MAX` files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.batches import Batch

DIRECTORY: Final = "_spark_metadata"
SUFFIX: Final = ".compact"
FILES_MAX: Final = 100_000
"""Beyond it a commit is refused: each version lists all files, and readers hold the list in memory."""

_HEADING: Final = "v1"
_BLOCK_BYTES: Final = 128 * 1024 * 1024
_OURS: Final = "barnabas"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file. `uri` is absolute and percent-encoded."""

    uri: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A table as of one version; -1 is a table without any batch."""

    version: int = -1
    files: tuple[TableFile, ...] = ()
    batches: Mapping[str, Batch] = field(default_factory=dict[str, Batch])
    """By query, the last batch that is in the table."""
    partition_by: tuple[str, ...] = ()
    schema: str | None = None
    """Spark's JSON of all columns except the one with the batch of a row."""

    def with_batch(self, batch: Batch, files: Iterable[TableFile]) -> Snapshot:
        """The next version, with one more batch."""
        return replace(
            self,
            version=self.version + 1,
            files=(*self.files, *files),
            batches={**self.batches, batch.query: batch},
        )

    def with_files_replaced(self, old: Iterable[str], new: Iterable[TableFile]) -> Snapshot | None:
        """The next version, with other files of the same records; None if an old file is gone."""
        gone = set(old)
        kept = tuple(file for file in self.files if file.uri not in gone)
        if len(kept) + len(gone) != len(self.files):
            return None
        return replace(self, version=self.version + 1, files=(*kept, *new))


def encode(snapshot: Snapshot, root_uri: str) -> str:
    """The text of a version. Raises `PipelineError` if there are too many files."""
    if len(snapshot.files) > FILES_MAX:
        raise PipelineError(
            f"{root_uri}: {len(snapshot.files):,} files are more than the {FILES_MAX:,} that a table may "
            "have: compact it, or use fewer partitions."
        )
    ours = {
        "batches": list(snapshot.batches.values()),
        "partitionBy": snapshot.partition_by,
        "schema": snapshot.schema,
    }
    marker = {**_line(f"{root_uri}/{DIRECTORY}", 0, 0, is_directory=True), _OURS: ours}
    lines = [_line(file.uri, file.size_bytes, file.modified_ms) for file in snapshot.files]
    return "\n".join([_HEADING, *(json.dumps(line) for line in (marker, *lines))])


def decode(version: int, text: str, where: str) -> Snapshot:
    """A version from its text. Raises `PipelineError`, which names `where`, if ingest has not written it."""
    heading, *lines = text.splitlines()
    try:
        if heading != _HEADING:
            raise ValueError(heading)
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        (ours,) = (row[_OURS] for row in rows if _OURS in row)
        return Snapshot(
            version=version,
            files=tuple(_file(row) for row in rows if not row["isDir"]),
            batches={query: Batch(query, *noted) for query, *noted in ours["batches"]},
            partition_by=tuple(ours["partitionBy"]),
            schema=ours["schema"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{where} is no log of a table that ingest has written.") from error


def _line(uri: str, size_bytes: int, modified_ms: int, *, is_directory: bool = False) -> dict[str, Any]:
    return {
        "path": uri,
        "size": size_bytes,
        "isDir": is_directory,
        "modificationTime": modified_ms,
        "blockReplication": 1,
        "blockSize": _BLOCK_BYTES,
        "action": "add",
    }


def _file(row: dict[str, Any]) -> TableFile:
    return TableFile(row["path"], row["size"], row["modificationTime"])
