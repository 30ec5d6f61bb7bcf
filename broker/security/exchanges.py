"""The server's side of SASL's mechanisms: PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677).

An exchange gets the client's messages one by one. It ends with a principal, or with `AuthenticationRefused`,
whose text is Kafka's, and is sent to the client.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Protocol

from barnabas.broker.security.principal import Principal
from barnabas.broker.security.users import Users
from barnabas.coordinator.metadata.scram_credentials import ScramMechanism

PLAIN: Final = "PLAIN"
SCRAM_MECHANISMS: Final = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
MECHANISMS: Final = (PLAIN, *SCRAM_MECHANISMS)

SCRAM_BYTES_MAX: Final = 1024
"""The longest message of SCRAM; those of clients have some hundred bytes."""

_FAILED: Final = "Authentication failed"
_DELEGATION_TOKEN: Final = ",tokenauth=true"
"""An extension of SCRAM (KIP-48)."""


class AuthenticationRefused(Exception):  # noqa: N818  named after its event
    """The client has not proved who it is. The text tells it nothing about users."""


class InvalidCredentials(AuthenticationRefused):
    """The user is unknown, or the proof is wrong; the gate has the text for that."""


class Exchange(Protocol):
    """One authentication. After a step that returns with `principal` set, it is complete."""

    principal: Principal | None

    async def step(self, message: bytes) -> bytes:
        """The answer to the client's next message. Raises `AuthenticationRefused`."""
        ...


class PlainExchange:
    """One message with the password itself. `passwords` are those of the configuration, by name."""

    def __init__(self, users: Users, passwords: Mapping[str, str]) -> None:
        self.principal: Principal | None = None
        self._users = users
        self._passwords = passwords

    async def step(self, message: bytes) -> bytes:
        parts = message.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise AuthenticationRefused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, name, password = parts
        for value, part in ((name, "username"), (password, "password")):
            if not value:
                raise AuthenticationRefused(f"{_FAILED}: {part} not specified")
        if not await self._is_right(name, password):
            raise AuthenticationRefused(f"{_FAILED}: Invalid username or password")
        if authorization_id not in ("", name):
            raise AuthenticationRefused(
                f"{_FAILED}: Client requested an authorization id that is different from username"
            )
        self.principal = Principal(name)
        return b""

    async def _is_right(self, name: str, password: str) -> bool:
        configured = self._passwords.get(name)
        if configured is not None:
            return hmac.compare_digest(configured.encode(), password.encode())
        return await self._users.has_password(name, password)


class ScramExchange:
    """Two messages, in which the client proves that it knows the password without sending it."""

    def __init__(self, users: Users, mechanism: str) -> None:
        scramp: Any = import_module("scramp")  # it has no types, and few brokers use SASL
        self.principal: Principal | None = None
        self._users = users
        self._mechanism = SCRAM_MECHANISMS[mechanism]
        self._name = ""
        self._server: Any = scramp.ScramMechanism(mechanism).make_server(self._find)
        self._is_begun = False

    async def step(self, message: bytes) -> bytes:
        scramp: Any = import_module("scramp")
        try:
            # As in Kafka, names are ASCII: SCRAM's own preparation of others takes long, and may change them.
            text = message.decode("ascii") if len(message) <= SCRAM_BYTES_MAX else ""
            if _DELEGATION_TOKEN in text:
                raise AuthenticationRefused(f"{_FAILED}: delegation tokens are not supported")
            if not self._is_begun:
                self._is_begun = True
                self._server.set_client_first(text)
                first: str = self._server.get_server_first()
                return first.encode()
            self._server.set_client_final(text)
            last: str = self._server.get_server_final()
        except (scramp.ScramException, UnicodeDecodeError):
            raise InvalidCredentials from None
        self.principal = Principal(self._name)
        return last.encode()

    def _find(self, name: str) -> tuple[bytes, bytes, bytes, int]:
        self._name = name
        credential = self._users.credential(name, self._mechanism)
        return credential.salt, credential.stored_key, credential.server_key, credential.iterations
