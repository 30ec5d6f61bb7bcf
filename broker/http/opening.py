"""Starts HTTP beside the broker, if a setting asks for it. The libraries are loaded only then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.runtime.logging import get_logger

if TYPE_CHECKING:
    from barnabas.broker.http.connections import HttpServer
    from barnabas.broker.http.routes import Operation
    from barnabas.broker.node.broker import Broker

log = get_logger("http")

MoreOperations = Callable[[], Sequence["Operation"]]
"""Makes operations of a program that embeds the broker; called only if HTTP is on."""


def _none() -> Sequence[Operation]:
    return ()


async def open_http(broker: Broker, more_operations: MoreOperations = _none) -> HttpServer | None:
    """The server at `http.listener`; None if that is not set, or if the address cannot be used. The latter is
    a warning, and the broker serves without HTTP.
    """
    config = broker.config.http
    if config is None:
        return None
    from barnabas.broker.http.application import make_application
    from barnabas.broker.http.connections import HttpServer
    from barnabas.broker.http.operations import broker_operations
    from barnabas.broker.http.protection import AccessRules

    operations = (*broker_operations(broker), *more_operations())
    server = HttpServer(make_application(operations, AccessRules(config.allowed_hosts, config.token)))
    try:
        await server.start(config.host, config.port)
    except OSError as error:
        log.warning("the broker serves without HTTP", reason=error.strerror)
        return None
    address = config._replace(port=server.port).address
    log.info("HTTP is served", address=f"http://{address}")
    return server
