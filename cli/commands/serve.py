"""`barnabas serve`: runs a broker until SIGTERM or SIGINT.

Exit code 1 means that the broker cannot serve (address or data directory in use, damage, a failed listener),
or could not write everything when it stopped. Standard output has one line, once the broker serves; with
`--log-format json` it is a JSON object, too.
"""

import argparse
from typing import TYPE_CHECKING

from barnabas.cli.commands.configuration import add_listen, add_settings, load_configuration
from barnabas.cli.commands.failures import (
    configure_logging,
    report_directory_error,
    report_error,
)
from barnabas.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run a broker until SIGTERM or SIGINT."
    add_listen(parser)
    add_settings(parser)
    parser.add_argument(
        "--allow-kafka-directory",
        action="store_true",
        help="import a data directory of Apache Kafka in place; Kafka cannot use it after that (default: "
        "such a directory is refused)",
    )
    parser.add_argument(
        "--log-format",
        choices=("console", "json"),
        default="console",
        help="text, or one JSON object per line, on both outputs (default: %(default)s)",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="the lowest level of lines to log (default: %(default)s)",
    )
    parser.add_argument(
        "--ready-file",
        metavar="PATH",
        help="a file that contains the address, and exists while the broker serves (default: none)",
    )


def run(options: argparse.Namespace) -> int:
    from barnabas.protocol.lean_import import import_crc32c_without_metadata, import_kio_without_hypothesis
    from barnabas.runtime.collector import without_collections
    from barnabas.runtime.lean_import import import_structlog_without_extras

    with without_collections():
        import_crc32c_without_metadata()
        import_kio_without_hypothesis()
        import_structlog_without_extras()
        from barnabas.broker.config.errors import ConfigError
        from barnabas.broker.config.open_listeners import refuse_open_listeners
        from barnabas.cli.process.directory_errors import reason
        from barnabas.cli.process.ready_file import check_ready_file, remove_old_ready_file
        from barnabas.runtime.logging import get_logger

    configure_logging(options)
    if options.ready_file is not None:
        try:
            check_ready_file(options.ready_file)
        except OSError as error:
            message = f"--ready-file cannot be written: {reason(error)}."
            return report_error(message, ExitCode.FAILED, options.log_format)
    try:
        config = load_configuration(options, options.listen)
        refuse_open_listeners(config)
    except ConfigError as error:
        remove_old_ready_file(options.ready_file)
        return report_error(str(error), ExitCode.USAGE, options.log_format)
    for warning in config.warnings:
        get_logger("config").warning(warning)
    return _serve(config, options)


def _serve(config: "BrokerConfig", options: argparse.Namespace) -> int:
    from barnabas.runtime.collector import without_collections

    with without_collections():
        from barnabas.broker.config.errors import ConfigError
        from barnabas.broker.network.open_port import PortLost
        from barnabas.cli.process.serving import ServeOptions, StopFailed, serve
        from barnabas.storage.errors import StorageError

    try:
        serve(config, ServeOptions(options.log_format, options.ready_file, options.allow_kafka_directory))
    except ConfigError as error:
        return report_error(str(error), ExitCode.USAGE, options.log_format)
    except (PortLost, StorageError, StopFailed) as error:
        return report_error(str(error), ExitCode.FAILED, options.log_format)
    except OSError as error:
        return report_directory_error(error, config.log_directory, "Cannot serve", options.log_format)
    return 0
