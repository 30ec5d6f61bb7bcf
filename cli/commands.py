"""The broker's commands: `barnabas serve`, `import`, `log` and `healthcheck`.

Exit codes: 0 after an orderly end, 1 if the broker cannot serve (address or data directory taken, damaged,
a listener failed) or could not write everything when it stopped, 2 if the command line or the configuration
is wrong; each with one line on standard error. Standard output carries one line, once the broker serves. With
`--log-format json` each of these lines is a JSON object.

Imports are made where they are needed: `--help` and the health check answer without loading the broker, and
kio must be loaded in a certain way before anything else of this package is.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.log_tool.arguments import add_arguments as add_log_arguments
from barnabas.cli.log_tool.arguments import run as run_log_tool

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.network.server import Server
    from barnabas.broker.node.broker import Broker
    from barnabas.cli.process.descriptors import DescriptorShares

EXIT_FAILED = 1
EXIT_WRONG_CONFIGURATION = 2


class _StopError(Exception):
    """The broker has served and is to stop, but stopping it failed; the message says why."""


def add_commands(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the broker's commands; each sets `run`, which takes the options and answers the exit code."""
    serve = add_parser("serve", help="run a broker", description="Run a broker until SIGTERM or SIGINT.")
    _add_serve(serve)
    serve.set_defaults(run=_serve)
    take_over = add_parser(
        "import",
        help="take over the data of an Apache Kafka broker",
        description="Make a data directory out of that of a stopped Apache Kafka, which stays as it is.",
    )
    _add_import(take_over)
    take_over.set_defaults(run=_import)
    log = add_parser("log", help="look into logs on the disk")
    add_log_arguments(log)
    log.set_defaults(run=_run_log_tool)
    _add_healthcheck(add_parser)


def _add_healthcheck(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    healthcheck = add_parser(
        "healthcheck",
        help="ask whether a broker serves",
        description="Exit with 0 if a broker answers at ADDRESS and can write to its data directory, else 1. "
        "Without ADDRESS the first listener of the configuration is asked: give the same options and "
        "environment as to `serve`.",
    )
    healthcheck.add_argument("address", metavar="ADDRESS", nargs="?", help="HOST:PORT")
    _add_listen(healthcheck)
    _add_settings(healthcheck)
    healthcheck.set_defaults(run=_check_health)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    _add_listen(parser)
    _add_settings(parser)
    parser.add_argument(
        "--allow-kafka-directory",
        action="store_true",
        help="take over a data directory of Apache Kafka in place; Kafka cannot use it after that (default: "
        "such a directory is refused)",
    )
    parser.add_argument(
        "--log-format",
        choices=("console", "json"),
        default="console",
        help="lines for people, or one JSON object per line, on both outputs (default: %(default)s)",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="the least important lines to log (default: %(default)s)",
    )
    parser.add_argument(
        "--ready-file",
        metavar="PATH",
        help="a file that holds the address, and exists while the broker serves (default: none)",
    )


def _add_listen(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="where clients connect; port 0 picks a free one (default: 127.0.0.1:9092, or the setting "
        "listeners)",
    )


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", metavar="PATH", dest="source", required=True, help="Kafka's data directory")
    parser.add_argument(
        "--link",
        action="store_true",
        help="hard-link old segments instead of copying them, where that is possible",
    )
    _add_settings(parser)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        metavar="PATH",
        help="where topics and their state are kept (default: ./barnabas-data, or the setting log.dirs)",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="settings, as .properties like Kafka's or as .toml (default: no file)",
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        dest="settings",
        action="append",
        default=[],
        help="one setting; wins over file and environment; all of them: docs/settings.md",
    )


# Serve.


def _serve(options: argparse.Namespace) -> int:
    from barnabas.protocol.lean_import import import_kio_without_hypothesis

    import_kio_without_hypothesis()
    from barnabas.broker.config.errors import ConfigError
    from barnabas.cli.process.ready_file import check_ready_file, remove_old_ready_file
    from barnabas.runtime.logging import get_logger

    _configure_logging(options)
    if options.ready_file is not None:
        try:
            check_ready_file(options.ready_file)
        except OSError as error:
            return _complain(f"--ready-file cannot be written: {_reason(error)}.", EXIT_FAILED, options)
    try:
        config = _load_config(options, options.listen)
    except ConfigError as error:
        remove_old_ready_file(options.ready_file)
        return _complain(str(error), EXIT_WRONG_CONFIGURATION, options)
    for warning in config.warnings:
        get_logger("config").warning(warning)
    return _run(config, options)


def _load_config(options: argparse.Namespace, listen: str | None) -> "BrokerConfig":
    """The configuration that flags, file and environment give; raises ConfigError."""
    from barnabas.broker.config.errors import ConfigError
    from barnabas.broker.config.listener import ListenerError, parse_address
    from barnabas.broker.config.loading import load_config

    if listen is not None:
        try:
            parse_address(listen)
        except ListenerError as error:
            raise ConfigError(f"--listen: {error}.") from None
    if options.data_dir is not None and not options.data_dir.strip():
        raise ConfigError("--data-dir is empty, and must name a directory.")
    return load_config(options.config, os.environ, _overrides(options, listen))


def _overrides(options: argparse.Namespace, listen: str | None) -> list[str]:
    """The flags as settings; `--set` comes last and wins."""
    overrides: list[str] = []
    if listen is not None:
        overrides.append(f"listeners=PLAINTEXT://{listen}")
    if options.data_dir is not None:
        overrides.append(f"log.dirs={options.data_dir}")
    return overrides + list(options.settings)


def _configure_logging(options: argparse.Namespace) -> None:
    from barnabas.runtime.logging import catch_everything_else, configure_logging

    configure_logging(options.log_format, options.log_level)
    if options.log_format == "json":
        catch_everything_else()


def _share_descriptors() -> "DescriptorShares":
    """Use what the system allows: each connection and each open segment takes a file."""
    from barnabas.cli.process.descriptors import raise_limit, share_out, warning
    from barnabas.runtime.logging import get_logger

    limit = raise_limit()
    said = warning(limit)
    if said is not None:
        get_logger("config").warning(said)
    return share_out(limit)


def _run(config: "BrokerConfig", options: argparse.Namespace) -> int:
    """Serve on an event loop of our own until a signal comes."""
    import asyncio

    from barnabas.broker.network.open_port import PortLost
    from barnabas.cli.process.directory_errors import explain
    from barnabas.runtime.logging import log_errors_of
    from barnabas.storage.errors import StorageError

    with asyncio.Runner(loop_factory=_event_loop_factory()) as runner:
        log_errors_of(runner.get_loop())
        try:
            _check_directory(config, take_over_kafkas=options.allow_kafka_directory)
            runner.run(_run_broker(config, options))
        except (PortLost, StorageError) as error:
            return _complain(str(error), EXIT_FAILED, options)
        except OSError as error:
            explained = explain(error, config.log_directory)
            return _complain(explained or f"Cannot serve: {_reason(error)}.", EXIT_FAILED, options)
        except _StopError as error:
            return _complain(
                f"Stopped, but closing the data directory failed: {error}; the next start recovers from the "
                "log.",
                EXIT_FAILED,
                options,
            )
    return 0


def _reason(error: Exception) -> str:
    """What went wrong and, as far as the error knows, with which file; without a period."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    return str(error).removesuffix(".")


def _event_loop_factory() -> "type[asyncio.AbstractEventLoop]":
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.SelectorEventLoop
    return uvloop.Loop


async def _run_broker(config: "BrokerConfig", options: argparse.Namespace) -> None:
    from barnabas.broker.network.server import Server
    from barnabas.broker.node.broker import Broker
    from barnabas.cli.process.ready_file import ready_file, without_old_ready_file
    from barnabas.runtime.clock import SystemClock
    from barnabas.runtime.collector import keep_out_of_collections
    from barnabas.runtime.logging import announce
    from barnabas.storage.errors import StorageError

    stopped = _stop_signal()
    shares = _share_descriptors()
    with without_old_ready_file(options.ready_file):
        broker = await Broker.open(config, clock=SystemClock(), open_segments_max=shares.segments)
    try:
        server = Server(broker, config, connections_max=shares.connections)
        broker.dynamic_settings.bind_connections(server.limit_connections)
        await server.start()
        keep_out_of_collections()
        addresses = ",".join(one.address for one in server.listeners)
        with ready_file(options.ready_file, addresses):
            announce(
                options.log_format,
                "barnabas serves {addresses}, data in {data}, cluster {cluster}",
                addresses=addresses,
                data=config.log_directory,
                cluster=broker.cluster_id,
            )
            broker.begin_housekeeping()
            failure = await _wait_for_end(stopped, broker, server)
    except BaseException:
        # Of two failures the first is told.
        with suppress(OSError, StorageError):
            await broker.close()
        raise
    await _stop(server, broker)
    if failure is not None:
        raise failure


def _check_directory(config: "BrokerConfig", *, take_over_kafkas: bool) -> None:
    """See that the data directory is ours, or becomes it. Raises StorageError, OSError."""
    from barnabas.storage.directory.directory_kind import DirectoryKind, find_kind
    from barnabas.storage.errors import InvalidDirectory
    from barnabas.storage.filesystem import RealFileSystem

    path = config.log_directory
    if find_kind(RealFileSystem(), path) is not DirectoryKind.KAFKA:
        return
    if not take_over_kafkas:
        raise InvalidDirectory(
            f"{path} belongs to Apache Kafka. Import it into another directory (barnabas import --from "
            f"{path} --data-dir DIR), or take it over in place with --allow-kafka-directory."
        )
    from barnabas.cli.kafka_import.importing import take_over
    from barnabas.runtime.clock import SystemClock
    from barnabas.runtime.logging import get_logger

    imported = take_over(Path(path), config, SystemClock().wall_ms)
    get_logger("import").info("Kafka's data directory taken over", topics=imported.topic_count)
    for left_out in imported.left_out:
        get_logger("import").warning("not taken over", what=left_out)


async def _wait_for_end(stopped: "asyncio.Event", broker: "Broker", server: "Server") -> Exception | None:
    """Until a signal comes, or the broker cannot go on; why, in that case."""
    from barnabas.storage.errors import StorageError

    broker.failed.add_done_callback(lambda _: stopped.set())
    server.failed.add_done_callback(lambda _: stopped.set())
    await stopped.wait()
    if broker.failed.done():
        return StorageError(
            f"The metadata log failed, so the broker ended: {broker.failed.result()}. The next start "
            "recovers it."
        )
    return server.failed.result() if server.failed.done() else None


async def _stop(server: "Server", broker: "Broker") -> None:
    from barnabas.storage.errors import StorageError

    try:
        try:
            await server.close()
        finally:
            await broker.close()
    except (OSError, StorageError) as error:
        raise _StopError(_reason(error)) from error


def _stop_signal() -> "asyncio.Event":
    """Set at the first SIGTERM or SIGINT; a second one ends the process as it would have done without us."""
    import asyncio

    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return stopped


# Import.


def _import(options: argparse.Namespace) -> int:
    from barnabas.protocol.lean_import import import_kio_without_hypothesis

    import_kio_without_hypothesis()
    from barnabas.broker.config.errors import ConfigError
    from barnabas.cli.kafka_import.importing import import_directory
    from barnabas.cli.process.directory_errors import explain
    from barnabas.runtime.clock import SystemClock
    from barnabas.runtime.logging import configure_logging
    from barnabas.storage.errors import StorageError

    configure_logging("console", "warning")  # without it structlog would write to standard output
    try:
        config = _load_config(options, None)
    except ConfigError as error:
        return _complain(str(error), EXIT_WRONG_CONFIGURATION)
    source, target = Path(options.source), Path(config.log_directory)
    try:
        imported = import_directory(source, target, config, SystemClock().wall_ms, link=options.link)
    except StorageError as error:
        return _complain(str(error), EXIT_FAILED)
    except OSError as error:
        explained = explain(error, config.log_directory)
        return _complain(explained or f"Cannot import: {_reason(error)}.", EXIT_FAILED)
    for left_out in imported.left_out:
        print(f"barnabas: left out: {left_out}", file=sys.stderr)
    if imported.scram_user_count:
        print(
            f"barnabas: SCRAM users were imported ({imported.scram_user_count}), but no client is asked for "
            "a password.",
            file=sys.stderr,
        )
    print(
        f"barnabas imported {imported.topic_count} topics, {imported.partition_count} partitions, "
        f"{imported.group_count} groups from {source} into {target}"
    )
    return 0


# Log.


def _run_log_tool(options: argparse.Namespace) -> int:
    from barnabas.protocol.lean_import import import_kio_without_hypothesis

    import_kio_without_hypothesis()
    return run_log_tool(options)


# Healthcheck.


def _check_health(options: argparse.Namespace) -> int:
    from barnabas.broker.config.errors import ConfigError
    from barnabas.broker.config.listener import ListenerError, parse_address
    from barnabas.cli.process.health import check_health

    try:
        host, port = _first_listener(options) if options.address is None else parse_address(options.address)
    except (ConfigError, ListenerError) as error:
        return _complain(f"{str(error).removesuffix('.')}.", EXIT_WRONG_CONFIGURATION)
    try:
        failed = check_health(host, port)
    except OSError as error:
        return _complain(f"No broker answers at {host}:{port}: {error}.", EXIT_FAILED)
    if failed:
        return _complain(
            f"The broker at {host}:{port} cannot write to {', '.join(failed)}: "
            "the disk is full or fails. The broker's log has the cause.",
            EXIT_FAILED,
        )
    return 0


def _first_listener(options: argparse.Namespace) -> tuple[str, int]:
    """Where the broker of this configuration listens; raises ConfigError."""
    from barnabas.broker.config.errors import ConfigError

    listener = _load_config(options, options.listen).listeners[0]
    if listener.port == 0:
        raise ConfigError("The configuration lets the broker pick a port: give the healthcheck its ADDRESS.")
    return listener.host, listener.port


def refuse_command_line(message: str) -> int:
    """Tells of a wrong command line as JSON; answers the exit code."""
    options = argparse.Namespace(log_format="json", log_level="info")
    _configure_logging(options)
    return _complain(message, EXIT_WRONG_CONFIGURATION, options)


def _complain(message: str, exit_code: int, options: argparse.Namespace | None = None) -> int:
    """Tells of an error on standard error, in the form that `options` give the log."""
    if options is not None and options.log_format == "json":
        from barnabas.runtime.logging import get_logger

        get_logger("process").error(message)
    else:
        print(f"barnabas: {message}", file=sys.stderr)
    return exit_code
