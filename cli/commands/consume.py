"""`barnabas consume`: prints the records of topics (`record_streams.consuming`)."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Final

from barnabas.cli.commands.argument_types import duration_ms, number_from, time_ms, topic_partition
from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.commands.failures import report_error
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.record_streams.consuming import Filter, Start
    from barnabas.cli.target import Target

_DESCRIPTION: Final = """\
Print the records of topics: those that exist now, or with --follow also new ones. With --group, the command
is a member of a consumer group, and commits its offsets. Works with Apache Kafka, too.
"""
_EXAMPLES: Final = """\
examples:
  barnabas consume orders                              the values, one on each line
  barnabas consume orders:0 --last 10 --details        ten records with all their parts
  barnabas consume orders --from 2026-11-25T10:00 --grep ERROR --json
  barnabas consume orders --group reports --idle 10s   as a member of a group

The exit code is 6 if no record was printed.
"""
_EARLIEST: Final = "earliest"
_LATEST: Final = "latest"
_MS_PER_SECOND: Final = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("topics", metavar="TOPIC[:PARTITION]", type=topic_partition, nargs="+")
    starts = parser.add_mutually_exclusive_group()
    starts.add_argument(
        "--from",
        metavar="PLACE",
        dest="start",
        default=_EARLIEST,
        help="earliest (the default), latest, an offset, or a time in UTC",
    )
    starts.add_argument("--last", type=number_from(1), metavar="N", help="the last N of each partition")
    parser.add_argument("--until", type=time_ms, metavar="TIME", help="only records before this time, UTC")
    parser.add_argument("--key", metavar="TEXT", help="only records with this key")
    parser.add_argument("--grep", metavar="REGEX", help="only records whose value matches")
    parser.add_argument("--committed", action="store_true", help="no records of open or aborted transactions")
    parser.add_argument("--follow", action="store_true", help="wait for new records, until Ctrl-C")
    parser.add_argument("--group", metavar="ID", help="read as a member of this consumer group, and follow")
    parser.add_argument("--max", type=number_from(1), metavar="N", help="end after N printed records")
    parser.add_argument(
        "--idle", type=duration_ms, metavar="DURATION", help="end after this time without a new record"
    )
    parser.add_argument(
        "--details", action="store_true", help="print partition, offset, time, key and headers, too"
    )
    add_json(parser)
    add_connection(parser)


def run(options: argparse.Namespace) -> int:
    try:
        start, kept = _start(options), _filter(options)
        _check_group(options)
    except ValueError as error:
        return report_error(f"{error}.", ExitCode.USAGE)
    return run_client(options, lambda target, printer: _consume(options, start, kept, target, printer))


async def _consume(
    options: argparse.Namespace, start: Start, kept: Filter, target: Target, printer: Printer
) -> int:
    from barnabas.cli.record_streams.consuming import Until, consume, consume_in_group
    from barnabas.cli.record_streams.record_output import RecordOutput
    from barnabas.client.cluster.topics import Isolation

    output = RecordOutput(printer, options.details)
    until = Until(options.max, None if options.idle is None else options.idle / _MS_PER_SECOND)
    isolation = Isolation.READ_COMMITTED if options.committed else Isolation.READ_UNCOMMITTED
    if options.group is None:
        count = await consume(
            target, output, options.topics, start, kept, until, isolation, follows=options.follow
        )
    else:
        topics = [topic for topic, _ in options.topics]
        count = await consume_in_group(
            target, output, options.group, topics, options.start, kept, until, isolation
        )
    return ExitCode.DONE if count else ExitCode.NOT_FOUND


def _check_group(options: argparse.Namespace) -> None:
    """Raises ValueError for arguments that have no effect with a group."""
    if options.group is None:
        return
    if options.start not in {_EARLIEST, _LATEST} or options.last is not None:
        raise ValueError(
            "A group begins at its committed offsets; with --group, --from is earliest or latest, for a "
            "group that has none. barnabas groups reset moves a group"
        )
    if any(partition is not None for _, partition in options.topics):
        raise ValueError("The group decides about partitions; with --group, name topics alone")


def _start(options: argparse.Namespace) -> Start:
    """Raises ValueError, whose message begins with the argument."""
    from barnabas.cli.record_streams.consuming import Start
    from barnabas.cli.times import parse_time_ms
    from barnabas.client.cluster.topics import EARLIEST, LATEST

    text: str = options.start
    if options.last is not None:
        return Start(last_count=options.last)
    if text in {_EARLIEST, _LATEST}:
        return Start(at=EARLIEST if text == _EARLIEST else LATEST)
    if text.isascii() and text.isdecimal():
        return Start(offset=int(text))
    try:
        return Start(at=parse_time_ms(text))
    except ValueError as error:
        raise ValueError(f"--from: {error}, nor earliest, latest or an offset") from error


def _filter(options: argparse.Namespace) -> Filter:
    """Raises ValueError, whose message begins with the argument."""
    from barnabas.cli.record_streams.consuming import Filter

    try:
        pattern = None if options.grep is None else re.compile(os.fsencode(options.grep))
    except re.error as error:
        raise ValueError(f"--grep: {options.grep!r} is not a regular expression: {error}") from error
    key = None if options.key is None else os.fsencode(options.key)
    return Filter(key=key, pattern=pattern, until_ms=options.until)
