"""`barnabas config`: the settings of topics, groups and brokers (`administration.settings`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, Literal, assert_never

from barnabas.cli.commands.argument_types import setting
from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_DESCRIPTION: Final = """\
Get, set and delete the settings of a topic, a group or a broker of a running cluster. Works with Apache
Kafka, too. A broker's name is its number, or default for the settings of all brokers.
"""
_EXAMPLES: Final = """\
examples:
  barnabas config get topic orders                     the settings that are not defaults
  barnabas config get group workers --all
  barnabas config set group workers share.delivery.count.limit=10
  barnabas config delete topic orders retention.ms     back to the default
"""
_GET: Final = "show settings, each with the place where its value is set"
_SET: Final = "set settings; all of them, or none"
_DELETE: Final = "return settings to their defaults"
_KINDS: Final = ("topic", "group", "broker")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    get = _described(actions.add_parser("get", help=_GET), _GET)
    get.add_argument(
        "names", metavar="SETTING", nargs="*", help="the settings that are not defaults, if none"
    )
    get.add_argument("--all", action="store_true", help="also the settings that have their defaults")
    change = _described(actions.add_parser("set", help=_SET), _SET)
    change.add_argument("settings", metavar="NAME=VALUE", type=setting, nargs="+")
    delete = _described(actions.add_parser("delete", help=_DELETE), _DELETE)
    delete.add_argument("names", metavar="SETTING", nargs="+")


def run(options: argparse.Namespace) -> int:
    return run_client(options, lambda target, printer: _run(options, target, printer))


async def _run(options: argparse.Namespace, target: Target, printer: Printer) -> int:
    from barnabas.cli.administration.settings import change_settings, print_settings, resource_of

    resource = resource_of(options.kind, options.name)
    action: Literal["get", "set", "delete"] = options.action
    match action:
        case "get":
            await print_settings(target, printer, resource, options.names, with_defaults=options.all)
        case "set":
            await change_settings(target, printer, resource, dict(options.settings))
        case "delete":
            await change_settings(target, printer, resource, dict.fromkeys(options.names))
        case _:
            assert_never(action)
    return ExitCode.DONE


def _described(parser: argparse.ArgumentParser, purpose: str) -> argparse.ArgumentParser:
    """Adds the description and the arguments that all actions have."""
    parser.description = f"{purpose[0].upper()}{purpose[1:]}."
    parser.add_argument("kind", metavar="KIND", choices=_KINDS, help=", ".join(_KINDS))
    parser.add_argument("name", metavar="NAME", help="the name of the topic or group, or the broker's number")
    add_json(parser)
    add_connection(parser)
    return parser
