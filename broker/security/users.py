"""The users whose SCRAM credentials are stored (KIP-554), and the check of their passwords.

A password is checked against a stored credential by PBKDF2, which takes milliseconds. That happens in a
thread, and one password is checked at a time, so that a flood of wrong ones takes one processor at most. A
password that was right is remembered by its digest under a key of this process, until the credential changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

from barnabas.coordinator.metadata.scram_credentials import HASH_NAMES, ScramMechanism
from barnabas.protocol.metadata_records import UserScramCredentialRecord
from barnabas.runtime.worker_threads import Threads

FindCredential = Callable[[str, int], UserScramCredentialRecord | None]
"""The stored credential of a user for a mechanism."""

REMEMBERED_MAX: Final = 10_000
"""Passwords that are remembered; beyond it all are forgotten."""

_NO_ITERATIONS: Final = 4096


class Users:
    """Finds users and checks their passwords."""

    def __init__(self, find: FindCredential, threads: Threads) -> None:
        self.find = find
        self._threads = threads
        self._turn = asyncio.Semaphore(1)
        self._key = secrets.token_bytes(32)
        self._remembered: dict[str, tuple[UserScramCredentialRecord, bytes]] = {}

    def credential(self, name: str, mechanism: ScramMechanism) -> UserScramCredentialRecord:
        """The stored credential. For an unknown user it is one that no password fits: always the same one,
        so that the answer does not tell whether the user exists.
        """
        found = self.find(name, mechanism)
        return self._unknown(name, mechanism) if found is None else found

    async def has_password(self, name: str, password: str) -> bool:
        """Whether a stored credential of the user fits the password."""
        found = (self.find(name, mechanism) for mechanism in ScramMechanism)
        credential = next(filter(None, found), None) or self._unknown(name, ScramMechanism.SCRAM_SHA_256)
        digest = hmac.digest(self._key, password.encode(), "sha256")
        if self._remembered.get(name) == (credential, digest):
            return True
        async with self._turn:
            is_right = await self._threads.run(fits, credential, password.encode())
        if is_right:
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[name] = credential, digest
        return is_right

    def _unknown(self, name: str, mechanism: ScramMechanism) -> UserScramCredentialRecord:
        salt = hmac.digest(self._key, name.encode(), "sha256")
        return UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=salt,
            stored_key=secrets.token_bytes(hashlib.new(HASH_NAMES[mechanism]).digest_size),
            server_key=b"",
            iterations=_NO_ITERATIONS,
        )


def fits(credential: UserScramCredentialRecord, password: bytes) -> bool:
    """Whether it is the credential of this password. This takes milliseconds."""
    hash_name = HASH_NAMES[ScramMechanism(credential.mechanism)]
    salted = hashlib.pbkdf2_hmac(hash_name, password, credential.salt, credential.iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    return hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), credential.stored_key)
