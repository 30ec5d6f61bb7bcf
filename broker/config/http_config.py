"""The configuration of the HTTP server: its address, the names by which clients may address it, and the token
of changes (`http.listener`, `http.allowed.hosts`, `http.token.file`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.broker.config.address import is_loopback, shown_address
from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.extras import require_libraries
from barnabas.broker.config.listener import ListenerError, parse_address

TOKEN_CHARACTERS_MIN: Final = 16
"""A shorter token could be guessed."""

TOKEN_BYTES_MAX: Final = 1024
"""A longer file holds something else than a token."""

_LIBRARIES = ("msgspec", "prometheus_client", "starlette", "uvicorn")
_LOOPBACK = "127.0.0.1"
_TOKEN = re.compile(r"[!-~]+")
"""Visible ASCII, which a header can carry."""


class HttpConfig(NamedTuple):
    """The values in effect at the start of the broker."""

    host: str
    """Empty for all interfaces."""
    port: int
    """0: the system selects one."""
    allowed_hosts: frozenset[str]
    """In lower case; IP addresses and localhost are allowed besides."""
    token: str | None
    """None if nothing may be changed over HTTP."""

    @property
    def address(self) -> str:
        """See `shown_address`."""
        return shown_address(self.host, self.port)

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        return is_loopback(self.host)


def parse_http(
    listener: str | None, allowed_hosts: Collection[str], token_file: str | None
) -> HttpConfig | None:
    """None without a listener. Raises ConfigError, also if a library is missing."""
    if listener is None:
        return None
    host, port = _parse_listener(listener)
    require_libraries("http.listener", _LIBRARIES, "http")
    names = frozenset(name.lower() for name in (host, *allowed_hosts) if name)
    return HttpConfig(host, port, names, None if token_file is None else _read_token(Path(token_file)))


def _parse_listener(listener: str) -> tuple[str, int]:
    address = f"{_LOOPBACK}:{listener}" if listener.isdecimal() else listener
    try:
        return parse_address(address)
    except ListenerError as error:
        raise ConfigError(f"http.listener is neither PORT nor HOST:PORT: {error}.") from None


def _read_token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(TOKEN_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"http.token.file cannot be read: {path}: {error.strerror}.") from None
    token = content.decode("utf-8", "replace").strip()
    if len(content) > TOKEN_BYTES_MAX or len(token) < TOKEN_CHARACTERS_MIN or not _TOKEN.fullmatch(token):
        raise ConfigError(
            f"http.token.file must hold one token of {TOKEN_CHARACTERS_MIN} to {TOKEN_BYTES_MAX} visible "
            f"ASCII characters, and {path} does not. A new one: python -c 'import secrets; "
            "print(secrets.token_urlsafe())'"
        )
    return token
