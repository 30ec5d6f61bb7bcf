"""`barnabas explain`: the history of one record of a share group (`record_history`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from barnabas.cli.commands.argument_types import number_from
from barnabas.cli.commands.connecting import ONLY_BARNABAS, add_connection, add_json, run_client
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_DESCRIPTION: Final = """\
Tell the history of one record for a share group: each release, acknowledgement, expired lock and dead letter
that its log has recorded, and its state now. Only Barnabas keeps this history.
"""
_EXAMPLES: Final = """\
examples:
  barnabas explain workers orders 0 17
  barnabas explain workers orders 0 17 --data-dir ./copy-of-data   without a broker
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("group", metavar="GROUP", help="the id of the share group")
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("partition", metavar="PARTITION", type=number_from(0))
    parser.add_argument("offset", metavar="OFFSET", type=number_from(0))
    parser.add_argument(
        "--data-dir",
        metavar="PATH",
        help="read this data directory, and ask no broker",
    )
    add_json(parser)
    add_connection(parser)


def run(options: argparse.Namespace) -> int:
    return run_client(
        options, lambda target, printer: _explain(options, target, printer), unsupported=ONLY_BARNABAS
    )


async def _explain(options: argparse.Namespace, target: Target, printer: Printer) -> int:
    from barnabas.cli.record_history.explanation import Subject, explain, explain_from_directory

    subject = Subject(options.group, options.topic, options.partition, options.offset)
    if options.data_dir is None:
        await explain(target, printer, subject)
    else:
        explain_from_directory(printer, subject, options.data_dir)
    return ExitCode.DONE
