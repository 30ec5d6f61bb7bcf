"""`barnabas healthcheck`: exit code 0 if a broker answers and can write to its data directory.

The check loads no part of the broker if it gets an address, because it runs again and again, each time in a
new process.
"""

import argparse

from barnabas.cli.commands.configuration import add_listen, add_settings, load_configuration
from barnabas.cli.commands.failures import report_error
from barnabas.cli.exit_codes import ExitCode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Exit with 0 if a broker answers at ADDRESS and can write to its data directory, else with 1. "
        "Without ADDRESS the check uses the configuration's first listener in plain text, or else its first "
        "one: use the same options and environment as for `serve`."
    )
    parser.add_argument("address", metavar="ADDRESS", nargs="?", help="HOST:PORT")
    add_listen(parser)
    add_settings(parser)


def run(options: argparse.Namespace) -> int:
    from barnabas.broker.config.errors import ConfigError
    from barnabas.broker.config.listener import ListenerError, parse_address
    from barnabas.cli.process.health import check_health

    try:
        if options.address is None:
            host, port, protection = _listener(options)
        else:
            (host, port), protection = parse_address(options.address), {}
    except (ConfigError, ListenerError) as error:
        return report_error(f"{str(error).removesuffix('.')}.", ExitCode.USAGE)
    try:
        failed = check_health(host, port, **protection)
    except OSError as error:
        return report_error(
            f"No broker answers at {host}:{port} ({error.strerror or error}). Start it, or name its address.",
            ExitCode.FAILED,
        )
    if failed:
        return report_error(
            f"The broker at {host}:{port} cannot write to {', '.join(failed)}: "
            "the disk is full or fails. The broker's log has the cause.",
            ExitCode.FAILED,
        )
    return 0


def _listener(options: argparse.Namespace) -> tuple[str, int, dict[str, bool]]:
    """The address of the listener to check, and how it is protected (`check_health`). Raises ConfigError."""
    from barnabas.broker.config.errors import ConfigError

    config = load_configuration(options, options.listen)
    plain = (listener for listener in config.listeners if not listener.protocol.is_protected)
    listener = next(plain, config.listeners[0])
    if listener.port == 0:
        raise ConfigError(
            "With this configuration the system selects the port: give the healthcheck its ADDRESS."
        )
    protocol = listener.protocol
    asks = protocol.uses_tls and config.listener_value(listener.name, "ssl.client.auth") == "required"
    protection = {
        "has_tls": protocol.uses_tls,
        "asks_for_certificate": asks and not protocol.uses_sasl,
        "has_sasl": protocol.uses_sasl,
    }
    return listener.host, listener.port, protection
