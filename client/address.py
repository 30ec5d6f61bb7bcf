"""Where brokers listen, and how a user says so (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.client.errors import MisuseError

DEFAULT_PORT: Final = 9092
_PORT_MAX: Final = 65_535


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Sequence[str]) -> list[Address]:
    """`host:port`, several of them with commas between, or a sequence; IPv6 in brackets.

    Raises `MisuseError` for what is no address.
    """
    given = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    addresses = [_parse_address(one.strip()) for one in given if one.strip()]
    if not addresses:
        raise MisuseError("There is no broker to begin with.")
    return addresses


def _parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    if not host or not port.isascii() or not port.isdecimal():
        raise MisuseError(f"This is no address of a broker: {text!r}; it must be HOST:PORT.")
    if not 0 < int(port) <= _PORT_MAX:
        raise MisuseError(f"{text!r} has the port {port}, but a port is a number from 1 to {_PORT_MAX}.")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
