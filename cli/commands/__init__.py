"""The commands of `barnabas` except those of the pipeline, in one table.

The module of a command is loaded when its parser is used, and a module loads the broker or the client when
its command runs. So `--help` and the health check need neither of them, and kio and structlog can be loaded
before them (`lean_import`). `exit_codes` has the results; each failure prints one line on standard error,
which is a JSON object with `serve --log-format json`.
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
    Command("topics", "barnabas.cli.commands.topics", "list, describe, create, grow and delete topics"),
    Command("groups", "barnabas.cli.commands.groups", "list, describe, reset and delete groups"),
    Command(
        "config", "barnabas.cli.commands.config", "show and change the settings of topics, groups and brokers"
    ),
    Command("produce", "barnabas.cli.commands.produce", "write records from lines or files"),
    Command("consume", "barnabas.cli.commands.consume", "print the records of topics"),
    Command(
        "share",
        "barnabas.cli.commands.share",
        "take records of a share group: accept, release, reject, renew",
    ),
    Command(
        "inspect",
        "barnabas.cli.commands.inspect",
        "show the states, holders and locks of a share group's records",
    ),
    Command("browse", "barnabas.cli.commands.browse", "show a share group's records with their contents"),
    Command("explain", "barnabas.cli.commands.explain", "tell the history of one record of a share group"),
    Command("records", "barnabas.cli.commands.records", "release, archive or dead-letter single records"),
    Command("dlq", "barnabas.cli.commands.dlq", "list, show and re-drive the dead letters of share groups"),
    Command("ranges", "barnabas.cli.commands.ranges", "show a group's committed ranges and its sharers"),
    Command("log", "barnabas.cli.commands.log", "inspect logs on the disk"),
    Command("import", "barnabas.cli.commands.import_kafka", "import the data of an Apache Kafka broker"),
    Command("bench", "barnabas.cli.commands.bench", "measure produce and share consume on a broker"),
    Command("doctor", "barnabas.cli.commands.doctor", "check port, disk, limits and advertised address"),
    Command("completion", "barnabas.cli.commands.completion", "print the completion script of a shell"),
    Command("healthcheck", "barnabas.cli.commands.healthcheck", "check whether a broker serves"),
)


def add_commands(add_parser: Callable[..., argparse.ArgumentParser], only: str | None = None) -> None:
    """Adds the broker's commands, or the one of the name `only`; the parser of each sets `run`.

    `add_parser` must accept `fill`, a function that adds the arguments when the parser is first used.
    """
    for command in COMMANDS:
        if only is None or command.name == only:
            add_parser(command.name, help=command.purpose, fill=command.fill)
