"""`barnabas testing`: runs a broker for tests, whose clock, faults and state the tests control.

The test kit starts it, and sets the token with which it sends its requests. It refuses to run without
a token, so it is never started by mistake in place of `barnabas serve`.
"""

import argparse
import os
from typing import TYPE_CHECKING, Final

from barnabas.cli.commands.configuration import add_listen, add_settings, load_configuration
from barnabas.cli.commands.failures import configure_logging, report_error
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig

TOKEN_VARIABLE: Final = "BARNABAS_TESTING_TOKEN"
TOKEN_LENGTH_MIN: Final = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a broker for tests, whose clock, faults and state a test controls over HTTP, until SIGTERM, "
        f"SIGINT or the end of the standard input. {TOKEN_VARIABLE} has the token of its requests."
    )
    add_listen(parser)
    parser.add_argument(
        "--control",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        help="the address for the requests of the tests; port 0 selects a free port (default: %(default)s)",
    )
    add_settings(parser)
    parser.set_defaults(log_format="console", log_level="warning")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="the lowest level of lines to log (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    from barnabas.protocol.lean_import import import_crc32c_without_metadata, import_kio_without_hypothesis
    from barnabas.runtime.lean_import import import_structlog_without_extras

    import_crc32c_without_metadata()
    import_kio_without_hypothesis()
    import_structlog_without_extras()
    from barnabas.broker.config.errors import ConfigError

    configure_logging(options)
    # The settings of the kit's broker are not those of the machine's environment.
    token = os.environ.pop(TOKEN_VARIABLE, "")
    if len(token) < TOKEN_LENGTH_MIN:
        message = (
            f"{TOKEN_VARIABLE} must have {TOKEN_LENGTH_MIN} characters or more. This command is for "
            "barnabas.testing; barnabas serve runs a broker."
        )
        return report_error(message, ExitCode.USAGE, options.log_format)
    from barnabas.broker.config.listener import ListenerError, parse_address
    from barnabas.broker.config.open_listeners import refuse_open_listeners

    try:
        config = load_configuration(options, options.listen)
        refuse_open_listeners(config)
        host, port = parse_address(options.control)
    except ConfigError as error:
        return report_error(str(error), ExitCode.USAGE, options.log_format)
    except ListenerError as error:
        return report_error(f"--control: {error}.", ExitCode.USAGE, options.log_format)
    return _serve(config, token, (host, port), options.log_format)


def _serve(config: "BrokerConfig", token: str, control: tuple[str, int], log_format: str) -> int:
    from barnabas.runtime.collector import without_collections

    with without_collections():
        from barnabas.broker.network.open_port import PortLost
        from barnabas.cli.process.testing import ControlAddress, InputError, serve_for_tests
        from barnabas.storage.errors import StorageError

    try:
        serve_for_tests(config, token, ControlAddress(*control))
    except InputError as error:
        return report_error(str(error), ExitCode.USAGE, log_format)
    except (OSError, PortLost, StorageError) as error:
        return report_error(f"Cannot serve: {error}", ExitCode.FAILED, log_format)
    return 0
