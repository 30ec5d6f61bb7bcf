"""The commands of `barnabas pipeline`.

The module of a command is loaded when the user names that command: `barnabas serve` loads none of them,
`barnabas pipeline export --help` loads one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_DESCRIPTION: Final = """\
Read, check, replay and export the records of a broker, on Spark.
Every command works with Barnabas and with Apache Kafka 4.2 or later; audit reads a broker's data directory.
All commands need pip install -e '.[spark]' in the checkout of Barnabas.
"""


class CommandModule(Protocol):
    """The functions of a command's module."""

    def add_arguments(self, parser: ArgumentParser) -> None: ...
    def run(self, options: Namespace) -> int: ...


class Command(NamedTuple):
    """One command, before its module is loaded."""

    name: str
    module_name: str
    purpose: str

    def load(self) -> CommandModule:
        return cast("CommandModule", import_module(self.module_name))

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Loads the module, which fills the parser of its command."""
        self.load().add_arguments(parser)


PIPELINE: Final = "pipeline"

COMMANDS: Final = (
    Command(
        "ingest", "barnabas.pipeline.ingest.command", "bring topics or a share group's records into a table"
    ),
    Command("compact", "barnabas.pipeline.tables.compact_command", "merge the small files of a table"),
    Command(
        "audit", "barnabas.pipeline.audit.command", "report the outcome of every record of a data directory"
    ),
    Command("replay", "barnabas.pipeline.replay.command", "write records of a table or of topics to a topic"),
    Command(
        "export", "barnabas.pipeline.export.command", "write topics with their groups' state to a directory"
    ),
    Command("restore", "barnabas.pipeline.export.restore_command", "write an exported directory to a broker"),
)


def add_command(add_parser: Callable[..., ArgumentParser]) -> None:
    """Adds `pipeline` with all of its commands. Sets `run`, which returns the exit code.

    The parsers that `add_parser` makes must accept `fill`, a function that adds the arguments at the first
    use of a parser: the module of a command is loaded only then.
    """
    parser = add_parser(
        PIPELINE,
        help="read, check, replay and export the records of a broker, on Spark",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    own = parser.add_subparsers(dest="pipeline_command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        own.add_parser(
            command.name,
            help=command.purpose,
            description=_sentence(command.purpose),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            fill=command.add_arguments,
        )


def run(options: Namespace) -> int:
    """Runs the command that the user named; returns the exit code."""
    from barnabas.pipeline.cli.failures import run_reporting_failures

    (command,) = (command for command in COMMANDS if command.name == options.pipeline_command)
    return run_reporting_failures(command.load().run, options)


def _sentence(purpose: str) -> str:
    return f"{purpose[0].upper()}{purpose[1:]}."
