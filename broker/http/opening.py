"""Starts HTTP beside the broker, if a setting asks for it. The libraries are loaded only then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.runtime.logging import get_logger

if TYPE_CHECKING:
    from barnabas.broker.config.http_config import HttpConfig
    from barnabas.broker.http.connections import HttpServer
    from barnabas.broker.http.loop_lag import LoopLag
    from barnabas.broker.http.routes import Operation
    from barnabas.broker.http.streams import Streams
    from barnabas.broker.node.broker import Broker
    from barnabas.share.sweep.lag_looks import LagLooks

log = get_logger("http")

MoreOperations = Callable[[], "Sequence[Operation]"]
"""Makes operations of a program that embeds the broker; called only if HTTP is on."""


class OpenHttp(NamedTuple):
    """HTTP while it is served."""

    address: str
    """HOST:PORT, with the actual port."""
    server: HttpServer
    streams: Streams
    loop_lag: LoopLag
    lag_looks: LagLooks

    async def close(self) -> None:
        self.streams.close()
        self.loop_lag.close()
        await self.lag_looks.close()
        await self.server.close()


def _none() -> Sequence[Operation]:
    return ()


async def open_http(
    broker: Broker, config: HttpConfig | None, more_operations: MoreOperations = _none
) -> OpenHttp | None:
    """Serves HTTP. None without a configuration (`http.listener`), or if the address cannot be used: then the
    broker serves without HTTP, with a warning.
    """
    return None if config is None else await _open(broker, config, more_operations)


async def _open(broker: Broker, config: HttpConfig, more_operations: MoreOperations) -> OpenHttp | None:
    from importlib.metadata import version

    from barnabas.broker.http.application import make_application
    from barnabas.broker.http.connections import HttpServer
    from barnabas.broker.http.loop_lag import LoopLag
    from barnabas.broker.http.openapi import with_document
    from barnabas.broker.http.operations import broker_operations
    from barnabas.broker.http.protection import AccessRules
    from barnabas.broker.http.streams import Streams

    streams = Streams()
    operations = (*broker_operations(broker, streams), *more_operations())
    served = with_document(version("barnabas"), operations)
    server = HttpServer(make_application(served, AccessRules(config.allowed_hosts, config.token)))
    try:
        await server.start(config.host, config.port)
    except OSError as error:
        log.warning("the broker serves without HTTP", reason=error.strerror)
        return None
    address = config._replace(port=server.port).address
    log.info("HTTP is served", address=f"http://{address}")
    return OpenHttp(address, server, streams, LoopLag(broker.metrics), _begin_lag_looks(broker))


def _begin_lag_looks(broker: Broker) -> LagLooks:
    from barnabas.share.sweep.lag_looks import LagLooks

    looks = LagLooks(
        broker.clock,
        broker.deadlines,
        broker.groups.share,
        broker.share_partitions,
        broker.fetch_source.load_leader,
    )
    looks.begin()
    return looks
