"""AlterClientQuotas and DescribeClientQuotas: quotas are set, described and removed, in every version."""

import pytest
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest

from barnabas.broker.handlers.alter_client_quotas import handle_alter_client_quotas
from barnabas.broker.handlers.describe_client_quotas import handle_describe_client_quotas
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import f64, i8
from tests.broker.handlers.admin_broker import AdminBroker, ask

Parts = dict[str, str | None]


def entry(parts: Parts, *ops: tuple[str, float | None]) -> EntryData:
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in parts.items()),
        ops=tuple(OpData(key=key, value=f64(value or 0.0), remove=value is None) for key, value in ops),
    )


async def alter(
    broker: AdminBroker, *entries: EntryData, validate_only: bool = False, version: int = 1
) -> list[tuple[Parts, ErrorCode, str | None]]:
    request = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
    response = await ask(broker, handle_alter_client_quotas, request, version=version)
    return [
        (
            {part.entity_type: part.entity_name for part in one.entity},
            one.error_code,
            one.error_message,
        )
        for one in response.entries
    ]


async def describe(
    broker: AdminBroker, *components: tuple[str, int, str | None], version: int = 1
) -> list[tuple[Parts, dict[str, float]]] | tuple[ErrorCode, str | None]:
    request = DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=i8(match_type), match=match)
            for kind, match_type, match in components
        ),
        strict=False,
    )
    response = await ask(broker, handle_describe_client_quotas, request, version=version)
    if response.error_code is not ErrorCode.none:
        assert response.entries is None
        return response.error_code, response.error_message
    return [
        (
            {part.entity_type: part.entity_name for part in one.entity},
            {value.key: value.value for value in one.values},
        )
        for one in response.entries
    ]


@pytest.mark.parametrize("version", [0, 1])
async def test_quotas_are_described_until_they_are_removed(broker: AdminBroker, version: int) -> None:
    client: Parts = {"client-id": None}
    set_both = entry(client, ("producer_byte_rate", 5.0), ("request_percentage", 0.5))
    assert await alter(broker, set_both, version=version) == [(client, ErrorCode.none, None)]
    told = [(client, {"producer_byte_rate": 5.0, "request_percentage": 0.5})]
    assert await describe(broker, version=version) == told
    assert await describe(broker, ("client-id", 1, None), version=version) == told
    await alter(broker, entry(client, ("producer_byte_rate", None), ("request_percentage", None)))
    assert await describe(broker, version=version) == []


async def test_validation_alone_changes_nothing(broker: AdminBroker) -> None:
    assert await alter(broker, entry({"user": "u"}, ("producer_byte_rate", 5.0)), validate_only=True) == [
        ({"user": "u"}, ErrorCode.none, None)
    ]
    assert await describe(broker) == []


async def test_each_entity_has_its_own_error(broker: AdminBroker) -> None:
    assert await alter(
        broker,
        entry({"user": "u"}, ("producer_byte_rate", 5.0)),
        entry({"user": "w"}, ("nope", 5.0)),
    ) == [
        ({"user": "u"}, ErrorCode.none, None),
        ({"user": "w"}, ErrorCode.invalid_request, "Invalid configuration key nope"),
    ]


async def test_a_duplicate_entity_has_one_result(broker: AdminBroker) -> None:
    twice = entry({"user": "u"}, ("producer_byte_rate", 5.0))
    message = "Ignoring duplicate entity ClientQuotaEntity(entries={user=u})"
    assert await alter(broker, twice, twice) == [({"user": "u"}, ErrorCode.invalid_request, message)]


async def test_a_duplicate_key_is_refused(broker: AdminBroker) -> None:
    twice = entry({"user": "u"}, ("producer_byte_rate", 5.0), ("producer_byte_rate", 6.0))
    ((_, code, _),) = await alter(broker, twice)
    assert code is ErrorCode.invalid_request


@pytest.mark.parametrize("version", [0, 1])
async def test_an_invalid_filter_is_an_error_of_the_request(broker: AdminBroker, version: int) -> None:
    assert await describe(broker, ("", 0, "x"), version=version) == (
        ErrorCode.invalid_request,
        "Invalid empty entity type.",
    )
