"""`barnabas records`: an administrator's changes of single records of a share group (`share_records`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from barnabas.cli.commands.argument_types import number_from, offset_range
from barnabas.cli.commands.connecting import ONLY_BARNABAS, add_connection, add_json, run_client
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_DESCRIPTION: Final = """\
Change single records of a share group from outside. All records of a range change, or none. Only a Barnabas
broker can do it.
"""
_EXAMPLES: Final = """\
examples:
  barnabas records release workers orders 0 17        the lock on record 17 ends
  barnabas records archive workers orders 0 20-24     five records are never delivered again
"""
_CHANGES: Final = {
    "release": "end the locks on records, so that any member can get them",
    "archive": "never deliver records again",
    "dead-letter": "send records to the group's dead-letter topic",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, purpose in _CHANGES.items():
        change = actions.add_parser(name, help=purpose)
        change.description = f"{purpose[0].upper()}{purpose[1:]}."
        change.add_argument("group", metavar="GROUP", help="the id of the share group")
        change.add_argument("topic", metavar="TOPIC")
        change.add_argument("partition", metavar="PARTITION", type=number_from(0))
        change.add_argument(
            "offsets", metavar="OFFSET[-OFFSET]", type=offset_range, help="at most 10,000 offsets"
        )
        add_json(change)
        add_connection(change)


def run(options: argparse.Namespace) -> int:
    return run_client(
        options, lambda target, printer: _change(options, target, printer), unsupported=ONLY_BARNABAS
    )


async def _change(options: argparse.Namespace, target: Target, printer: Printer) -> int:
    from barnabas.cli.share_records.changing import Change, change

    wanted = Change(options.action, options.topic, options.partition, *options.offsets)
    await change(target, options.group, wanted, printer)
    return ExitCode.DONE
