"""The command `barnabas pipeline compact`: its arguments and its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.pipeline.cli.arguments import (
    add_common_arguments,
    add_spark_arguments,
    named_as_arguments,
)
from barnabas.pipeline.tables.compaction import compact
from barnabas.pipeline.tables.options import TARGET_BYTES, CompactOptions
from barnabas.pipeline.tables.table_arguments import add_table_arguments, table_options

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_ARGUMENTS: Final = {"location": "--table", "storage": "--storage", "target_bytes": "--target-bytes"}


def add_arguments(parser: ArgumentParser) -> None:
    """Fills the parser of `barnabas pipeline compact`."""
    add_table_arguments(parser)
    parser.add_argument(
        "--target-bytes",
        metavar="N",
        type=int,
        default=TARGET_BYTES,
        help=f"size of a file; those of at most half of it are merged (default: {TARGET_BYTES})",
    )
    add_spark_arguments(parser)
    add_common_arguments(parser, resume="The next run finishes or undoes the work of this one.")


def run(options: Namespace) -> int:
    """Merges small files; returns the exit code."""
    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.cli.session import open_session
    from barnabas.pipeline.cli.task_progress import task_progress
    from barnabas.protocol.counted import counted

    console = Console.of(options)
    with named_as_arguments(_ARGUMENTS):
        wanted = CompactOptions(
            table=table_options(options, options.table, []),
            target_bytes=options.target_bytes,
            dry_run=options.dry_run,
        )
        with open_session(options, "compact") as spark, task_progress(spark, console, "Compacting"):
            done = compact(spark, wanted)
    verb = "Would merge" if options.dry_run else "Merged"
    files = counted(done.removed_count, "file")
    console.result(
        {
            "table": options.table,
            "removed": done.removed_count,
            "added": done.added_count,
            "bytes": done.size_bytes,
        },
        [f"{verb} {files} of {counted(done.size_bytes, 'byte')} into {done.added_count:,}"],
    )
    return 0
