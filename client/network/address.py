"""Addresses of brokers, and the notation in which a user gives them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.client.errors import MisuseError

DEFAULT_PORT: Final = 9092
_PORT_MAX: Final = 65_535


class Address(NamedTuple):
    """The host and port on which a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Sequence[str]) -> list[Address]:
    """Accepts `host:port`, several of them separated by commas, or a sequence; IPv6 in brackets.

    Raises `MisuseError` for a malformed address.
    """
    given = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    addresses = [_parse_address(address.strip()) for address in given if address.strip()]
    if not addresses:
        raise MisuseError("The list of bootstrap brokers is empty.")
    return addresses


def _parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    if not host or not port.isascii() or not port.isdecimal():
        raise MisuseError(f"{text!r} is not the address of a broker; it must be HOST:PORT.")
    if not 0 < int(port) <= _PORT_MAX:
        raise MisuseError(f"{text!r} has the port {port}, but a port is a number from 1 to {_PORT_MAX}.")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
