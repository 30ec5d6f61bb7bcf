"""`barnabas doctor`: checks this machine and a broker, and prints remedies (`checks`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from barnabas.cli.commands.configuration import add_listen, add_settings, load_configuration
from barnabas.cli.commands.connecting import add_connection, add_json, run_client
from barnabas.cli.commands.failures import report_error
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.cli.printing import Printer
    from barnabas.cli.target import Target

_DESCRIPTION: Final = """\
Check the port, data directory, disk, limits, memory and clock of this machine, and the addresses that a
broker gives to its clients. Use the same options and environment as for serve; the broker may run, or not.
With --client, only the broker is checked, from any machine; it may be Apache Kafka.
"""
_EXAMPLES: Final = """\
examples:
  barnabas doctor --data-dir /var/lib/barnabas/data
  barnabas doctor --client --bootstrap broker.example.com:9092

The exit code is 1 if a check has failed; warnings do not count.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--client", action="store_true", help="check only the broker at --bootstrap")
    add_listen(parser)
    add_settings(parser)
    add_json(parser)
    add_connection(parser)


def run(options: argparse.Namespace) -> int:
    if options.client:
        return run_client(options, lambda target, printer: _examine(target, printer, None, None))
    from barnabas.protocol.lean_import import import_kio_without_hypothesis

    import_kio_without_hypothesis()
    from barnabas.broker.config.errors import ConfigError

    try:
        config = load_configuration(options, options.listen)
    except ConfigError as error:
        return report_error(str(error), ExitCode.USAGE)
    host, port = config.listeners[0].host, config.listeners[0].port
    if options.bootstrap is None and port != 0:
        options.bootstrap = f"{_reachable(host)}:{port}"
    return run_client(
        options, lambda target, printer: _examine(target, printer, (host, port), config.log_directory)
    )


async def _examine(
    target: Target, printer: Printer, listener: tuple[str, int] | None, directory: str | None
) -> int:
    from barnabas.cli.checks.report import run_checks

    is_well = await run_checks(target, printer, listener, directory)
    return ExitCode.DONE if is_well else ExitCode.FAILED


def _reachable(host: str) -> str:
    """The address by which this machine reaches a listener: 0.0.0.0 and :: listen on all addresses."""
    if host in {"", "0.0.0.0"}:
        return "127.0.0.1"
    address = "::1" if host == "::" else host
    return f"[{address}]" if ":" in address else address
