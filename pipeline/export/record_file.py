"""The Parquet file of one slice: its records with all columns, and a footer that describes them.

A file is written row group by row group, so the memory for a slice of any length is `ROW_GROUP_BYTES` and one
batch. The footer has offsets, count and digest, so a reader knows the contents without the manifest and
the records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.directory import ExportDirectory
from barnabas.pipeline.export.manifest import ExportedSlice
from barnabas.pipeline.export.record_digest import RecordDigest

pq: Final[Any] = import_module("pyarrow.parquet")

ROW_GROUP_BYTES: Final = 32 * 1024 * 1024
"""Records are collected up to this size, as Arrow columns, before they are written."""
READ_ROWS: Final = 8_192
"""Records in one batch when a file is read."""

SCHEMA: Final[Any] = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))),
    ]
)
"""The columns of `schema.RECORD_COLUMNS`, in that order."""

_FOOTER: Final = b"barnabas.slice"


def write_slice(
    directory: ExportDirectory, piece: ExportedSlice, batches: Iterable[RecordBatch]
) -> ExportedSlice:
    """Writes `batches`, which have the columns of `SCHEMA`; returns the slice with its counts and digest."""
    digest = RecordDigest()
    with (
        directory.files.replacing(piece.path) as file,
        pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer,
    ):
        for group in _row_groups(batches):
            for batch in group:
                digest.add(batch)
            writer.write_table(pa.Table.from_batches(group, SCHEMA))
        done = replace(piece, record_count=digest.record_count, sha256=digest.hexdigest())
        writer.add_key_value_metadata({_FOOTER: _footer(done)})
    return replace(done, size_bytes=directory.size_bytes(piece.path) or 0)


def find_slice(directory: ExportDirectory, piece: ExportedSlice) -> ExportedSlice | None:
    """The slice that an earlier run wrote; None if there is none."""
    size_bytes = directory.size_bytes(piece.path)
    if size_bytes is None:
        return None
    with _open(directory, piece) as file:
        metadata: dict[bytes, bytes] = file.metadata.metadata or {}
    footer: dict[str, Any] = json.loads(metadata.get(_FOOTER, b"{}"))
    if footer.get("start_offset") != piece.start_offset or footer.get("end_offset") != piece.end_offset:
        raise PipelineError(f"{directory.path(piece.path)} does not hold the offsets in its name.")
    return replace(piece, record_count=footer["record_count"], sha256=footer["sha256"], size_bytes=size_bytes)


def read_slice(
    directory: ExportDirectory, piece: ExportedSlice, columns: Sequence[str] | None = None
) -> Iterator[RecordBatch]:
    """The records of a slice in batches of at most `READ_ROWS`; all columns if None."""
    with _open(directory, piece) as file:
        yield from file.iter_batches(READ_ROWS, columns=None if columns is None else list(columns))


def _open(directory: ExportDirectory, piece: ExportedSlice) -> Any:
    path = directory.path(piece.path)
    try:
        return pq.ParquetFile(path, filesystem=directory.files.system, pre_buffer=False)
    except pa.ArrowInvalid as error:
        raise PipelineError(f"{path} is damaged: {error}") from error


def _row_groups(batches: Iterable[RecordBatch]) -> Iterator[list[RecordBatch]]:
    group: list[RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        group.append(batch.select(SCHEMA.names))
        size_bytes += batch.nbytes
        if size_bytes >= ROW_GROUP_BYTES:
            yield group
            group, size_bytes = [], 0
    if group:
        yield group


def _footer(piece: ExportedSlice) -> bytes:
    content = {
        "start_offset": piece.start_offset,
        "end_offset": piece.end_offset,
        "record_count": piece.record_count,
        "sha256": piece.sha256,
    }
    return json.dumps(content).encode()
