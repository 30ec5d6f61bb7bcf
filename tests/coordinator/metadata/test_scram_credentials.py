"""SCRAM credentials: their stored form, and refused changes, with the messages of Kafka 4.3.1 (recorded)."""

import pytest

from barnabas.coordinator.metadata.scram_credentials import (
    CredentialKey,
    Deletion,
    Upsertion,
    decide_alter_credentials,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.metadata_records import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    decode_metadata_record,
)
from tests.protocol.recorded_bytes import load_recorded

SHA_256, SHA_512 = 1, 2


def upsertion(
    name: str, mechanism: int = SHA_256, iterations: int = 4096, password: bytes = b"p"
) -> Upsertion:
    return Upsertion(name, mechanism, iterations, b"salt", password)


def decide(
    *changes: Deletion | Upsertion, current: dict[CredentialKey, UserScramCredentialRecord] | None = None
) -> tuple[list[MetadataRecord], dict[str, tuple[ErrorCode, str | None] | None]]:
    records, errors = decide_alter_credentials(
        current or {},
        [change for change in changes if isinstance(change, Deletion)],
        [change for change in changes if isinstance(change, Upsertion)],
    )
    told = {user: None if error is None else (error.code, error.message) for user, error in errors.items()}
    return records, told


def test_kafka_keeps_the_same_of_the_same_password() -> None:
    recorded = [
        decode_metadata_record(bytes.fromhex(row["value"]))
        for row in load_recorded("metadata_records")
        if row["type"] == "UserScramCredentialRecord"
    ]
    made = [
        decide(Upsertion("alice", SHA_256, 4096, b"salt", bytes(range(32))))[0],
        decide(Upsertion("alice", SHA_512, 8192, b"pepper", bytes(range(64))))[0],
    ]
    assert recorded
    assert made == [[record] for record in recorded]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (upsertion(""), ErrorCode.unacceptable_credential, "Username must not be empty"),
        (upsertion("a", 9), ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism"),
        (upsertion("a", iterations=4095), ErrorCode.unacceptable_credential, "Too few iterations"),
        (upsertion("a", iterations=16385), ErrorCode.unacceptable_credential, "Too many iterations"),
        (
            upsertion("a", password=b""),
            ErrorCode.unacceptable_credential,
            "Salted password must not be empty",
        ),
        (
            Deletion("a", SHA_256),
            ErrorCode.resource_not_found,
            "Attempt to delete a user credential that does not exist",
        ),
        (Deletion("", SHA_256), ErrorCode.unacceptable_credential, "Username must not be empty"),
        (Deletion("a", 0), ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism"),
    ],
)
def test_invalid_credentials_are_refused(change: Deletion | Upsertion, code: ErrorCode, message: str) -> None:
    assert decide(change) == ([], {change.name: (code, message)})


def test_a_credential_that_is_there_is_deleted() -> None:
    (record,), _ = decide(upsertion("a"))
    assert isinstance(record, UserScramCredentialRecord)
    assert decide(Deletion("a", SHA_256), current={("a", SHA_256): record}) == (
        [RemoveUserScramCredentialRecord(name="a", mechanism=SHA_256)],
        {"a": None},
    )


def test_of_two_changes_of_one_user_none_is_made() -> None:
    records, errors = decide(upsertion("a"), upsertion("b"), upsertion("a", SHA_512), upsertion("a"))
    assert [getattr(record, "name", None) for record in records] == ["b"]
    assert errors == {
        "a": (
            ErrorCode.duplicate_resource,
            "A user credential cannot be altered twice in the same request",
        ),
        "b": None,
    }
