"""Replays: plans the chunks, and writes each of them once."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from barnabas.pipeline.replay.options import ReplayOptions
from barnabas.pipeline.replay.origins import Origin, open_origin
from barnabas.pipeline.replay.plan import Plan, make_chunks
from barnabas.pipeline.replay.progress import ProgressFiles
from barnabas.pipeline.replay.records import select_rows, select_sink_columns
from barnabas.pipeline.replay.throttle import Throttle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result. `row_count` counts all rows of the plan, also offsets without a record."""

    row_count: int
    record_count: int
    """Records written by all runs, or to be written. Leaves out a chunk that a run wrote and did not note."""
    chunk_count: int
    resumed_at: int = 0
    """The chunk that this run began with."""
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """The progress of the replay, after a chunk."""

    rows_done: int
    row_count: int


def replay(
    spark: SparkSession,
    options: ReplayOptions,
    *,
    at_step: Callable[[ReplayStep], None] = lambda _step: None,
) -> Replayed:
    """Writes records of a table or of topics to a topic. Calls `at_step` after the plan and each chunk.

    Called again with the same options it goes on where it stopped. A chunk that was written and not noted is
    written again under the same number. In transactions it then counts once; with the sink's header readers
    can drop the repetition. Raises `OptionError` and `PipelineError`.
    """
    origin = open_origin(spark, options)
    if options.dry_run:
        return _count(origin, options)
    progress = ProgressFiles(spark, options.progress)
    plan = _planned(origin, options, progress)
    return _write_chunks(origin, options, plan, progress, at_step)


def _count(origin: Origin, options: ReplayOptions) -> Replayed:
    """The number of records that would be written, read and filtered in the same way."""
    chunks = make_chunks(origin.pieces(), options.rows_per_chunk)
    plan = Plan("", "", chunks)
    record_count = 0
    for chunk in chunks:
        rows = select_rows(origin.read(chunk), options)
        select_sink_columns(rows, options, origin.name)  # so that its errors come now
        record_count += rows.count()
    return Replayed(
        row_count=plan.row_count, record_count=record_count, chunk_count=len(chunks), is_dry_run=True
    )


def _planned(origin: Origin, options: ReplayOptions, progress: ProgressFiles) -> Plan:
    asked = _fingerprint(options)
    plan = progress.plan(asked)
    if plan is not None:
        done, _ = progress.done()
        origin.check(piece for chunk in plan.chunks[done:] for piece in chunk)
        return plan
    chunks = make_chunks(origin.pieces(), options.rows_per_chunk)
    plan = Plan(str(uuid.uuid4()), asked, chunks)
    progress.begin(plan)
    return plan


def _write_chunks(
    origin: Origin,
    options: ReplayOptions,
    plan: Plan,
    progress: ProgressFiles,
    at_step: Callable[[ReplayStep], None],
) -> Replayed:
    from barnabas.pipeline.replay.writing import NumberedWriter

    throttle = (
        Throttle(options.records_per_second, options.bytes_per_second) if options.is_throttled else None
    )
    writer = NumberedWriter(options.sink_options, plan.replay_id, throttle)
    resumed_at, record_count = progress.done()
    rows_done = sum(piece.row_count for chunk in plan.chunks[:resumed_at] for piece in chunk)
    at_step(ReplayStep(rows_done, plan.row_count))
    for number, chunk in enumerate(plan.chunks[resumed_at:], resumed_at):
        rows = select_sink_columns(select_rows(origin.read(chunk), options), options, origin.name)
        # One task keeps the rate for all, and the order of the rows.
        record_count += writer.write(rows if throttle is None else rows.coalesce(1), number)
        progress.reach(number + 1, record_count)
        rows_done += sum(piece.row_count for piece in chunk)
        at_step(ReplayStep(rows_done, plan.row_count))
    return Replayed(
        row_count=plan.row_count,
        record_count=record_count,
        chunk_count=len(plan.chunks),
        resumed_at=resumed_at,
    )


def _fingerprint(options: ReplayOptions) -> str:
    """The options that decide which records are written and how. The rate and passwords may change."""
    asked = asdict(options)
    for name in ("records_per_second", "bytes_per_second", "progress", "dry_run", "chunk_records"):
        del asked[name]
    for name in ("topic_options", "sink_options"):
        given: dict[str, str] = asked[name] or {}
        asked[name] = {key: value for key, value in given.items() if not key.casefold().startswith("kafka.")}
    return hashlib.sha256(repr(sorted(asked.items())).encode()).hexdigest()
