"""The command line `barnabas` (or `python -m barnabas`): the commands of the broker and of the pipeline.

The broker and the pipeline do not use each other. Each is loaded only when one of its commands runs, so that
`--help`, `--version` and the health check are fast.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from barnabas.cli.commands import COMMANDS
from barnabas.cli.commands import add_commands as add_broker_commands
from barnabas.cli.commands.failures import refuse_command_line
from barnabas.pipeline.commands import PIPELINE
from barnabas.pipeline.commands import add_command as add_pipeline_command

_COMMAND_NAMES = frozenset((*(command.name for command in COMMANDS), PIPELINE))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command in `arguments` (None for the process's own); returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = command_parser(given[0] if given else None)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        from barnabas.cli.commands.completing import complete

        complete(parser)
    options = parser.parse_args(given)
    exit_code: int = options.run(options)
    return exit_code


class _Parser(argparse.ArgumentParser):
    """The parser of every command. `fill` adds its arguments when it is first used.

    An error names the nearest option to an unknown one, as JSON if `--log-format` is json.
    """

    def __init__(
        self, *, fill: Callable[[argparse.ArgumentParser], None] | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self._fill: Callable[[argparse.ArgumentParser], None] | None = fill
        self._given: Sequence[str] = ()

    def parse_known_args(  # type: ignore[override]  # the overloads differ in the namespace's type alone
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        self.fill()
        self._given = sys.argv[1:] if args is None else args
        options, unknown = super().parse_known_args(self._given, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown

    def fill(self) -> None:
        """Add the arguments, at the first call."""
        if self._fill is not None:
            fill, self._fill = self._fill, None
            fill(self)

    def error(self, message: str) -> NoReturn:
        """Ends the process with exit code 2."""
        if self._subparsers is None:  # otherwise the options after the command belong to another parser
            message += "".join(map(self._hint, self._given))
        pairs = zip(self._given, self._given[1:], strict=False)
        if "--log-format=json" in self._given or ("--log-format", "json") in pairs:
            self.exit(refuse_command_line(message))
        super().error(message)

    def _hint(self, argument: str) -> str:
        """The nearest option to an unknown one; empty for any other argument."""
        from barnabas.protocol.nearest_name import nearest_name

        name = argument.partition("=")[0]
        if not name.startswith("--") or any(known.startswith(name) for known in self._option_string_actions):
            return ""
        nearest = nearest_name(name, self._option_string_actions)
        return f"; {name} is unknown, is {nearest} meant?" if nearest else ""


class _PrintVersion(argparse.Action):
    """Reads the version only on request, because reading the metadata takes longer than everything else."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        from barnabas.runtime.running_code import running_code

        print(f"barnabas {version('barnabas')} ({running_code()})")
        parser.exit()


def command_parser(first_argument: str | None = None) -> argparse.ArgumentParser:
    """The parser of the command line. If `first_argument` is a command, the parser has only this command: to
    make those of all commands would take longer than to parse.
    """
    parser = _Parser(
        prog="barnabas", description="A light, durable broker for Kafka share groups: queues for Kafka."
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    only = first_argument if first_argument in _COMMAND_NAMES else None
    add_broker_commands(commands.add_parser, only)
    if only in (None, PIPELINE):
        add_pipeline_command(commands.add_parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
