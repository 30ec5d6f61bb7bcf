"""SCRAM credentials of users: the checks of a change, and the stored form (KIP-554, RFC 5802).

They are stored as in Apache Kafka, so that its tools work, and a move to another broker takes them along.
Pure.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.metadata_records import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384


class ScramMechanism(IntEnum):
    """A mechanism, by its id on the wire and in records."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


HASH_NAMES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}

CredentialKey = tuple[str, int]
"""A user's name and a mechanism."""


class Deletion(NamedTuple):
    """A credential to delete; the mechanism may be unknown."""

    name: str
    mechanism: int


class Upsertion(NamedTuple):
    """A credential to set; the mechanism may be unknown."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


def count_users(credentials: Mapping[CredentialKey, UserScramCredentialRecord]) -> int:
    """The number of users with a credential of any mechanism."""
    return len({name for name, _ in credentials})


def decide_alter_credentials(
    current: Mapping[CredentialKey, UserScramCredentialRecord],
    deletions: Sequence[Deletion],
    upsertions: Sequence[Upsertion],
) -> tuple[list[MetadataRecord], dict[str, ApiError | None]]:
    """The records of the allowed changes, and the outcome by user.

    Only one credential of a user can be changed at a time: with two changes none is made.
    """
    records: dict[str, MetadataRecord] = {}
    errors: dict[str, ApiError | None] = {}
    changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    for change in changes:
        if change.name in errors:
            if errors[change.name] is None:
                del records[change.name]
                errors[change.name] = ApiError(
                    ErrorCode.duplicate_resource,
                    "A user credential cannot be altered twice in the same request",
                )
            continue
        try:
            records[change.name] = _decide(current, change)
            errors[change.name] = None
        except ApiError as error:
            errors[change.name] = without_frames(error)
    return list(records.values()), errors


def _decide(
    current: Mapping[CredentialKey, UserScramCredentialRecord], change: Deletion | Upsertion
) -> MetadataRecord:
    if not change.name:
        raise ApiError(ErrorCode.unacceptable_credential, "Username must not be empty")
    if change.mechanism not in frozenset[int](ScramMechanism):
        raise ApiError(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    if isinstance(change, Upsertion):
        return _credential(change)
    if (change.name, change.mechanism) not in current:
        raise ApiError(
            ErrorCode.resource_not_found, "Attempt to delete a user credential that does not exist"
        )
    return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)


def _credential(change: Upsertion) -> UserScramCredentialRecord:
    """The stored form: enough to check a password, and not enough to recover it."""
    if change.iterations < ITERATIONS_MIN:
        raise ApiError(ErrorCode.unacceptable_credential, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise ApiError(ErrorCode.unacceptable_credential, "Too many iterations")
    if not change.salted_password:
        raise ApiError(ErrorCode.unacceptable_credential, "Salted password must not be empty")
    hash_name = HASH_NAMES[ScramMechanism(change.mechanism)]
    client_key = hmac.digest(change.salted_password, b"Client Key", hash_name)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=hashlib.new(hash_name, client_key).digest(),
        server_key=hmac.digest(change.salted_password, b"Server Key", hash_name),
        iterations=change.iterations,
    )
