"""The brokers that a command asks, and the security of its connections."""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.client.admin.connection import AdminConnection
from barnabas.client.cluster.client_options import ClientOptions
from barnabas.client.network.security import Security

GIVE_UP_MS: Final = 5_000
"""How long temporary errors are retried; the broker may still be starting."""
REQUEST_TIMEOUT_MS: Final = 10_000


class Target(NamedTuple):
    """The options of the client of any command."""

    bootstrap: str
    security: Security
    client_id: str

    @property
    def options(self) -> ClientOptions:
        """The options of each client class."""
        return {
            "client_id": self.client_id,
            "security": self.security,
            "connect_timeout_ms": GIVE_UP_MS,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
        }

    def administer(self) -> AdminConnection:
        """A connection for an administrator, to be entered with `async with`."""
        return AdminConnection(self.bootstrap, **self.options)


class NotFoundError(Exception):
    """The thing that a command is about does not exist; the message is one sentence without its full stop."""


class RefusedError(Exception):
    """The command itself refuses; the message is one sentence without its full stop, with the remedy."""
