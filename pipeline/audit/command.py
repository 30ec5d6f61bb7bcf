"""The command `barnabas pipeline audit`: audits data directories, writes a report and tables.

Exit codes: 0 without violations, 1 with violations; with `--require-done` also 1 if a record may have no
outcome. It loads PySpark only when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.cli.arguments import (
    add_common_arguments,
    add_spark_arguments,
    named_as_arguments,
    names,
)
from barnabas.pipeline.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from barnabas.pipeline.audit.auditing import Audit
    from barnabas.pipeline.audit.summary import Summary

EXIT_VIOLATED: Final = 1
EXIT_NOT_DONE: Final = 1
TABLES: Final = (
    "deliveries",
    "states",
    "outcomes",
    "checkpoints",
    "violations",
    "share_partitions",
    "poison",
)
LATENCIES: Final = "latencies"
"""The table that only `--latencies` writes, because it needs the records."""

_ARGUMENTS: Final = {"topics": "--topics", "groups": "--groups"}

_EXAMPLES: Final = """\
examples:
  barnabas pipeline audit ./data --report audit.html     the outcome of every record, with charts
  barnabas pipeline audit ./data --topics orders --tables ./audit   the same as Parquet files
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of the command."""
    parser.epilog = _EXAMPLES
    add_common_arguments(parser, resume="Run it again: an audit changes nothing and starts anew.")
    add_spark_arguments(parser)
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a broker's data directory")
    parser.add_argument("--topics", metavar="NAME,...", type=names, help="only these topics")
    parser.add_argument("--groups", metavar="ID,...", type=names, help="only these share groups")
    parser.add_argument("--report", metavar="FILE", help="write an HTML report there")
    parser.add_argument("--tables", metavar="DIR", help="write the tables there as Parquet, a folder each")
    parser.add_argument(
        "--latencies", action="store_true", help="read the records, too, to tell how long they took"
    )
    parser.add_argument(
        "--require-done",
        action="store_true",
        help="exit with 1 if a record is open, unknown, or skipped at the start",
    )
    parser.add_argument(
        "--damage",
        choices=("fail", "report"),
        default="fail",
        help="damaged bytes end the audit (default), or are reported as violations",
    )


def run(options: Namespace) -> int:
    """Runs the audit; returns the exit code."""
    from barnabas.pipeline.audit.auditing import audit
    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.cli.session import open_session
    from barnabas.pipeline.cli.task_progress import task_progress
    from barnabas.pipeline.log_source.directories import find_partitions

    _check_targets(options)
    console = Console.of(options)
    with named_as_arguments(_ARGUMENTS):
        find_partitions(options.paths, options.topics)  # refuses wrong paths before Spark starts
    with named_as_arguments(_ARGUMENTS), open_session(options, "audit") as spark:
        audited = audit(
            spark,
            options.paths,
            topics=options.topics,
            groups=options.groups,
            raise_damage=options.damage == "fail",
        )
        if options.dry_run:
            console.result(audited.planned(), _planned_lines(audited))
            return 0
        with audited, task_progress(spark, console, "Auditing", several_jobs=True):
            _check_groups(audited, options)
            summary = _write(audited, options)
    console.result(_values(summary, options), _lines(summary, options))
    if summary.checks:
        return EXIT_VIOLATED
    return EXIT_NOT_DONE if options.require_done and not summary.is_done else 0


def _check_targets(options: Namespace) -> None:
    """Checks before the work that the report and the tables can be written."""
    if options.report is not None and not Path(options.report).absolute().parent.is_dir():
        raise OptionError("--report", f"there is no directory {Path(options.report).absolute().parent}")
    if options.tables is not None and Path(options.tables).exists() and any(Path(options.tables).iterdir()):
        raise OptionError("--tables", f"{options.tables} is not empty")


def _check_groups(audited: Audit, options: Namespace) -> None:
    """Raises `OptionError` for an unknown group: a misspelt one would have no violations."""
    if options.groups is None:
        return
    found = {row["group"] for row in audited.share_partitions.select("group").distinct().collect()}
    if missing := set(options.groups) - found:
        raise OptionError("groups", f"there are no records of the group {min(missing)!r}")


def _write(audited: Audit, options: Namespace) -> Summary:
    from barnabas.pipeline.audit.report import render
    from barnabas.pipeline.audit.summary import summarise

    summary = summarise(audited, with_latencies=options.latencies)
    if options.report is not None:
        Path(options.report).write_text(render(summary), encoding="utf-8")
    if options.tables is not None:
        for table in (*TABLES, LATENCIES) if options.latencies else TABLES:
            getattr(audited, table).write.parquet(f"{options.tables}/{table}")
    return summary


def _values(summary: Summary, options: Namespace) -> dict[str, object]:
    return {
        **summary.totals(),
        "isDone": summary.is_done,
        "violations": {check["check"]: check["violationCount"] for check in summary.checks},
        "report": options.report,
        "tables": options.tables,
    }


def _lines(summary: Summary, options: Namespace) -> list[str]:
    from barnabas.pipeline.audit.summary import ARCHIVED_COUNTS, ROWS_MAX
    from barnabas.protocol.counted import counted

    totals = summary.totals()
    share_partitions = counted(totals["sharePartitionCount"], "share-partition")
    lines = [f"{share_partitions} of {counted(totals['groupCount'], 'group')}"]
    for row in summary.groups:
        archived = sum(row[name] for name in ARCHIVED_COUNTS)
        begins = "" if row["isWhole"] else "; its history is cut"
        lines.append(
            f"  {row['topic']} / {row['group']}: {row['acknowledgedCount']:,} acknowledged, "
            f"{archived:,} archived, {row['unknownCount']:,} unknown, {_counted(row['openCount'])} open"
            f"{_skipped(row)}{_letters(row)}{begins}"
        )
    if len(summary.groups) == ROWS_MAX:
        lines.append(f"  (the first {ROWS_MAX})")
    lines.extend(f"{check['violationCount']:,} x {check['check']}" for check in summary.checks)
    lines.append(_verdict(summary))
    if options.require_done:
        lines.append(_done_verdict(summary))
    lines.extend(f"Wrote {target}" for target in (options.report, options.tables) if target is not None)
    return lines


def _counted(count: int | None) -> str:
    return "an unknown number" if count is None else f"{count:,}"


def _skipped(row: Mapping[str, Any]) -> str:
    """The records before the start of the group, unless there are none."""
    return "" if row["skippedCount"] == 0 else f", {_counted(row['skippedCount'])} skipped at the start"


def _letters(row: Mapping[str, Any]) -> str:
    """The counts of dead letters, if there are any."""
    from barnabas.pipeline.audit.summary import LETTER_NAMES
    from barnabas.protocol.counted import counted

    told = {name: name.removeprefix("dead letters ") for name in LETTER_NAMES.values()}
    return "".join(
        f", {counted(row[count], 'dead letter')} {told[name]}"
        for count, name in LETTER_NAMES.items()
        if row[count]
    )


def _verdict(summary: Summary) -> str:
    if summary.checks:
        return "The checks found violations: see above."
    if not summary.share_partition_count:
        return "No share group has recorded anything there, so there was nothing to check."
    return "No check found a violation."


def _done_verdict(summary: Summary) -> str:
    if summary.is_done:
        return "Every record is done."
    if not summary.share_partition_count:
        return "Not every record is done: no group has recorded anything."
    sums = summary.group_sums
    return (
        f"Not every record is done: {_counted(sums['openCount'])} open, "
        f"{_counted(sums['unknownCount'])} unknown, {_counted(sums['skippedCount'])} skipped at the start."
    )


def _planned_lines(audited: Audit) -> list[str]:
    from barnabas.protocol.counted import counted

    planned = audited.planned()
    segments = counted(planned["segmentCount"], "segment")
    files = f"{segments} of {counted(planned['partitionCount'], 'partition')}"
    return [f"Would read {files}, {counted(planned['sizeBytes'], 'byte')} in all"]
