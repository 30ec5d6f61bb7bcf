"""`barnabas bench`: measures produce and share consume on a running broker (`measuring`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from barnabas.cli.commands.argument_types import number_from
from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_DESCRIPTION: Final = """\
Measure how fast a broker stores records and delivers them to share consumers, and the delay of single
records. Works with Apache Kafka 4.2 or later, too. The measurement uses topics and groups of its own, and
deletes them. The client is one Python process: if it is busy all the time, the broker can do more than the
figure says.
"""
_RECORDS: Final = 50_000
_BYTES: Final = 100
_PARTITIONS: Final = 4
_CONSUMERS: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--records", type=number_from(1_000), metavar="N", default=_RECORDS, help=f"{_RECORDS:,} by default"
    )
    parser.add_argument(
        "--size",
        type=number_from(1),
        metavar="BYTES",
        default=_BYTES,
        help=f"the size of each record's value, {_BYTES} by default",
    )
    parser.add_argument(
        "--partitions",
        type=number_from(1),
        metavar="N",
        default=_PARTITIONS,
        help=f"{_PARTITIONS} by default",
    )
    parser.add_argument(
        "--consumers", type=number_from(1), metavar="N", default=_CONSUMERS, help=f"{_CONSUMERS} by default"
    )
    add_json(parser)
    add_connection(parser)


def run(options: argparse.Namespace) -> int:
    return run_client(options, lambda target, printer: _bench(options, target, printer))


async def _bench(options: argparse.Namespace, target: Target, printer: Printer) -> int:
    from barnabas.cli.measuring.workload import Size, bench

    size = Size(options.records, options.size, options.partitions, options.consumers)
    await bench(target, printer, size)
    return ExitCode.DONE
