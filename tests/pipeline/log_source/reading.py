"""Reading a data directory as a query would, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barnabas.pipeline.filters import Kept, take_filters
from barnabas.pipeline.log_source.log_options import parse_log_options
from barnabas.pipeline.log_source.planning import plan
from barnabas.pipeline.log_source.slice_reader import LogTask, read_log_slice

READ_BYTES = 4096


def plan_read(path: Path, filters: Iterable[Any] = (), **options: str | int) -> list[LogTask]:
    """The tasks of a read with these options and filters."""
    given = {"path": str(path), **{name: str(value) for name, value in options.items()}}
    kept, _ = take_filters(Kept(), filters)
    return plan(parse_log_options(given), kept)


def rows_of(tasks: Iterable[LogTask], *, read_bytes: int = READ_BYTES) -> list[dict[str, Any]]:
    """The rows that the tasks read, one after the other, in small pieces."""
    return [
        row
        for task in tasks
        for batch in read_log_slice(task, read_bytes=read_bytes)
        for row in batch.to_pylist()
    ]


def read_rows(path: Path, **options: str | int) -> list[dict[str, Any]]:
    """The rows that a read with these options gives."""
    return rows_of(plan_read(path, (), **options))


def read_offsets(path: Path, **options: str | int) -> list[int]:
    """Their offsets."""
    return offsets_of(plan_read(path, (), columns="offset", **options))


def offsets_of(tasks: Iterable[LogTask]) -> list[int]:
    """The offsets that tasks with the column read."""
    return [row["offset"] for row in rows_of(tasks)]
