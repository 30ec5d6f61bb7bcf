"""The broker's commands: `barnabas serve`, `import`, `log`, `ranges`, `dlq`, `share` and `healthcheck`.

Exit codes: 0 after an orderly end, 1 if the command failed, 2 if the command line or the configuration is
wrong. Each failure prints one line on standard error; with `serve --log-format json` it is a JSON object.

The module of a command is loaded when its parser is used, and a module loads the broker when its command
runs. So `--help` and the health check need no part of the broker, and kio can be loaded before it
(`lean_import`).
"""

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Final, NamedTuple, Protocol, cast


class CommandModule(Protocol):
    """The functions of a command's module; `run` returns the exit code."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, options: argparse.Namespace) -> int: ...


class Command(NamedTuple):
    """One command, before its module is loaded."""

    name: str
    module_name: str
    purpose: str

    def fill(self, parser: argparse.ArgumentParser) -> None:
        """Load the module, and add its arguments and `run` to the command's parser."""
        module = cast("CommandModule", import_module(self.module_name))
        module.add_arguments(parser)
        parser.set_defaults(run=module.run)


COMMANDS: Final = (
    Command("serve", "barnabas.cli.commands.serve", "run a broker"),
    Command("testing", "barnabas.cli.commands.testing", "run a broker for tests, which they control"),
    Command("import", "barnabas.cli.commands.import_kafka", "import the data of an Apache Kafka broker"),
    Command("log", "barnabas.cli.commands.log", "inspect logs on the disk"),
    Command("ranges", "barnabas.cli.commands.ranges", "show a group's committed ranges and its sharers"),
    Command("dlq", "barnabas.cli.commands.dlq", "list, show and re-drive the dead letters of share groups"),
    Command("share", "barnabas.cli.commands.share", "inspect and change the records of a share group"),
    Command("healthcheck", "barnabas.cli.commands.healthcheck", "check whether a broker serves"),
)


def add_commands(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the broker's commands; the parser of each sets `run`.

    `add_parser` must accept `fill`, a function that adds the arguments when the parser is first used.
    """
    for command in COMMANDS:
        add_parser(command.name, help=command.purpose, fill=command.fill)
