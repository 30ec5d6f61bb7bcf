"""Client quotas: allowed and refused changes, with the messages of Kafka 4.3.1 (recorded)."""

import math

import pytest

from barnabas.coordinator.metadata.client_quotas import (
    QuotaAlteration,
    QuotaEntity,
    decide_alter_client_quotas,
    quota_entity,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.metadata_records import ClientQuotaRecord

CLIENT = quota_entity({"client-id": "c"})
ADDRESS = quota_entity({"ip": "10.0.0.1"})


def decide(entity: QuotaEntity, *, current: dict[str, float] | None = None, **values: float | None) -> object:
    """The (key, value) pairs to write, None for those to remove, or the error's (code, message)."""
    records, (error,) = decide_alter_client_quotas(
        {} if current is None else {entity: current}, [QuotaAlteration(entity, values)]
    )
    if error is not None:
        assert records == []
        return error.code, error.message
    assert all(isinstance(record, ClientQuotaRecord) for record in records)
    return [
        (record.key, None if record.remove else record.value)
        for record in records
        if isinstance(record, ClientQuotaRecord)
    ]


@pytest.mark.parametrize(
    "parts",
    [
        {"client-id": "c"},
        {"client-id": None},
        {"user": "u"},
        {"user": None},
        {"user": "u", "client-id": "c"},
        {"user": None, "client-id": None},
    ],
)
def test_users_and_clients_have_rates_and_percentages(parts: dict[str, str | None]) -> None:
    assert decide(
        quota_entity(parts), producer_byte_rate=1000, request_percentage=12.5, controller_mutation_rate=0.5
    ) == [("producer_byte_rate", 1000), ("request_percentage", 12.5), ("controller_mutation_rate", 0.5)]


@pytest.mark.parametrize("name", ["10.0.0.1", "::1", None])
def test_addresses_have_connections(name: str | None) -> None:
    entity = quota_entity({"ip": name})
    assert decide(entity, connection_creation_rate=7) == [("connection_creation_rate", 7)]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "Invalid empty client quota entity"),
        ({"banana": "x"}, "Unhandled client quota entity type: banana"),
        ({"user": ""}, "Empty user not supported"),
        ({"client-id": "c" * 32_768}, "The name of a client-id may have 32767 characters at most"),
        (
            {"ip": "1.1.1.1", "user": "u"},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ({"ip": "no such host"}, "no such host is not a valid IP or resolvable host."),
    ],
)
def test_other_entities_are_refused(parts: dict[str, str | None], message: str) -> None:
    assert decide(quota_entity(parts), producer_byte_rate=1) == (ErrorCode.invalid_request, message)


@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        (CLIENT, "nope", 1, "Invalid configuration key nope"),
        (CLIENT, "connection_creation_rate", 1, "Invalid configuration key connection_creation_rate"),
        (ADDRESS, "producer_byte_rate", 1, "Invalid configuration key producer_byte_rate"),
        (CLIENT, "consumer_byte_rate", 0, "Quota consumer_byte_rate must be greater than 0"),
        (CLIENT, "request_percentage", -1, "Quota request_percentage must be greater than 0"),
        (CLIENT, "request_percentage", math.nan, "Quota request_percentage must be greater than 0"),
        (CLIENT, "request_percentage", math.inf, "Quota request_percentage must be a finite number"),
        (CLIENT, "consumer_byte_rate", 1.5, "consumer_byte_rate cannot be a fractional value."),
        (
            CLIENT,
            "consumer_byte_rate",
            1e30,
            "Proposed value for consumer_byte_rate is too large for a LONG.",
        ),
        (
            ADDRESS,
            "connection_creation_rate",
            1e10,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_other_values_are_refused(entity: QuotaEntity, key: str, value: float, message: str) -> None:
    _, (error,) = decide_alter_client_quotas({}, [QuotaAlteration(entity, {key: value})])
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.invalid_request, message)


def test_only_changed_quotas_are_written() -> None:
    current = {"producer_byte_rate": 5.0, "consumer_byte_rate": 6.0}
    assert decide(CLIENT, current=current, producer_byte_rate=5, consumer_byte_rate=7) == [
        ("consumer_byte_rate", 7)
    ]


def test_quotas_are_removed_if_they_are_there() -> None:
    assert decide(
        CLIENT, current={"producer_byte_rate": 5.0}, producer_byte_rate=None, consumer_byte_rate=None
    ) == [("producer_byte_rate", None)]


def test_an_entity_given_twice_is_refused_and_the_others_are_not() -> None:
    once, twice = quota_entity({"client-id": "a"}), quota_entity({"client-id": "b", "user": None})
    records, errors = decide_alter_client_quotas(
        {},
        [
            QuotaAlteration(twice, {"producer_byte_rate": 1}),
            QuotaAlteration(once, {"producer_byte_rate": 1}),
            QuotaAlteration(twice, {"consumer_byte_rate": 1}),
        ],
    )
    assert [error and error.message for error in errors] == [
        "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=b, user=null})",
        None,
        "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=b, user=null})",
    ]
    assert len(records) == 1


def test_a_key_given_twice_is_refused() -> None:
    alteration = QuotaAlteration(CLIENT, {"producer_byte_rate": 1}, has_duplicates=True)
    _, (error,) = decide_alter_client_quotas({}, [alteration])
    assert error is not None
    assert error.message == "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=c})"
