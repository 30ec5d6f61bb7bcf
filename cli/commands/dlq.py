"""`barnabas dlq`: lists, shows and re-drives the dead letters of share groups (`dead_letters`).

Exit codes: 0 if all selected letters were re-driven, now or before, 1 after a failure, 2 if the command line
is wrong, 3 if some letters could not be re-driven, 130 after SIGINT or SIGTERM. The client is loaded when the
command runs.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.cli.commands.failures import EXIT_FAILED, EXIT_WRONG_CONFIGURATION, complain

if TYPE_CHECKING:
    from barnabas.cli.dead_letters.running import Place
    from barnabas.cli.dead_letters.selection import Selection
    from barnabas.cli.printing import Printer
    from barnabas.client.security import Security

EXIT_NOT_ALL: Final = 3
EXIT_STOPPED: Final = 130

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

exit codes of redrive: 0 all selected letters are re-driven, 1 failed, 2 wrong command line, 3 some letters
could not be re-driven, 130 stopped by Ctrl-C or SIGTERM; the same command goes on after each of them.
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
    from barnabas.protocol.lean_import import import_kio_without_hypothesis

    import_kio_without_hypothesis()
    from barnabas.cli.printing import Printer
    from barnabas.client.errors import ConsumerError

    try:
        place, selection = _place(options), _selection(options)
    except ValueError as error:
        return complain(f"{error}.", EXIT_WRONG_CONFIGURATION)
    # The client logs errors that it also raises; each is printed once.
    logging.getLogger("barnabas.client").addHandler(logging.NullHandler())
    try:
        return _ACTIONS[options.action](options, place, selection, Printer(as_json=options.json))
    except ConsumerError as error:
        return complain(f"{str(error).removesuffix('.')}.", EXIT_FAILED)
    except KeyboardInterrupt:
        return complain("Stopped.", EXIT_STOPPED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of the output ended
        return complain("Stopped, because the reader of the output has ended.", EXIT_STOPPED)


def _list(options: argparse.Namespace, place: Place, selection: Selection, printer: Printer) -> int:
    from asyncio import run as run_in_loop

    from barnabas.cli.dead_letters.running import print_counts

    run_in_loop(print_counts(place, selection, printer, is_waiting=options.waiting))
    return 0


def _show(options: argparse.Namespace, place: Place, selection: Selection, printer: Printer) -> int:
    from asyncio import run as run_in_loop

    from barnabas.cli.dead_letters.running import print_letters

    run_in_loop(print_letters(place, selection, printer, options.limit, is_waiting=options.waiting))
    return 0


def _redrive(options: argparse.Namespace, place: Place, selection: Selection, printer: Printer) -> int:
    from asyncio import run as run_in_loop

    from barnabas.cli.dead_letters.redriving import BATCH_LETTERS, BATCH_LETTERS_MAX, Plan
    from barnabas.cli.dead_letters.running import redrive

    batch_letters = BATCH_LETTERS if options.batch is None else options.batch
    if batch_letters > BATCH_LETTERS_MAX:
        return complain(f"--batch is at most {BATCH_LETTERS_MAX}.", EXIT_WRONG_CONFIGURATION)
    if options.to == place.topic_name:
        return complain("--to is the dead letter topic itself; name another one.", EXIT_WRONG_CONFIGURATION)
    plan = Plan(selection, options.to, batch_letters, options.again)
    ending = run_in_loop(redrive(place, plan, printer, options.rate, dry_run=options.dry_run))
    if ending.is_stopped:
        return EXIT_STOPPED
    return EXIT_NOT_ALL if ending.tally.not_redriven else 0


_ACTIONS: Final = {"list": _list, "show": _show, "redrive": _redrive}


def _place(options: argparse.Namespace) -> Place:
    """Raises ValueError, whose message begins with the argument."""
    from barnabas.cli.dead_letters.running import Place
    from barnabas.client.address import parse_bootstrap
    from barnabas.client.errors import MisuseError
    from barnabas.client.security import PLAINTEXT

    try:
        addresses = parse_bootstrap(options.bootstrap)
    except MisuseError as error:
        raise ValueError(f"--bootstrap: {str(error).removesuffix('.')}") from error
    return Place(
        addresses, PLAINTEXT if options.security is None else _security(options.security), options.topic
    )


def _security(path: str) -> Security:
    """The settings in a file. Raises ValueError, whose message begins with the argument."""
    from barnabas.broker.config.errors import ConfigError
    from barnabas.broker.config.sources import read_file
    from barnabas.client.errors import SecurityOptionError
    from barnabas.client.security import parse_security

    try:
        return parse_security(read_file(path))
    except (ConfigError, SecurityOptionError) as error:
        raise ValueError(f"--security: {str(error).removesuffix('.')}") from error


def _selection(options: argparse.Namespace) -> Selection:
    """Raises ValueError, whose message begins with the argument."""
    from barnabas.cli.dead_letters.selection import Selection, parse_offsets, parse_time_ms

    return Selection(
        source_topic=options.source,
        group=options.group,
        reason=options.reason,
        since_ms=None if options.since is None else _parsed("--since", options.since, parse_time_ms),
        until_ms=None if options.until is None else _parsed("--until", options.until, parse_time_ms),
        offsets=tuple(_parsed("--offsets", one, parse_offsets) for one in options.offsets),
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
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT,...",
        default="127.0.0.1:9092",
        help="brokers to ask, 127.0.0.1:9092 by default",
    )
    parser.add_argument(
        "--security",
        metavar="FILE",
        help="settings of TLS and SASL, such as security.protocol=SASL_SSL, one on each line",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
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
