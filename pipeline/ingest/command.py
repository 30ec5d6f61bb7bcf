"""The command `barnabas pipeline ingest`: its arguments and its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.pipeline.cli.arguments import (
    add_common_arguments,
    add_server_arguments,
    add_spark_arguments,
    named_as_arguments,
    server_options,
)
from barnabas.pipeline.cli.failures import EXIT_STOPPED
from barnabas.pipeline.cli.stopping import StopRequest, stop_request
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.tables.table_arguments import add_table_arguments, table_options

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.ingest.batch_writer import WrittenBatch
    from barnabas.pipeline.ingest.options import IngestOptions
    from barnabas.pipeline.share_source.settings import ShareSettings
    from barnabas.pipeline.topic_source.topic_options import TopicOptions

LOOK_SECONDS: Final = 0.25
"""The time between two looks for a signal."""
STOP_SECONDS: Final = 60.0

_ARGUMENTS: Final = {
    "location": "--table",
    "storage": "--storage",
    "partition_by": "--partition-by",
    "checkpoint": "--checkpoint",
    "schema_file": "--schema",
    "message": "--message",
    "framing": "--framing",
    "flatten": "--flatten",
    "invalid": "--invalid",
    "side_table": "--side-table",
    "interval_ms": "--interval-ms",
    "group": "--group",
    "topics": "--topics",
    "ackDir": "--option ackDir",
}

_STARTS: Final = frozenset({"startingoffsets", "startingtimestamp"})


def add_arguments(parser: ArgumentParser) -> None:
    """Fills the parser of `barnabas pipeline ingest`."""
    add_server_arguments(parser)
    parser.add_argument("--topics", metavar="NAME,...", required=True, help="topics to read")
    parser.add_argument(
        "--group",
        metavar="ID",
        help="the share group that reads them (default: none, read by offsets, from the earliest)",
    )
    parser.add_argument(
        "--locks",
        metavar="N",
        type=int,
        help="set the share group's limit of records in flight in a partition, which bounds the batches "
        "(default: the group's present limit, which is 2,000 unless it was changed)",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        required=True,
        help="where Spark keeps the stream's progress; one directory for each stream",
    )
    parser.add_argument(
        "--interval-ms",
        metavar="MS",
        type=int,
        help="go on for ever, with this time between batches (default: read up to the present end, and stop)",
    )
    parser.add_argument(
        "--stop-seconds",
        metavar="SECONDS",
        type=float,
        default=STOP_SECONDS,
        help="at SIGTERM or SIGINT, how long the batch of a share group under way may take before it is "
        "interrupted; a second signal interrupts it at once (default: %(default)s)",
    )
    add_table_arguments(parser)
    parser.add_argument(
        "--partition-by",
        metavar="COLUMN",
        action="append",
        default=[],
        help="date, any column, or NAME=EXPRESSION of Spark SQL; may be given several times",
    )
    _add_value_arguments(parser)
    add_spark_arguments(parser)
    add_common_arguments(parser)


def _add_value_arguments(parser: ArgumentParser) -> None:
    values = parser.add_argument_group("values")
    values.add_argument(
        "--schema", metavar="FILE", help="JSON Schema (.json), Avro (.avsc), Protobuf (.proto, .desc, .pb)"
    )
    values.add_argument("--message", metavar="NAME", help="the Protobuf message")
    values.add_argument("--framing", choices=("none", "confluent"), default="none", help="(default: none)")
    values.add_argument("--flatten", action="store_true", help="make columns of the values' fields")
    values.add_argument(
        "--invalid",
        choices=("fail", "side-table", "reject"),
        default="fail",
        help="how to handle values that don't fit (default: fail)",
    )
    values.add_argument("--side-table", metavar="LOCATION", help="the table for those that don't fit")


def run(options: Namespace) -> int:
    """Ingests up to the present end, or for ever; returns the exit code."""
    from barnabas.pipeline.cli.connectivity import check_connectivity
    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.cli.session import open_session

    with named_as_arguments(_ARGUMENTS):
        wanted = _wanted(options)
        source = _source(wanted)
        if not options.dry_run:
            check_connectivity(source.servers, source.topics or ())
        with open_session(options, "ingest") as spark:
            if options.dry_run:
                _report_columns(spark, wanted, Console.of(options))
                return 0
            return _run_stream(spark, wanted, options)


def _wanted(options: Namespace) -> IngestOptions:
    from barnabas.pipeline.ingest.options import IngestOptions
    from barnabas.pipeline.ingest.values.options import ValueOptions

    values = None
    if options.schema is not None:
        values = ValueOptions(
            schema_file=options.schema,
            message=options.message,
            framing=options.framing,
            flatten=options.flatten,
        )
    side_table = None if options.side_table is None else table_options(options, options.side_table, [])
    given = {**server_options(options), "topics": options.topics}
    if options.locks is not None:
        if options.group is None:
            raise OptionError("--locks", "is for share groups: name one with --group")
        given["recordLocks"] = str(options.locks)
    if options.group is None and not {name.lower() for name in given} & _STARTS:
        given["startingOffsets"] = "earliest"  # by default a stream begins at the latest offset
    return IngestOptions(
        source="kafka-topic" if options.group is None else "kafka-share",
        source_options=given if options.group is None else {**given, "group": options.group},
        table=table_options(options, options.table, options.partition_by),
        checkpoint=options.checkpoint,
        values=values,
        invalid=options.invalid,
        side_table=side_table,
        interval_ms=options.interval_ms,
    )


def _source(wanted: IngestOptions) -> ShareSettings | TopicOptions:
    """The source's options. Raises `OptionError` at once; the source itself would do so much later."""
    from barnabas.pipeline.share_source.settings import parse_settings
    from barnabas.pipeline.topic_source.topic_options import parse_topic_options

    parse = parse_settings if wanted.source == "kafka-share" else parse_topic_options
    return parse(wanted.source_options)


def _report_columns(spark: SparkSession, wanted: IngestOptions, console: Console) -> None:
    """Prints the columns that the table would have; reads no records."""
    from barnabas.pipeline.ingest.streaming import table_schema

    schema = table_schema(spark, wanted)
    columns = {field.name: field.dataType.simpleString() for field in schema.fields}
    lines = [f"{name}  {kind}" for name, kind in columns.items()]
    console.result({"table": wanted.table.location, "columns": columns}, ["The table's columns:", *lines])


def _run_stream(spark: SparkSession, wanted: IngestOptions, options: Namespace) -> int:
    """Returns the exit code, which is 0 for a query that was stopped between two batches."""
    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.ingest.streaming import ingest, state_directory

    console = Console.of(options)
    state_dir = state_directory(spark, wanted)
    sums = {"batches": 0, "repeated": 0, "records": 0, "invalid": 0, "files": 0, "bytes": 0}
    with console.progress("Ingesting") as progress, stop_request() as request:

        def note(written: WrittenBatch) -> None:
            if written.is_repeated:
                _report_twice(console, written, state_dir)
            sums["batches"] += 1
            sums["repeated"] += written.is_repeated
            if written.record_count is None:
                console.note(f"batch {written.batch_id} of an earlier run: its records are gone, not counted")
            sums["records"] += written.record_count or 0
            sums["invalid"] += written.invalid_count or 0
            sums["files"] += written.file_count
            sums["bytes"] += written.size_bytes
            progress.advance(written.record_count or 0)

        query = ingest(spark, wanted, at_batch=note)
        try:
            is_in_order = _await_end(query, request, state_dir, options.stop_seconds)
        finally:
            query.stop()
    console.result({"table": wanted.table.location, **sums}, [summary_line(sums, wanted)])
    if request.is_asked:
        how = "" if is_in_order else ", in the middle of a batch"
        console.note(f"Stopped{how}. {options.resume}")
    return 0 if is_in_order else EXIT_STOPPED


def summary_line(sums: Mapping[str, int], wanted: IngestOptions) -> str:
    """The result for people; `sums` are the counts of the run, and `invalid` counts only with a schema."""
    from barnabas.protocol.counted import counted

    batches = counted(sums["batches"], "batch", "batches")
    line = f"Wrote {counted(sums['records'], 'record')} in {batches} to {wanted.table.location}"
    invalid = "" if wanted.values is None else f"; {sums['invalid']:,} did not fit the schema"
    repeated = f"; {sums['repeated']:,} of the batches had been written by an earlier run"
    return line + invalid + (repeated if sums["repeated"] else "")


def _await_end(
    query: StreamingQuery, request: StopRequest, state_dir: str | None, stop_seconds: float
) -> bool:
    """Waits for the query's end, or for a signal; returns False if a share group's batch was interrupted."""
    from barnabas.pipeline.share_source import stop_in_order

    while not query.awaitTermination(LOOK_SECONDS):  # type: ignore[arg-type]
        if request.is_asked and state_dir is not None:
            return stop_in_order(
                query, state_dir=state_dir, seconds=stop_seconds, is_hurried=lambda: request.is_hurried
            )
        if request.is_asked:
            query.stop()  # without asking it for its error: for Spark, an interrupted batch has failed
            return True
    return True


def _report_twice(console: Console, written: WrittenBatch, state_dir: str | None) -> None:
    """Reports the records of a batch from before a kill that other members of the group have got since."""
    from barnabas.pipeline.share_source.state_files import StateFiles

    omitted = "" if state_dir is None else StateFiles(state_dir).last_omitted()
    if omitted:
        console.note(
            f"Batch {written.batch_id} was written and not acknowledged when the query was killed. Other "
            f"members of the group have got these records, too: {omitted}"
        )
