"""The filter of a description of client quotas: the entities that it matches (KIP-546). Pure."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from barnabas.coordinator.metadata.client_quotas import CLIENT_ID, IP, USER, QuotaEntity
from barnabas.protocol.errors import ApiError, ErrorCode


class MatchType(IntEnum):
    """The kind of match of one part of an entity, by its id on the wire."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class FilterPart(NamedTuple):
    """One type of entity that must be present; `match` is the name, for `EXACT` only."""

    entity_type: str
    match_type: int
    match: str | None


class QuotaFilter:
    """A filter, checked once; raises `ApiError` if its parts contradict each other."""

    def __init__(self, parts: Sequence[FilterPart], *, strict: bool) -> None:
        """With `strict` an entity must not have other types."""
        self._strict = strict
        self._names: dict[str, str | None] = {}
        self._specified: set[str] = set()
        for part in parts:
            self._check_type(part.entity_type)
            self._add(part)
        types = self._names.keys() | self._specified
        if IP in types and len(types) > 1:
            raise _invalid(
                "Invalid entity filter component combination. IP filter component should not be used with "
                "user or clientId filter component."
            )

    def matching(self, entities: Iterable[QuotaEntity]) -> list[QuotaEntity]:
        return [entity for entity in entities if self._matches(dict(entity))]

    def _matches(self, entity: Mapping[str, str | None]) -> bool:
        if self._strict and len(entity) != len(self._names) + len(self._specified):
            return False
        named = all(kind in entity and entity[kind] == name for kind, name in self._names.items())
        return named and self._specified <= entity.keys()

    def _check_type(self, entity_type: str) -> None:
        if not entity_type:
            raise _invalid("Invalid empty entity type.")
        if entity_type in self._names or entity_type in self._specified:
            raise _invalid(f"Entity type {entity_type} cannot appear more than once in the filter.")
        if entity_type not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.unsupported_version, f"Unsupported entity type {entity_type}")

    def _add(self, part: FilterPart) -> None:
        match part.match_type:
            case MatchType.EXACT:
                if part.match is None:
                    raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
                self._names[part.entity_type] = part.match
            case MatchType.DEFAULT:
                _check_no_name(part)
                self._names[part.entity_type] = None
            case MatchType.SPECIFIED:
                _check_no_name(part)
                self._specified.add(part.entity_type)
            case other:
                raise _invalid(f"Unknown match type {other}")


def _check_no_name(part: FilterPart) -> None:
    if part.match is not None:
        name = MatchType(part.match_type).name
        raise _invalid(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
