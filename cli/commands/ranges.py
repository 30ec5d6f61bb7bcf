"""`barnabas ranges`: the ranges of offsets that a group has committed individually, and its sharers.

The client and the report (`group_ranges`) are loaded when the command runs.
"""

import argparse

from barnabas.cli.commands.failures import EXIT_FAILED, EXIT_WRONG_CONFIGURATION, complain

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
        "--bootstrap",
        metavar="HOST:PORT,...",
        default="127.0.0.1:9092",
        help="brokers to ask, 127.0.0.1:9092 by default",
    )
    parser.add_argument(
        "--topic", metavar="NAME", action="append", default=[], help="only this topic; may be repeated"
    )
    parser.add_argument("--ranges", action="store_true", help="print each range, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line, with all ranges")


def run(options: argparse.Namespace) -> int:
    from barnabas.protocol.lean_import import import_kio_without_hypothesis

    import_kio_without_hypothesis()
    from asyncio import run as run_in_loop

    from barnabas.cli.group_ranges.asking import ask
    from barnabas.cli.group_ranges.report import print_report
    from barnabas.cli.printing import Printer
    from barnabas.client.address import parse_bootstrap
    from barnabas.client.errors import ConsumerError, MisuseError, UnsupportedBrokerError

    try:
        addresses = parse_bootstrap(options.bootstrap)
    except MisuseError as error:
        return complain(f"--bootstrap: {error}", EXIT_WRONG_CONFIGURATION)
    try:
        report = run_in_loop(ask(addresses, options.group, options.topic))
    except UnsupportedBrokerError as error:
        return complain(f"{error.message}. Every broker answers kafka-consumer-groups.", EXIT_FAILED)
    except ConsumerError as error:
        return complain(f"{str(error).removesuffix('.')}.", EXIT_FAILED)
    if report is None:
        return complain(f"There is no group {options.group} with members or offsets.", EXIT_FAILED)
    print_report(report, Printer(as_json=options.json), with_ranges=options.ranges)
    return 0
