"""`barnabas topics`: lists, describes, creates, grows and deletes topics (`administration.topics`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, Literal, assert_never

from barnabas.cli.commands.argument_types import number_from, setting
from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_DESCRIPTION: Final = "List, describe, create, grow and delete topics. Works with Apache Kafka, too."
_EXAMPLES: Final = """\
examples:
  barnabas topics list
  barnabas topics create orders --partitions 4 --set retention.ms=86400000
  barnabas topics grow orders 8
"""
_LIST: Final = "list the topics with the numbers of their partitions and offsets"
_DESCRIBE: Final = "show the partitions and the own settings of topics"
_CREATE: Final = "create a topic"
_GROW: Final = "add partitions to a topic"
_DELETE: Final = "delete topics with their records"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = _described(actions.add_parser("list", help=_LIST), _LIST)
    listing.add_argument("--internal", action="store_true", help="also the broker's own topics")
    describe = _described(actions.add_parser("describe", help=_DESCRIBE), _DESCRIBE)
    describe.add_argument("topics", metavar="TOPIC", nargs="+")
    _add_create_arguments(_described(actions.add_parser("create", help=_CREATE), _CREATE))
    grow = _described(actions.add_parser("grow", help=_GROW), _GROW)
    grow.add_argument("topic", metavar="TOPIC")
    grow.add_argument("partitions", metavar="PARTITIONS", type=number_from(1), help="the new number in all")
    delete = _described(actions.add_parser("delete", help=_DELETE), _DELETE)
    delete.add_argument("topics", metavar="TOPIC", nargs="+")


def run(options: argparse.Namespace) -> int:
    return run_client(options, lambda target, printer: _run(options, target, printer))


async def _run(options: argparse.Namespace, target: Target, printer: Printer) -> int:
    from barnabas.cli.administration import topics
    from barnabas.client.admin.topics import BROKERS_DEFAULT

    action: Literal["list", "describe", "create", "grow", "delete"] = options.action
    match action:
        case "list":
            await topics.list_topics(target, printer, with_internal=options.internal)
        case "describe":
            await topics.describe(target, printer, options.topics)
        case "create":
            await topics.create(
                target,
                printer,
                options.topic,
                partition_count=options.partitions or BROKERS_DEFAULT,
                replication_factor=options.replicas or BROKERS_DEFAULT,
                settings=dict(options.settings),
                dry_run=options.dry_run,
                if_missing=options.if_missing,
            )
        case "grow":
            await topics.grow(target, printer, options.topic, options.partitions)
        case "delete":
            await topics.delete(target, printer, options.topics)
        case _:
            assert_never(action)
    return ExitCode.DONE


def _described(parser: argparse.ArgumentParser, purpose: str) -> argparse.ArgumentParser:
    """Adds the description and the arguments that all actions have."""
    parser.description = f"{purpose[0].upper()}{purpose[1:]}."
    add_json(parser)
    add_connection(parser)
    return parser


def _add_create_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--partitions", type=number_from(1), metavar="N", help="the broker's default (num.partitions)"
    )
    parser.add_argument(
        "--replicas", type=number_from(1), metavar="N", help="the broker's default; 1 with Barnabas"
    )
    parser.add_argument(
        "--set",
        type=setting,
        metavar="NAME=VALUE",
        dest="settings",
        action="append",
        default=[],
        help="a setting of the topic; may be repeated",
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--dry-run", action="store_true", help="check the request, and create nothing")
    only.add_argument(
        "--if-missing",
        action="store_true",
        help="leave an existing topic unchanged; refused if it has another number of partitions than N",
    )
