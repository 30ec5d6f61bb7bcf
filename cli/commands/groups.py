"""`barnabas groups`: consumer groups and share groups in one list (`administration.groups`, `resetting`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, Literal, assert_never

from barnabas.cli.commands.argument_types import duration_ms, number_from, time_ms, topic_partition
from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.administration.resetting import Goal
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_DESCRIPTION: Final = """\
List, describe, reset and delete groups: share groups, consumer groups, and classic ones. Works with Apache
Kafka, too.
"""
_EXAMPLES: Final = """\
examples:
  barnabas groups list --type share
  barnabas groups describe workers
  barnabas groups reset workers --topic orders --to-earliest --dry-run
  barnabas groups reset reports --by-duration 2h
"""
_LIST: Final = "list all groups with their types and states"
_DESCRIBE: Final = "show the members, offsets and lag of groups"
_RESET: Final = "move a group without members to other offsets"
_DELETE: Final = "delete groups without members, with their offsets"
_TYPES: Final = ("share", "consumer", "classic", "streams")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = _described(actions.add_parser("list", help=_LIST), _LIST)
    listing.add_argument(
        "--type", choices=_TYPES, action="append", default=[], help="only this type; may be repeated"
    )
    listing.add_argument("--lag", action="store_true", help="also the members and the lag of each group")
    describe = _described(actions.add_parser("describe", help=_DESCRIBE), _DESCRIBE)
    describe.add_argument("groups", metavar="GROUP", nargs="+")
    _add_reset_arguments(_described(actions.add_parser("reset", help=_RESET), _RESET))
    delete = _described(actions.add_parser("delete", help=_DELETE), _DELETE)
    delete.add_argument("groups", metavar="GROUP", nargs="+")


def run(options: argparse.Namespace) -> int:
    return run_client(options, lambda target, printer: _run(options, target, printer))


async def _run(options: argparse.Namespace, target: Target, printer: Printer) -> int:
    from barnabas.cli.administration import groups
    from barnabas.cli.administration.resetting import reset

    action: Literal["list", "describe", "reset", "delete"] = options.action
    match action:
        case "list":
            await groups.list_all(target, printer, options.type, with_lag=options.lag)
        case "describe":
            await groups.describe(target, printer, options.groups)
        case "delete":
            await groups.delete(target, printer, options.groups)
        case "reset":
            goal = _goal(options)
            await reset(target, printer, options.group, options.topic, goal, dry_run=options.dry_run)
        case _:
            assert_never(action)
    return ExitCode.DONE


def _goal(options: argparse.Namespace) -> Goal:
    from barnabas.cli.administration.resetting import Goal

    return Goal(
        options.to_earliest,
        options.to_latest,
        options.to_offset,
        options.to_datetime,
        options.by_duration,
        options.shift_by,
    )


def _described(parser: argparse.ArgumentParser, purpose: str) -> argparse.ArgumentParser:
    """Adds the description and the arguments that all actions have."""
    parser.description = f"{purpose[0].upper()}{purpose[1:]}."
    add_json(parser)
    add_connection(parser)
    return parser


def _add_reset_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "--topic",
        metavar="TOPIC[:PARTITION]",
        type=topic_partition,
        action="append",
        default=[],
        help="only this topic or partition; may be repeated (default: all that the group reads)",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the new offsets, and change nothing")
    goals = parser.add_mutually_exclusive_group(required=True)
    goals.add_argument("--to-earliest", action="store_true", help="the start of the log")
    goals.add_argument("--to-latest", action="store_true", help="the end of the log")
    goals.add_argument("--to-offset", type=number_from(0), metavar="N", help="this offset")
    goals.add_argument(
        "--to-datetime", type=time_ms, metavar="TIME", help="the first record that is not older, UTC"
    )
    goals.add_argument(
        "--by-duration", type=duration_ms, metavar="DURATION", help="this long ago, such as 90s or 1h30m"
    )
    goals.add_argument("--shift-by", type=int, metavar="N", help="forwards, or backwards if it is negative")
