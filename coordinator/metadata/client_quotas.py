"""Client quotas: their entities and keys, and the checks of a change (KIP-13, KIP-546).

A quota belongs to an *entity*: a user, a client id, both, or an IP address, each by name or, with None, by
default. The broker enforces quotas. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from math import isfinite
from typing import Final, NamedTuple

from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.metadata_records import ClientQuotaRecord, MetadataRecord, QuotaEntityData

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""(type, name) pairs in the order of their types, the name None for the default."""

_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1


class _WholeNumber(NamedTuple):
    """A quota that must be a whole number."""

    type_name: str
    greatest: int


_KEYS_OF_CLIENTS: Final[Mapping[str, _WholeNumber | None]] = {
    PRODUCER_BYTE_RATE: _WholeNumber("a LONG", _LONG_MAX),
    CONSUMER_BYTE_RATE: _WholeNumber("a LONG", _LONG_MAX),
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_KEYS_OF_ADDRESSES: Final[Mapping[str, _WholeNumber | None]] = {
    CONNECTION_CREATION_RATE: _WholeNumber("an INT", _INT_MAX)
}
_FRACTION_MAX = 1e-6
_NAME_LENGTH_MAX = 32_767
"""The longest client id; user names are limited to it too."""


class QuotaAlteration(NamedTuple):
    """The changes for one entity, given as (type, name) pairs: by key the new value, or None to remove it.

    With `has_duplicates` the request named a key twice.
    """

    entity: QuotaEntity
    values: Mapping[str, float | None]
    has_duplicates: bool = False


def quota_entity(parts: Mapping[str, str | None]) -> QuotaEntity:
    return tuple(sorted(parts.items(), key=lambda part: part[0]))


def describe_entity(entity: QuotaEntity) -> str:
    """The entity as Apache Kafka writes it in messages."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def decide_alter_client_quotas(
    current: Mapping[QuotaEntity, Mapping[str, float]], alterations: Sequence[QuotaAlteration]
) -> tuple[list[MetadataRecord], list[ApiError | None]]:
    """The records for the entities whose changes are all allowed, and the error of each entity. An entity
    that the request names twice is refused.
    """
    counts: dict[QuotaEntity, int] = {}
    for alteration in alterations:
        counts[alteration.entity] = counts.get(alteration.entity, 0) + 1
    records: list[MetadataRecord] = []
    errors: list[ApiError | None] = []
    for alteration in alterations:
        try:
            if counts[alteration.entity] > 1 or alteration.has_duplicates:
                raise _invalid(f"Ignoring duplicate entity {describe_entity(alteration.entity)}")
            records.extend(_decide_entity(current.get(alteration.entity, {}), alteration))
            errors.append(None)
        except ApiError as error:
            errors.append(without_frames(error))
    return records, errors


def _decide_entity(current: Mapping[str, float], alteration: QuotaAlteration) -> Iterable[MetadataRecord]:
    keys = _keys_of(alteration.entity)
    records: list[MetadataRecord] = []
    for key, value in alteration.values.items():
        if value is not None:
            _check_value(keys, key, value)
        if value != current.get(key):
            records.append(quota_record(alteration.entity, key, value))
    return records


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> ClientQuotaRecord:
    """The record that sets the quota, or removes it."""
    return ClientQuotaRecord(
        entity=tuple(QuotaEntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        key=key,
        value=0.0 if value is None else value,
        remove=value is None,
    )


def _keys_of(entity: QuotaEntity) -> Mapping[str, _WholeNumber | None]:
    """The keys that the entity may have; raises `ApiError` for an invalid entity."""
    parts = dict(entity)
    if not parts:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in parts.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
        if name is not None and len(name) > _NAME_LENGTH_MAX:
            raise _invalid(f"The name of a {kind} may have {_NAME_LENGTH_MAX} characters at most")
    if IP not in parts:
        return _KEYS_OF_CLIENTS
    if len(parts) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        )
    if not _is_address(parts[IP]):
        raise _invalid(f"{parts[IP]} is not a valid IP or resolvable host.")
    return _KEYS_OF_ADDRESSES


def _is_address(name: str | None) -> bool:
    """Whether it is the default, or an address; host names are not resolved."""
    try:
        return name is None or bool(ip_address(name))
    except ValueError:
        return False


def _check_value(keys: Mapping[str, _WholeNumber | None], key: str, value: float) -> None:
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if not isfinite(value):
        raise _invalid(f"Quota {key} must be a finite number")
    whole = keys[key]
    if whole is None:
        return
    if value > whole.greatest:
        raise _invalid(f"Proposed value for {key} is too large for {whole.type_name}.")
    if value % 1 > _FRACTION_MAX:
        raise _invalid(f"{key} cannot be a fractional value.")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
