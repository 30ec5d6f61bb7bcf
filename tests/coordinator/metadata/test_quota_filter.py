"""The quotas that a description matches; invalid filters, with the messages of Kafka 4.3.1 (recorded)."""

import pytest

from barnabas.coordinator.metadata.client_quotas import QuotaEntity, quota_entity
from barnabas.coordinator.metadata.quota_filter import FilterPart, MatchType, QuotaFilter
from barnabas.protocol.errors import ApiError, ErrorCode

EXACT, DEFAULT, SPECIFIED = MatchType.EXACT, MatchType.DEFAULT, MatchType.SPECIFIED
ENTITIES: dict[str, QuotaEntity] = {
    "u": quota_entity({"user": "u"}),
    "u+c": quota_entity({"user": "u", "client-id": "c"}),
    "any user": quota_entity({"user": None}),
    "c": quota_entity({"client-id": "c"}),
    "ip": quota_entity({"ip": "1.1.1.1"}),
}

IP_WITH_OTHERS = (
    "Invalid entity filter component combination. IP filter component should not be used with user or "
    "clientId filter component."
)


@pytest.mark.parametrize(
    ("parts", "strict", "found"),
    [
        ([], False, ["u", "u+c", "any user", "c", "ip"]),
        ([], True, []),
        ([FilterPart("user", SPECIFIED, None)], False, ["u", "u+c", "any user"]),
        ([FilterPart("user", SPECIFIED, None)], True, ["u", "any user"]),
        ([FilterPart("user", DEFAULT, None)], False, ["any user"]),
        ([FilterPart("user", EXACT, "u")], False, ["u", "u+c"]),
        ([FilterPart("user", EXACT, "u"), FilterPart("client-id", SPECIFIED, None)], True, ["u+c"]),
        ([FilterPart("ip", SPECIFIED, None)], True, ["ip"]),
        ([FilterPart("user", EXACT, "nobody")], False, []),
    ],
)
def test_entities_are_found(parts: list[FilterPart], strict: bool, found: list[str]) -> None:
    asked = QuotaFilter(parts, strict=strict)
    assert asked.matching(ENTITIES.values()) == [ENTITIES[name] for name in found]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([FilterPart("", EXACT, "x")], "Invalid empty entity type."),
        (
            [FilterPart("user", EXACT, "x"), FilterPart("user", SPECIFIED, None)],
            "Entity type user cannot appear more than once in the filter.",
        ),
        ([FilterPart("user", 7, "x")], "Unknown match type 7"),
        (
            [FilterPart("user", EXACT, None)],
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            [FilterPart("user", DEFAULT, "x")],
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            [FilterPart("user", SPECIFIED, "x")],
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        (
            [FilterPart("ip", SPECIFIED, None), FilterPart("user", SPECIFIED, None)],
            IP_WITH_OTHERS,
        ),
    ],
)
def test_filters_that_make_no_sense_are_refused(parts: list[FilterPart], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        QuotaFilter(parts, strict=False)
    assert (refused.value.code, refused.value.message) == (ErrorCode.invalid_request, message)


def test_a_type_that_does_not_exist_is_not_supported() -> None:
    with pytest.raises(ApiError) as refused:
        QuotaFilter([FilterPart("banana", EXACT, "x")], strict=False)
    assert refused.value.code is ErrorCode.unsupported_version
