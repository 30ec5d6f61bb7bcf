"""`barnabas share`: takes records of a share group, by hand or in a script (`record_streams`)."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from barnabas.cli.commands.argument_types import duration_ms, number_from
from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.commands.failures import report_error
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.record_streams.sharing import Reading
    from barnabas.cli.target import Target

_DESCRIPTION: Final = """\
Take records as a member of a share group. At a terminal, a key decides about each record: accept, release,
reject, or renew its lock. In a script, a policy decides about all of them: --accept, --release or --reject.
--json needs a policy, too. Works with Apache Kafka 4.2 or later.
"""
_EXAMPLES: Final = """\
examples:
  barnabas share workers orders                        look at records one by one, and decide
  barnabas share workers orders --accept --max 100     print a hundred records, and accept them
  barnabas share workers orders --reject --idle 5s --json

The exit code is 6 if no record was acknowledged.
"""
_POLICIES: Final = {
    "accept": "accept all records: they are done",
    "release": "release all records: they are delivered again",
    "reject": "reject all records: they are never delivered again",
}
_MS_PER_SECOND: Final = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("group", metavar="GROUP", help="the id of the share group")
    parser.add_argument("topics", metavar="TOPIC", nargs="+")
    policies = parser.add_mutually_exclusive_group()
    for name, purpose in _POLICIES.items():
        policies.add_argument(
            f"--{name}", action="store_const", const=name.upper(), dest="policy", help=purpose
        )
    parser.add_argument("--max", type=number_from(1), metavar="N", help="with a policy: end after N records")
    parser.add_argument(
        "--idle",
        type=duration_ms,
        metavar="DURATION",
        help="with a policy: end after this time without a record",
    )
    parser.add_argument(
        "--lock",
        type=duration_ms,
        metavar="DURATION",
        help="the duration of locks, from 1s on; only Barnabas grants it (default: the group's)",
    )
    parser.add_argument(
        "--details", action="store_true", help="print partition, offset, deliveries, key and headers, too"
    )
    add_json(parser)
    add_connection(parser)


def run(options: argparse.Namespace) -> int:
    if options.policy is None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return report_error(
                "Without a terminal, the records need a policy: --accept, --release or --reject.",
                ExitCode.USAGE,
            )
        if options.json or options.max or options.idle:
            return report_error(
                "--json, --max and --idle need --accept, --release or --reject.", ExitCode.USAGE
            )
    return run_client(options, lambda target, printer: _share(options, target, printer))


async def _share(options: argparse.Namespace, target: Target, printer: Printer) -> int:
    from barnabas.cli.record_streams.sharing import Reading

    reading = Reading(options.group, options.topics, options.lock)
    if options.policy is None:
        from barnabas.cli.record_streams.interactive import decide

        await decide(target, printer, sys.stdin, reading)
        return ExitCode.DONE
    return await _apply_policy(options, target, printer, reading)


async def _apply_policy(
    options: argparse.Namespace, target: Target, printer: Printer, reading: Reading
) -> int:
    from barnabas.cli.record_streams.consuming import Until
    from barnabas.cli.record_streams.record_output import RecordOutput
    from barnabas.cli.record_streams.sharing import Verdict, share

    until = Until(options.max, None if options.idle is None else options.idle / _MS_PER_SECOND)
    output = RecordOutput(printer, options.details)
    count = await share(target, output, reading, Verdict[options.policy], until)
    return ExitCode.DONE if count else ExitCode.NOT_FOUND
