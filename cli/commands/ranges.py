"""`barnabas ranges`: the ranges of offsets that a group has committed individually, and its sharers.

The client and the report (`group_ranges`) are loaded when the command runs.
"""

import argparse
from typing import TYPE_CHECKING

from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_DESCRIPTION = """\
Print a consumer group's committed offsets, the ranges beyond them that its members have committed
individually, and the members that share each partition, with their ranges of keys' hashes. STABLE is the
last offset up to which everything is committed.
"""
_EXAMPLES = """\
examples:
  barnabas ranges billing                             a group of the broker at 127.0.0.1:9092
  barnabas ranges billing --topic orders --ranges     each range of one topic
  barnabas ranges billing --bootstrap broker:9092 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("group", metavar="GROUP", help="the id of the group")
    parser.add_argument(
        "--topic", metavar="NAME", action="append", default=[], help="only this topic; may be repeated"
    )
    parser.add_argument("--ranges", action="store_true", help="print each range, too")
    add_json(parser)
    add_connection(parser)


def run(options: argparse.Namespace) -> int:
    return run_client(
        options,
        lambda target, printer: _print_ranges(options, target, printer),
        unsupported="Every broker answers barnabas groups describe.",
    )


async def _print_ranges(options: argparse.Namespace, target: "Target", printer: "Printer") -> int:
    from barnabas.cli.group_ranges.query import ask
    from barnabas.cli.group_ranges.report import print_report
    from barnabas.cli.target import NotFoundError

    report = await ask(target, options.group, options.topic)
    if report is None:
        raise NotFoundError(f"There is no group {options.group} with members or offsets")
    print_report(report, printer, with_ranges=options.ranges)
    return ExitCode.DONE
