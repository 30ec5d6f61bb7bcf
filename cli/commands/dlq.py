"""`barnabas dlq`: lists, shows and re-drives the dead letters of share groups (`dead_letters`).

A re-drive ends with `ExitCode.DONE` if all selected letters were re-driven, now or before, with `NOT_ALL` if
some could not be re-driven, and with `STOPPED` after SIGINT or SIGTERM.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.commands.failures import report_error
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.dead_letters.running import Place
    from barnabas.cli.dead_letters.selection import Selection
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_DESCRIPTION: Final = "List, show and re-drive the dead letters of share groups (KIP-1191)."
_LIST: Final = "count the letters by source topic, group and reason"
_SHOW: Final = "print each letter with its record"
_REDRIVE: Final = "write the records of letters to their source topics, or to another topic, each letter once"
_EXAMPLES: Final = """\
examples:
  barnabas dlq list dlq.orders                              the letters of a topic, counted
  barnabas dlq show dlq.orders --group billing --limit 5    five letters of one group
  barnabas dlq redrive dlq.orders --reason rejected --rate 100
  barnabas dlq redrive dlq.orders --key customer-7 --to orders.retry --dry-run

A re-drive ends with 0 if all selected letters are re-driven, 3 if some could not be re-driven, 130 if Ctrl-C
or SIGTERM has stopped it, and other codes after errors; the same command goes on after each of them.
"""

_Parsed = TypeVar("_Parsed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_waiting(_described(actions.add_parser("list", help=_LIST), _LIST))
    show = _described(actions.add_parser("show", help=_SHOW), _SHOW)
    _add_waiting(show)
    show.add_argument("--limit", type=_positive, metavar="N", help="print at most N letters")
    _add_redrive_arguments(_described(actions.add_parser("redrive", help=_REDRIVE), _REDRIVE))


def run(options: argparse.Namespace) -> int:
    try:
        selection = _selection(options)
    except ValueError as error:
        return report_error(f"{error}.", ExitCode.USAGE)
    return run_client(
        options, lambda target, printer: _ACTIONS[options.action](options, selection, target, printer)
    )


async def _list(options: argparse.Namespace, selection: Selection, target: Target, printer: Printer) -> int:
    from barnabas.cli.dead_letters.running import print_counts

    await print_counts(_place(options, target), selection, printer, is_waiting=options.waiting)
    return ExitCode.DONE


async def _show(options: argparse.Namespace, selection: Selection, target: Target, printer: Printer) -> int:
    from barnabas.cli.dead_letters.running import print_letters

    place = _place(options, target)
    await print_letters(place, selection, printer, options.limit, is_waiting=options.waiting)
    return ExitCode.DONE


async def _redrive(
    options: argparse.Namespace, selection: Selection, target: Target, printer: Printer
) -> int:
    from barnabas.cli.dead_letters.redriving import BATCH_LETTERS, BATCH_LETTERS_MAX, Plan
    from barnabas.cli.dead_letters.running import redrive

    batch_letters = BATCH_LETTERS if options.batch is None else options.batch
    if batch_letters > BATCH_LETTERS_MAX:
        return report_error(f"--batch is at most {BATCH_LETTERS_MAX}.", ExitCode.USAGE)
    if options.to == options.topic:
        return report_error("--to is the dead letter topic itself; name another one.", ExitCode.USAGE)
    plan = Plan(selection, options.to, batch_letters, options.again)
    ending = await redrive(_place(options, target), plan, printer, options.rate, dry_run=options.dry_run)
    if ending.is_stopped:
        return ExitCode.STOPPED
    return ExitCode.NOT_ALL if ending.tally.not_redriven else ExitCode.DONE


_ACTIONS: Final = {"list": _list, "show": _show, "redrive": _redrive}


def _place(options: argparse.Namespace, target: Target) -> Place:
    from barnabas.cli.dead_letters.running import Place
    from barnabas.client.network.address import parse_bootstrap

    return Place(parse_bootstrap(target.bootstrap), target.security, options.topic)


def _selection(options: argparse.Namespace) -> Selection:
    """Raises ValueError, whose message begins with the argument."""
    from barnabas.cli.dead_letters.selection import Selection, parse_offsets
    from barnabas.cli.times import parse_time_ms

    return Selection(
        source_topic=options.source,
        group=options.group,
        reason=options.reason,
        since_ms=None if options.since is None else _parsed("--since", options.since, parse_time_ms),
        until_ms=None if options.until is None else _parsed("--until", options.until, parse_time_ms),
        offsets=tuple(_parsed("--offsets", text, parse_offsets) for text in options.offsets),
        key=None if options.key is None else os.fsencode(options.key),
    )


def _parsed(argument: str, text: str, parse: Callable[[str], _Parsed]) -> _Parsed:
    """Raises ValueError, whose message begins with the argument."""
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from error


def _described(parser: argparse.ArgumentParser, purpose: str) -> argparse.ArgumentParser:
    """Adds the description and the arguments that all actions have."""
    parser.description = f"{purpose[0].upper()}{purpose[1:]}."
    parser.add_argument("topic", metavar="TOPIC", help="the dead letter topic, such as dlq.orders")
    add_json(parser)
    add_connection(parser)
    filters = parser.add_argument_group("filters", "A letter must pass all of them.")
    filters.add_argument("--source", metavar="TOPIC", help="letters of this source topic")
    filters.add_argument("--group", metavar="ID", help="letters of this share group")
    filters.add_argument("--reason", metavar="TEXT", help="letters whose reason contains this text")
    filters.add_argument("--since", metavar="TIME", help="letters written at this time or later, UTC")
    filters.add_argument("--until", metavar="TIME", help="letters written before this time, UTC")
    filters.add_argument(
        "--offsets",
        metavar="[P:]FIRST[-LAST]",
        action="append",
        default=[],
        help="letters at these offsets of the dead letter topic, in partition P or in all; may be repeated",
    )
    filters.add_argument("--key", metavar="TEXT", help="letters whose record has this key")
    return parser


def _add_waiting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--waiting", action="store_true", help="only letters that were not re-driven yet")


def _add_redrive_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", metavar="TOPIC", help="write to this topic (default: the source topic)")
    parser.add_argument("--rate", type=_rate, metavar="N", help="write at most N records per second")
    parser.add_argument(
        "--batch", type=_positive, metavar="N", help="letters per transaction, 100 by default"
    )
    parser.add_argument("--again", action="store_true", help="also letters that were re-driven before")
    parser.add_argument("--dry-run", action="store_true", help="count the letters, and write nothing")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of records per second, such as 100 or 0.5"
        )
    return rate
