"""The command `barnabas pipeline replay`: its arguments and its output."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.cli.arguments import (
    add_common_arguments,
    add_server_arguments,
    add_spark_arguments,
    named_as_arguments,
    server_options,
)
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.replay.options import CHUNK_RECORDS, ReplayOptions
from barnabas.pipeline.tables.table_arguments import add_table_arguments, table_options

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from barnabas.pipeline.cli.progress import Progress
    from barnabas.pipeline.replay.replaying import ReplayStep

_ARGUMENTS: Final = {
    "location": "--table",
    "storage": "--storage",
    "table": "--table",
    "progress": "--progress",
    "where": "--where",
    "from_ms": "--from",
    "to_ms": "--to",
    "partitions": "--partitions",
    "key": "--key",
    "value": "--value",
    "topic": "--topic",
    "topics": "--from-topics",
    "keep_timestamps": "--keep-timestamps",
    "keep_partitions": "--keep-partitions",
    "records_per_second": "--records-per-second",
    "bytes_per_second": "--bytes-per-second",
    "chunk_records": "--chunk-records",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Fills the parser of `barnabas pipeline replay`."""
    add_server_arguments(parser)
    parser.add_argument("--topic", metavar="NAME", help="where to write (default: each record's own topic)")
    parser.add_argument("--from-topics", metavar="NAME,...", help="topics to read, instead of a table")
    parser.add_argument("--progress", metavar="DIR", default="", help="where it keeps its progress")
    add_table_arguments(parser, required=False)
    _add_filters(parser)
    _add_shape(parser)
    add_spark_arguments(parser)
    add_common_arguments(parser)


def _add_filters(parser: ArgumentParser) -> None:
    which = parser.add_argument_group("which records")
    which.add_argument("--where", metavar="SQL", help="an expression of Spark SQL over the columns")
    which.add_argument("--from", dest="from_time", metavar="TIME", help="this time or later; ISO 8601, UTC")
    which.add_argument("--to", dest="to_time", metavar="TIME", help="earlier than this; ISO 8601, UTC")
    which.add_argument("--partitions", metavar="N,...", help="of these partitions of the topic they were in")


def _add_shape(parser: ArgumentParser) -> None:
    how = parser.add_argument_group("how they are written")
    how.add_argument("--key", metavar="SQL", default="key", help="the key (default: key)")
    how.add_argument("--value", metavar="SQL", default="value", help="the value (default: value)")
    how.add_argument("--keep-timestamps", action="store_true", help="with the time that they had")
    how.add_argument("--keep-partitions", action="store_true", help="to the partition that they were in")
    how.add_argument("--records-per-second", metavar="N", type=float, help="at most, over all tasks")
    how.add_argument("--bytes-per-second", metavar="N", type=float, help="at most, of keys and values")
    how.add_argument(
        "--chunk-records",
        metavar="N",
        type=int,
        default=CHUNK_RECORDS,
        help=f"records that are written at once (default: {CHUNK_RECORDS})",
    )


def run(options: Namespace) -> int:
    """Replays; returns the exit code."""
    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.cli.session import open_session
    from barnabas.pipeline.replay.replaying import replay
    from barnabas.protocol.counted import counted

    console = Console.of(options)
    with named_as_arguments(_ARGUMENTS):
        wanted = _wanted(options)
        _check_connectivity(wanted)
        with (
            open_session(options, "replay") as spark,
            console.progress("Replaying", unit="rows") as progress,
        ):
            done = replay(spark, wanted, at_step=_ShownSteps(progress))
    verb = "Would write" if done.is_dry_run else "Wrote"
    records, rows = counted(done.record_count, "record"), counted(done.row_count, "row")
    chunks = counted(done.chunk_count, "chunk")
    console.result(
        {
            "rows": done.row_count,
            "records": done.record_count,
            "chunks": done.chunk_count,
            "resumedAt": done.resumed_at,
            "dryRun": done.is_dry_run,
        },
        [f"{verb} {records}, of {rows} in {chunks}"],
    )
    return 0


def _check_connectivity(wanted: ReplayOptions) -> None:
    """Raises `OptionError` for an option that source or sink refuse, or if a topic does not exist."""
    from barnabas.pipeline.cli.connectivity import check_connectivity
    from barnabas.pipeline.topic_sink.sink_options import parse_sink_options
    from barnabas.pipeline.topic_source.topic_options import parse_topic_options

    if wanted.topic_options is not None:
        source = parse_topic_options(wanted.topic_options)
        check_connectivity(source.servers, source.topics or ())
    if not wanted.dry_run:
        sink = parse_sink_options(wanted.sink_options)
        check_connectivity(sink.servers, () if sink.topic is None else (sink.topic,))


class _ShownSteps:
    """Shows each step. The bar begins behind the rows of an earlier run, which don't count for the rate."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._is_begun = False

    def __call__(self, step: ReplayStep) -> None:
        if not self._is_begun:
            self._progress.resume_from(step.rows_done)
            self._is_begun = True
        self._progress.reach(step.rows_done, total=step.row_count)


def _wanted(options: Namespace) -> ReplayOptions:
    given = server_options(options)
    from_topics = None if options.from_topics is None else {**given, "topics": options.from_topics}
    return ReplayOptions(
        table=None if options.table is None else table_options(options, options.table, []),
        topic_options=from_topics,
        sink_options=given if options.topic is None else {**given, "topic": options.topic},
        progress=options.progress,
        where=options.where,
        from_ms=_time_ms("--from", options.from_time),
        to_ms=_time_ms("--to", options.to_time),
        partitions=_numbers("--partitions", options.partitions),
        key=options.key,
        value=options.value,
        keep_timestamps=options.keep_timestamps,
        keep_partitions=options.keep_partitions,
        records_per_second=options.records_per_second,
        bytes_per_second=options.bytes_per_second,
        chunk_records=options.chunk_records,
        dry_run=options.dry_run,
    )


def _time_ms(argument: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise OptionError(argument, f"{text!r} is no time such as 2026-01-31T12:00") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _numbers(argument: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(number) for number in text.split(",")]
    except ValueError as error:
        raise OptionError(argument, f"{text!r} is not numbers with commas between them") from error
