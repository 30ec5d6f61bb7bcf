"""Where brokers listen, and how a user says so (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from barnabas.client.errors import MisuseError

DEFAULT_PORT: Final = 9092


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
    with suppress(ValueError):
        if host and 0 < int(port) < 65536:
            return Address(host.removeprefix("[").removesuffix("]"), int(port))
    raise MisuseError(f"This is no address of a broker: {text!r}.")
