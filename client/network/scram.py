"""The client side of SCRAM, which proves a password without sending it (RFC 5802, RFC 7677; pure).

Without channel binding. Names and passwords are sent as plain UTF-8, as Kafka expects: SASLprep is not
applied. The caller passes the nonce. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Final

from barnabas.client.errors import AuthenticationError

ITERATIONS_MIN: Final = 4096
"""The minimum of RFC 5802; a server that asks for less may want to guess the password."""
ITERATIONS_MAX: Final = 1_000_000
"""More iterations would block the event loop for seconds."""

_GS2_HEADER: Final = "n,,"


class ScramClient:
    """One exchange: `first`, then `final` with the server's first message, then `verify` with its last.

    `hash_name` is hashlib's. Raises `AuthenticationError` for a message that violates the protocol.
    """

    def __init__(self, hash_name: str, username: str, password: str, nonce: str) -> None:
        self._hash_name = hash_name
        self._password = password.encode()
        self._nonce = nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        return (_GS2_HEADER + self._bare).encode()

    def final(self, challenge: bytes) -> bytes:
        """The proof, in answer to the server's first message."""
        said = _attributes(challenge)
        nonce, salt, iterations = self._checked(said)
        proven = f"c={b64encode(_GS2_HEADER.encode()).decode()},r={nonce}"
        message = f"{self._bare},{challenge.decode()},{proven}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash_name, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash_name, client_key).digest(), message)
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        proof = bytes(
            key_byte ^ signature_byte for key_byte, signature_byte in zip(client_key, signature, strict=True)
        )
        return f"{proven},p={b64encode(proof).decode()}".encode()

    def verify(self, last: bytes) -> None:
        """Check that the server also knows the password."""
        said = _attributes(last)
        if "e" in said:
            raise AuthenticationError(f"the broker refuses: {said['e']}")
        if not hmac.compare_digest(_decoded(said.get("v", "")), self._server_signature):
            raise AuthenticationError(
                "the broker does not know this user's password, so it may be an impostor"
            )

    def _checked(self, said: dict[str, str]) -> tuple[str, bytes, int]:
        nonce, salt = said.get("r", ""), _decoded(said.get("s", ""))
        if "m" in said:
            raise AuthenticationError("the broker requires an unknown extension of SCRAM")
        if not nonce.startswith(self._nonce) or nonce == self._nonce or not salt:
            raise AuthenticationError("the broker's answer belongs to another exchange")
        count = said.get("i", "")
        # RFC 5802's grammar has no leading zeros, and with them the first digits could hide a large number.
        is_number = count.isascii() and count.isdecimal() and not count.startswith("0")
        if not is_number or not ITERATIONS_MIN <= int(count[:10]) <= ITERATIONS_MAX:
            raise AuthenticationError(
                f"the broker asks for {count[:10]} iterations, not {ITERATIONS_MIN} to {ITERATIONS_MAX}"
            )
        return nonce, salt, int(count)

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash_name)


def _attributes(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError as error:
        raise AuthenticationError("the broker's answer is not SCRAM") from error
    return {part[:1]: part[2:] for part in parts if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise AuthenticationError("the broker's answer is not SCRAM") from error
