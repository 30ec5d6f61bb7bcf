"""Runs a broker in this process until a signal: event loop, data directory, server, and an orderly end."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.handlers.lazy_handlers import WARMED_APIS, LazyHandlers
from barnabas.broker.http.opening import open_http
from barnabas.broker.network.request_metrics import plain_measures
from barnabas.broker.network.server import Server
from barnabas.broker.node.broker import Broker
from barnabas.broker.node.opening import open_broker
from barnabas.broker.tracing.opening import RequestTracing, open_tracing
from barnabas.cli.process.descriptors import DescriptorShares, divide_descriptors, raise_limit, warning
from barnabas.cli.process.directory_errors import reason
from barnabas.cli.process.ready_file import ready_file, without_old_ready_file
from barnabas.runtime.clock import SystemClock
from barnabas.runtime.collector import keep_out_of_collections
from barnabas.runtime.logging import LogFormat, announce, get_logger, log_errors_of
from barnabas.runtime.running_code import running_code
from barnabas.storage.directory.directory_kind import DirectoryKind, find_kind
from barnabas.storage.errors import InvalidDirectory, StorageError
from barnabas.storage.filesystem import RealFileSystem

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class ServeOptions(NamedTuple):
    """The options of `barnabas serve` besides the configuration."""

    log_format: LogFormat
    ready_file: str | None
    allow_kafka_directory: bool


class StopFailed(Exception):  # noqa: N818  named after its event, like the errors of the storage
    """The broker has served, but stopping it failed; the message has the reason."""


def serve(config: BrokerConfig, options: ServeOptions) -> None:
    """Serve until SIGTERM or SIGINT. Raises StorageError, OSError, PortLost, StopFailed."""
    with asyncio.Runner(loop_factory=_event_loop_factory()) as runner:
        log_errors_of(runner.get_loop())
        _check_directory(config, allow_kafka_directory=options.allow_kafka_directory)
        runner.run(_run_broker(config, options))


def _event_loop_factory() -> type[asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.SelectorEventLoop
    return uvloop.Loop


def _check_directory(config: BrokerConfig, *, allow_kafka_directory: bool) -> None:
    """Check that the data directory is Barnabas's; import Kafka's in place if that is allowed. Raises
    StorageError, OSError.
    """
    path = config.log_directory
    if find_kind(RealFileSystem(), path) is not DirectoryKind.KAFKA:
        return
    if not allow_kafka_directory:
        raise InvalidDirectory(
            f"{path} belongs to Apache Kafka. Import it into another directory (barnabas import --from "
            f"{path} --data-dir DIR), or import it in place with --allow-kafka-directory."
        )
    from barnabas.cli.kafka_import.importing import take_over  # happens once in the life of a directory

    imported = take_over(Path(path), config, SystemClock().wall_ms)
    get_logger("import").info("Kafka's data directory imported in place", topics=imported.topic_count)
    for left_out in imported.left_out:
        get_logger("import").warning("not imported", left_out=left_out)


async def _run_broker(config: BrokerConfig, options: ServeOptions) -> None:
    stop = _StopSignal()
    shares = _share_descriptors()
    with without_old_ready_file(options.ready_file):
        broker = await open_broker(config, clock=SystemClock(), open_segments_max=shares.segments)
    try:
        tracing = _open_tracing(config)
        measures = plain_measures if tracing is None else tracing.make_measures
        server = Server(
            broker,
            config,
            LazyHandlers(broker),
            warmed_apis=WARMED_APIS,
            connections_max=shares.connections,
            make_measures=measures,
        )
        broker.dynamic_settings.bind_server(server.limit_connections, server.keys_changed)
        await server.start()
        http = await open_http(broker, config.http)
        keep_out_of_collections()
        addresses = ",".join(listener.address for listener in server.listeners)
        with ready_file(options.ready_file, addresses):
            announce(
                options.log_format,
                "barnabas serves {addresses}, data in {data}, cluster {cluster}, with {code} code",
                addresses=addresses,
                data=config.log_directory,
                cluster=broker.cluster_id,
                code=running_code(),
            )
            broker.idle_logs.begin_to_open()
            failure = await _wait_for_end(stop, broker, server)
        if http is not None:
            await http.close()
    except BaseException:
        # Of two failures the first is reported.
        with suppress(OSError, StorageError):
            await broker.close()
        raise
    await _stop(server, broker)
    if tracing is not None:
        await tracing.close()
    if failure is not None:
        raise failure
    get_logger("broker").info("stopped", data=config.log_directory)


def _open_tracing(config: BrokerConfig) -> RequestTracing | None:
    return open_tracing(SystemClock().wall_ms) if config.flag("opentelemetry.spans.enable") else None


def _share_descriptors() -> DescriptorShares:
    """Raise the limit of descriptors to the system's maximum, and divide it; each connection and each open
    segment uses a descriptor.
    """
    limit = raise_limit()
    message = warning(limit)
    if message is not None:
        get_logger("config").warning(message)
    return divide_descriptors(limit)


class _StopSignal:
    """Waits for SIGTERM or SIGINT; after the first one they have their default effect again."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = asyncio.Event()
        for number in _SIGNALS:
            self._loop.add_signal_handler(number, self._signal)

    def _signal(self) -> None:
        for number in _SIGNALS:
            self._loop.remove_signal_handler(number)
        self._received.set()

    def end_wait(self, _: object) -> None:
        """End the wait without a signal."""
        self._received.set()

    async def wait(self) -> None:
        await self._received.wait()


async def _wait_for_end(stop: _StopSignal, broker: Broker, server: Server) -> Exception | None:
    """Wait for a signal or a failure; returns the failure."""
    broker.failed.add_done_callback(stop.end_wait)
    server.failed.add_done_callback(stop.end_wait)
    await stop.wait()
    if broker.failed.done():
        return StorageError(
            f"The metadata log failed, so the broker ended: {broker.failed.result()}. The next start "
            "recovers it."
        )
    return server.failed.result() if server.failed.done() else None


async def _stop(server: Server, broker: Broker) -> None:
    try:
        try:
            await server.close()
        finally:
            await broker.close()
    except (OSError, StorageError) as error:
        raise StopFailed(
            f"Stopped, but closing the data directory failed: {reason(error)}; the next start recovers from "
            "the log."
        ) from error
