"""`barnabas import`: copies the data directory of a stopped Apache Kafka into a new one (`kafka_import`)."""

import argparse
import sys
from pathlib import Path

from barnabas.cli.commands.configuration import add_settings, load_configuration
from barnabas.cli.commands.failures import (
    report_directory_error,
    report_error,
)
from barnabas.cli.exit_codes import ExitCode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Create a data directory from that of a stopped Apache Kafka, which is not changed."
    parser.add_argument("--from", metavar="PATH", dest="source", required=True, help="Kafka's data directory")
    parser.add_argument(
        "--link",
        action="store_true",
        help="hard-link old segments instead of copying them, where that is possible",
    )
    add_settings(parser)


def run(options: argparse.Namespace) -> int:
    from barnabas.protocol.lean_import import import_kio_without_hypothesis
    from barnabas.runtime.lean_import import import_structlog_without_extras

    import_kio_without_hypothesis()
    import_structlog_without_extras()
    from barnabas.broker.config.errors import ConfigError
    from barnabas.cli.kafka_import.importing import import_directory
    from barnabas.protocol.counted import counted
    from barnabas.runtime.clock import SystemClock
    from barnabas.runtime.logging import configure_logging
    from barnabas.storage.errors import StorageError

    configure_logging("console", "warning")  # without it structlog would write to standard output
    try:
        config = load_configuration(options, None)
    except ConfigError as error:
        return report_error(str(error), ExitCode.USAGE)
    source, target = Path(options.source), Path(config.log_directory)
    try:
        imported = import_directory(source, target, config, SystemClock().wall_ms, link=options.link)
    except StorageError as error:
        return report_error(str(error), ExitCode.FAILED)
    except OSError as error:
        return report_directory_error(error, config.log_directory, "Cannot import")
    for left_out in imported.left_out:
        print(f"barnabas: left out: {left_out}", file=sys.stderr)
    if imported.scram_user_count:
        print(
            f"barnabas: SCRAM users were imported ({imported.scram_user_count}). Clients are asked for a "
            "password by listeners with SASL.",
            file=sys.stderr,
        )
    print(
        f"barnabas imported {counted(imported.topic_count, 'topic')}, "
        f"{counted(imported.partition_count, 'partition')}, {counted(imported.group_count, 'group')} "
        f"from {source} into {target}"
    )
    return 0
