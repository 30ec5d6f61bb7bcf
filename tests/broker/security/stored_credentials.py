"""Credentials of users, as AlterUserScramCredentials stores them."""

from __future__ import annotations

import hashlib

from barnabas.coordinator.metadata.scram_credentials import Upsertion, decide_alter_credentials
from barnabas.protocol.metadata_records import UserScramCredentialRecord


def credentials(name: str, password: str) -> list[UserScramCredentialRecord]:
    """For both mechanisms."""
    found: list[UserScramCredentialRecord] = []
    for mechanism, hash_name in ((1, "sha256"), (2, "sha512")):
        salt = b"salt of the user"
        salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, 4096)
        records, _ = decide_alter_credentials({}, [], [Upsertion(name, mechanism, 4096, salt, salted)])
        found += [record for record in records if isinstance(record, UserScramCredentialRecord)]
    return found
