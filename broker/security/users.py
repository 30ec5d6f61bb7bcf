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

from barnabas.coordinator.metadata.scram_credentials import HASH_NAMES, ITERATIONS_MIN, ScramMechanism
from barnabas.protocol.metadata_records import UserScramCredentialRecord
from barnabas.runtime.worker_threads import Threads

FindCredential = Callable[[str, int], UserScramCredentialRecord | None]
"""The stored credential of a user for a mechanism."""

REMEMBERED_MAX: Final = 10_000
"""Passwords that are remembered; beyond it all are forgotten."""

_SALT_BYTES: Final = 24


class Users:
    """Finds users and checks their passwords."""

    def __init__(self, find: FindCredential, threads: Threads) -> None:
        self.find = find
        self._threads = threads
        self._turn = asyncio.Semaphore(1)
        self._key = secrets.token_bytes(32)
        self._remembered: dict[str, tuple[list[UserScramCredentialRecord], bytes]] = {}

    def credential(self, name: str, mechanism: ScramMechanism) -> UserScramCredentialRecord:
        """The stored credential. For an unknown user it is one that no password fits: always the same one,
        so that the answer does not tell whether the user exists.
        """
        found = self.find(name, mechanism)
        return self._unknown(name, mechanism) if found is None else found

    async def has_password(self, name: str, password: str) -> bool:
        """Whether one of the user's stored credentials fits the password."""
        digest = hmac.digest(self._key, password.encode(), "sha256")
        credentials = self._stored(name)
        if self._remembered.get(name) == (credentials, digest):
            return True
        checked = credentials or [self._unknown(name, ScramMechanism.SCRAM_SHA_256)]
        is_right = any([await self._fits(credential, password) for credential in checked])
        if not is_right or credentials != self._stored(name):
            return False
        if len(self._remembered) >= REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered[name] = credentials, digest
        return True

    def _stored(self, name: str) -> list[UserScramCredentialRecord]:
        return list(filter(None, (self.find(name, mechanism) for mechanism in ScramMechanism)))

    async def _fits(self, credential: UserScramCredentialRecord, password: str) -> bool:
        """Waits for its turn, which lasts until the thread has ended, even if nobody waits any more."""
        await self._turn.acquire()
        check = asyncio.ensure_future(self._threads.run(fits, credential, password.encode()))
        check.add_done_callback(lambda _: self._turn.release())
        return await asyncio.shield(check)

    def _unknown(self, name: str, mechanism: ScramMechanism) -> UserScramCredentialRecord:
        salt = hmac.digest(self._key, b"%d %s" % (mechanism, name.encode()), "sha256")[:_SALT_BYTES]
        return UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=salt,
            stored_key=secrets.token_bytes(hashlib.new(HASH_NAMES[mechanism]).digest_size),
            server_key=b"",
            iterations=ITERATIONS_MIN,
        )


def fits(credential: UserScramCredentialRecord, password: bytes) -> bool:
    """Whether it is the credential of this password. This takes milliseconds."""
    hash_name = HASH_NAMES[ScramMechanism(credential.mechanism)]
    salted = hashlib.pbkdf2_hmac(hash_name, password, credential.salt, credential.iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    return hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), credential.stored_key)
