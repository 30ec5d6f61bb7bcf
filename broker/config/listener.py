"""The addresses on which a broker listens, and those that it advertises (`listeners`,
`advertised.listeners`).

The address that a client is given depends on the listener through which it connected: for example the address
inside a container network, or the one published on the host. A listener on all interfaces without an
advertised address gives each client the local address of its connection. The notation is Kafka's:
`NAME://host:port`, separated by commas, without a host for all interfaces. A listener's security protocol
follows from its name, directly or by `listener.security.protocol.map`.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from ipaddress import ip_address
from types import MappingProxyType
from typing import NamedTuple

from barnabas.broker.config.address import is_loopback, shown_address

_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:/\[\],]*):(?P<port>\d+)")
_ENTRY = re.compile(r"(?P<name>[A-Za-z0-9_]+)://(?P<address>.*)")
_PORT_MAX = 65_535
CONTROLLER = "CONTROLLER"
"""The listener of the controller in Kafka's examples, which Barnabas does not open."""


class SecurityProtocol(StrEnum):
    """How the connections of a listener are protected."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_protected(self) -> bool:
        return self is not SecurityProtocol.PLAINTEXT

    @property
    def uses_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class ListenerError(ValueError):
    """The settings name no listeners that can be served; the message is for the administrator."""


class Listener(NamedTuple):
    """One address to listen on. Ports are 0 until the operating system has selected one."""

    name: str
    host: str
    """Empty for all interfaces."""
    port: int
    advertised_host: str
    advertised_port: int
    advertises_local_address: bool = False
    """Whether each client is given the local address of its connection instead of `advertised_host`."""
    inter_broker: bool = False
    """Whether it also serves the APIs between brokers."""
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT

    @property
    def address(self) -> str:
        """The address on which it listens, see `shown_address`."""
        return shown_address(self.host, self.port)

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        return is_loopback(self.host)

    def bound_to(self, port: int) -> "Listener":
        """This listener with the port on which it listens; advertised with that port if none was chosen."""
        return self._replace(port=port, advertised_port=self.advertised_port or port)

    def reached_at(self, host: str) -> "Listener":
        """This listener for a client that connected to `host`, a local address without brackets."""
        return self._replace(advertised_host=host) if self.advertises_local_address else self


def parse_listeners(
    listeners: str,
    advertised_listeners: str = "",
    *,
    protocol_by_name: Mapping[str, str] = MappingProxyType({}),
    controller_names: frozenset[str] = frozenset(),
) -> tuple[Listener, ...]:
    """The listeners that Kafka's settings describe, in their order.

    `protocol_by_name` is `listener.security.protocol.map`, with upper-case names; empty if it is not set. The
    result omits listeners in `controller_names` and the one that Kafka's examples call CONTROLLER, because
    the controller of Barnabas needs no port. Raises `ListenerError`.
    """
    bound = _parse(listeners, "listeners")
    advertised = _parse(advertised_listeners, "advertised.listeners")
    for name in advertised:
        if name not in bound:
            raise ListenerError(f"advertised.listeners names {name}, which listeners does not")
    served: list[Listener] = []
    for name, (host, port) in bound.items():
        if name in controller_names or name == CONTROLLER:
            continue
        listener = _listener(name, host, port, advertised.get(name))
        protocol = _protocol(name, protocol_by_name)
        served.append(listener._replace(protocol=protocol))
    if not served:
        raise ListenerError("listeners names no address that clients could use")
    return tuple(served)


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT. The host may be empty, and an IPv6 address is in brackets. Raises
    `ListenerError`.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ListenerError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:9092")
    host, port = match["host"].strip("[]"), int(match["port"])
    if port > _PORT_MAX:
        raise ListenerError(f"{text!r} has the port {port}, but a port is a number from 0 to {_PORT_MAX}")
    try:
        host.encode("idna")
    except UnicodeError:  # an empty label, or one that is too long
        raise ListenerError(f"{text!r} has the host {host!r}, which is not a valid name") from None
    return host, port


def _listener(name: str, host: str, port: int, advertised: tuple[str, int] | None) -> Listener:
    if advertised is None:
        if _is_wildcard(host):
            return Listener(name, host, port, "localhost", port, advertises_local_address=True)
        return Listener(name, host, port, host, port)
    if not advertised[0]:
        raise ListenerError(f"advertised.listeners gives no host for {name}")
    if _is_wildcard(advertised[0]):
        raise ListenerError(
            f"advertised.listeners gives {advertised[0]} for {name}, to which no client can connect"
        )
    return Listener(name, host, port, *advertised)


def _parse(text: str, setting: str) -> dict[str, tuple[str, int]]:
    """Host and port by listener name."""
    addresses: dict[str, tuple[str, int]] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ListenerError(f"{setting} has {entry!r}, which is not NAME://HOST:PORT")
        name = match["name"].upper()
        if name in addresses:
            raise ListenerError(f"{setting} names {name} twice")
        try:
            addresses[name] = parse_address(match["address"])
        except ListenerError as error:
            raise ListenerError(f"{setting} has {entry!r}: {error}") from None
    return addresses


def _protocol(name: str, protocol_by_name: Mapping[str, str]) -> SecurityProtocol:
    """Without a map, PLAINTEXT for a name that is no protocol; with one, each other name must be in it."""
    protocol = protocol_by_name.get(name, name).upper()
    known = ", ".join(SecurityProtocol)
    if protocol in set[str](SecurityProtocol):
        return SecurityProtocol(protocol)
    if not protocol_by_name:
        return SecurityProtocol.PLAINTEXT
    if name not in protocol_by_name:
        raise ListenerError(f"listener.security.protocol.map has no protocol for the listener {name}")
    raise ListenerError(f"listener.security.protocol.map gives {name} {protocol}, which is not {known}")


def _is_wildcard(host: str) -> bool:
    """Whether `host` stands for all interfaces; clients cannot connect to such an address."""
    try:
        return not host or ip_address(host).is_unspecified
    except ValueError:
        return False
