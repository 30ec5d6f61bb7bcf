"""Refuses a broker that strangers could use by an oversight of its owner.

A listener that other machines can reach needs authentication, or the word of its owner that only trusted
clients reach it (`listeners.allow.unauthenticated`).
"""

import socket
from collections.abc import Callable
from typing import Any

from barnabas.broker.config.address import is_loopback
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.listener import Listener, SecurityProtocol

Resolve = Callable[[str, int], list[Any]]
"""As `socket.getaddrinfo`."""


def refuse_open_listeners(config: BrokerConfig, resolve: Resolve = socket.getaddrinfo) -> None:
    """Raises `ConfigError` that names the listeners that are open to every client of other machines."""
    if config.flag("listeners.allow.unauthenticated"):
        return
    addresses = [
        listener.address
        for listener in config.listeners
        if not _authenticates(config, listener) and not _is_of_this_machine(listener, resolve)
    ]
    if addresses:
        raise ConfigError(
            f"Every client that can reach {', '.join(addresses)} could read, write and delete everything, "
            "because there is no authentication. Set listeners.allow.unauthenticated=true if only trusted "
            "clients can reach it, or give the listener SASL or client certificates (docs/security.md)."
        )


def _authenticates(config: BrokerConfig, listener: Listener) -> bool:
    """TLS alone protects the connection, and lets anyone in."""
    if listener.protocol is SecurityProtocol.SSL:
        return config.listener_value(listener.name, "ssl.client.auth") == "required"
    return listener.protocol.uses_sasl


def _is_of_this_machine(listener: Listener, resolve: Resolve) -> bool:
    """Whether only programs on this machine can connect."""
    if listener.is_loopback or not listener.host:
        return listener.is_loopback
    try:
        found = resolve(listener.host, listener.port)
    except OSError:
        return True  # nobody can connect: opening the port fails, with a message of its own
    return all(is_loopback(address[0]) for *_, address in found)
