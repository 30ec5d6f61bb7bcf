"""`barnabas share`: the records of a share group, with their states, and changes of single ones.

The client and the report (`share_records`) are loaded when the command runs.
"""

import argparse
import re
from collections.abc import Callable
from typing import Final

from barnabas.cli.commands.failures import EXIT_FAILED, EXIT_WRONG_CONFIGURATION, complain

_DESCRIPTION = """\
Inspect the records of a share group, and change single ones. Only a Barnabas broker can answer.
"""
_EXAMPLES = """\
examples:
  barnabas share inspect workers                           all partitions that the group reads
  barnabas share inspect workers orders:0 --state acquired
  barnabas share inspect workers orders --records --json   each record, with its content
  barnabas share release workers orders 0 17               the lock on record 17 ends
  barnabas share archive workers orders 0 20-24            five records are never delivered again
"""
_INSPECT: Final = "show each record's state, holder, lock, delivery count and last change"
_CHANGES: Final = {
    "release": "end the locks on records, so that any member can get them",
    "archive": "never deliver records again",
    "dead-letter": "send records to the group's dead-letter topic",
}
_STATES: Final = ("passed", "new", "available", "acquired", "acknowledged", "archiving", "archived")
_LIMIT: Final = 100
_PARTITION = re.compile(r"([^:]+)(?::(\d+))?")
_OFFSETS = re.compile(r"(\d+)(?:-(\d+))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    inspect = _described(actions.add_parser("inspect", help=_INSPECT), _INSPECT)
    inspect.add_argument(
        "partition", metavar="TOPIC[:PARTITION]", nargs="?", type=_topic_partition, help="all by default"
    )
    inspect.add_argument("--from-offset", type=_offset, metavar="N", help="the start offset by default")
    inspect.add_argument("--to-offset", type=_offset, metavar="N", help="the end by default")
    inspect.add_argument(
        "--state",
        choices=_STATES,
        action="append",
        default=[],
        help="only records in this state; may be repeated",
    )
    inspect.add_argument(
        "--limit",
        type=_positive,
        metavar="N",
        default=_LIMIT,
        help=f"the most ranges, or records, of each partition, {_LIMIT} by default",
    )
    inspect.add_argument("--records", action="store_true", help="each record with its key and value")
    for name, purpose in _CHANGES.items():
        change = _described(actions.add_parser(name, help=purpose), purpose)
        change.add_argument("topic", metavar="TOPIC")
        change.add_argument("partition", metavar="PARTITION", type=_offset)
        change.add_argument(
            "offsets", metavar="OFFSET[-OFFSET]", type=_offset_range, help="at most 10,000 offsets"
        )


def _described(parser: argparse.ArgumentParser, purpose: str) -> argparse.ArgumentParser:
    """Adds the description and the arguments that all actions have."""
    parser.description = f"{purpose[0].upper()}{purpose[1:]}."
    parser.add_argument("group", metavar="GROUP", help="the id of the share group")
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT,...",
        default="127.0.0.1:9092",
        help="brokers to ask, 127.0.0.1:9092 by default",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    return parser


def run(options: argparse.Namespace) -> int:
    from barnabas.protocol.lean_import import import_kio_without_hypothesis

    import_kio_without_hypothesis()
    from barnabas.client.address import parse_bootstrap
    from barnabas.client.errors import BrokerError, ConsumerError, MisuseError, UnsupportedBrokerError

    try:
        parse_bootstrap(options.bootstrap)
    except MisuseError as error:
        return complain(f"--bootstrap: {error}", EXIT_WRONG_CONFIGURATION)
    try:
        return _inspect(options) if options.action == "inspect" else _change(options)
    except UnsupportedBrokerError as error:
        return complain(f"{error.message}. Only Barnabas has this API.", EXIT_FAILED)
    except BrokerError as error:
        return complain(_sentence(error.message or error.code.name), EXIT_FAILED)
    except ConsumerError as error:
        return complain(_sentence(str(error)), EXIT_FAILED)


def _inspect(options: argparse.Namespace) -> int:
    from asyncio import run as run_in_loop

    from barnabas.cli.printing import Printer
    from barnabas.cli.share_records.inspecting import Wanted, inspect
    from barnabas.protocol.record_inspection import DescribedState

    topic, partition = options.partition or (None, None)
    wanted = Wanted(
        topic,
        partition,
        options.from_offset,
        options.to_offset,
        [DescribedState[name.upper()] for name in options.state],
        options.limit,
        options.records,
    )
    printer = Printer(as_json=options.json)
    if run_in_loop(inspect(options.bootstrap, options.group, wanted, printer)):
        return 0
    where = "any topic" if topic is None else f"the topic {topic}"
    return complain(f"There is no share group {options.group} that reads {where}.", EXIT_FAILED)


def _change(options: argparse.Namespace) -> int:
    from asyncio import run as run_in_loop

    from barnabas.cli.printing import Printer
    from barnabas.cli.share_records.changing import Change, change

    wanted = Change(options.action, options.topic, options.partition, *options.offsets)
    run_in_loop(change(options.bootstrap, options.group, wanted, Printer(as_json=options.json)))
    return 0


def _sentence(message: str) -> str:
    return f"{message.removesuffix('.')}."


def _matched(pattern: re.Pattern[str], text: str, expected: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return found


def _topic_partition(text: str) -> tuple[str, int | None]:
    topic, partition = _matched(_PARTITION, text, "TOPIC or TOPIC:PARTITION, such as orders:0").groups()
    return topic, None if partition is None else int(partition)


def _offset_range(text: str) -> tuple[int, int]:
    first, last = _matched(_OFFSETS, text, "an offset or a range of offsets, such as 17 or 20-24").groups()
    return int(first), int(first if last is None else last)


def _number(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() else least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} on")
        return number

    return parse


_offset, _positive = _number(0), _number(1)
