"""The arguments and the run of `barnabas inspect` and `barnabas browse`, which print ranges or records.

The client and the report (`share_records`) are loaded when a command runs.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from barnabas.cli.commands.argument_types import number_from, topic_partition
from barnabas.cli.commands.connecting import ONLY_BARNABAS, add_connection, add_json, run_client
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_STATES: Final = ("passed", "new", "available", "acquired", "acknowledged", "archiving", "archived")
_LIMIT: Final = 100


def add_inspection(parser: argparse.ArgumentParser, lines: str) -> None:
    """Add the arguments of both commands. `lines` are ranges or records: the lines of their output."""
    parser.add_argument("group", metavar="GROUP", help="the id of the share group")
    parser.add_argument(
        "partition", metavar="TOPIC[:PARTITION]", nargs="?", type=topic_partition, help="all by default"
    )
    parser.add_argument("--from-offset", type=number_from(0), metavar="N", help="the start offset by default")
    parser.add_argument("--to-offset", type=number_from(0), metavar="N", help="the end by default")
    parser.add_argument(
        "--state",
        choices=_STATES,
        action="append",
        default=[],
        help="only records in this state; may be repeated",
    )
    parser.add_argument(
        "--limit",
        type=number_from(1),
        metavar="N",
        default=_LIMIT,
        help=f"the most {lines} of each partition, {_LIMIT} by default",
    )
    add_json(parser)
    add_connection(parser)


def run_inspection(options: argparse.Namespace, *, with_records: bool) -> int:
    """Print the ranges of records that are alike, or each record; returns the exit code."""
    return run_client(
        options,
        lambda target, printer: _inspect(options, target, printer, with_records=with_records),
        unsupported=ONLY_BARNABAS,
    )


async def _inspect(
    options: argparse.Namespace, target: Target, printer: Printer, *, with_records: bool
) -> int:
    from barnabas.cli.share_records.inspecting import Wanted, inspect
    from barnabas.cli.target import NotFoundError
    from barnabas.protocol.record_inspection import DescribedState

    topic, partition = options.partition or (None, None)
    wanted = Wanted(
        topic,
        partition,
        options.from_offset,
        options.to_offset,
        [DescribedState[name.upper()] for name in options.state],
        options.limit,
        with_records,
    )
    exit_code = await inspect(target, options.group, wanted, printer)
    if exit_code is not ExitCode.NOT_FOUND:
        return exit_code
    where = "any topic" if topic is None else f"the topic {topic}"
    raise NotFoundError(f"There is no share group {options.group} that reads {where}")
