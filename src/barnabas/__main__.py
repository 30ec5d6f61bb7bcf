"""The command line `barnabas`, which is the same as `python -m barnabas`: its commands, and who runs each.

The broker and the pipeline know nothing of each other; here they meet. Neither is loaded until a command of
theirs runs: `--help`, `--version` and the health check answer at once.
"""

import argparse
import sys
from collections.abc import Sequence

from barnabas.broker.process.cli import add_commands as add_broker_commands
from barnabas.pipeline.cli.commands import add_command as add_pipeline_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that `arguments` (the process's own if None) ask for; answers the exit code."""
    options = _parser().parse_args(arguments)
    exit_code: int = options.run(options)
    return exit_code


class _PrintVersion(argparse.Action):
    """Looks the version up when it is asked for: reading the metadata takes longer than all the rest."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"barnabas {version('barnabas')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="barnabas", description="A light, durable broker for Kafka share groups: queues for Kafka."
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add_broker_commands(commands.add_parser)
    add_pipeline_command(commands.add_parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
