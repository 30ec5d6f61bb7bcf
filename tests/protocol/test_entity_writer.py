"""Every served message is encoded to the same bytes as by kio."""

from __future__ import annotations

import dataclasses
import struct
from io import BytesIO
from typing import Any, cast, get_args, get_origin

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.entity_writer import compile_writer
from barnabas.protocol.field_types import without_none
from barnabas.protocol.kio_messages import Entity, message_class
from barnabas.protocol.lift import default_of
from tests.protocol.filled_messages import filled, made, served_versions, written

MESSAGES = pytest.mark.parametrize(
    "entity_type",
    [
        (spec.key, version, direction)
        for spec, version in served_versions()
        for direction in ("request", "response")
    ],
    ids=lambda asked: f"{asked[0].name}-{asked[1]}-{asked[2]}",
    indirect=True,
)


@pytest.fixture
def entity_type(request: pytest.FixtureRequest) -> type[Entity]:
    """Loaded for its test: importing all of them takes a second in each process that collects the tests."""
    return message_class(*request.param)


def ours(entity: Any) -> bytes:
    buffer = BytesIO()
    compile_writer(cast("type[Entity]", type(entity)))(entity, buffer.write)
    return buffer.getvalue()


def with_nulls(entity: Any) -> Any:
    """The same message with null in each nullable field, at any depth."""
    return dataclasses.replace(
        entity, **{field.name: _nulled(field, entity) for field in dataclasses.fields(entity)}
    )


def _nulled(field: dataclasses.Field[Any], entity: Any) -> Any:
    value_type, is_nullable = without_none(field.type)
    value = getattr(entity, field.name)
    if is_nullable and ("tag" not in field.metadata or field.default is None):
        return None
    if get_origin(value_type) is tuple and dataclasses.is_dataclass(get_args(value_type)[0]):
        return tuple(map(with_nulls, value))
    return with_nulls(value) if dataclasses.is_dataclass(value) else value


@MESSAGES
def test_a_message_with_a_value_in_every_field_has_the_bytes_of_kio(entity_type: type[Entity]) -> None:
    message = filled(entity_type)

    assert ours(message) == written(message)


@MESSAGES
def test_a_message_with_nulls_has_the_bytes_of_kio(entity_type: type[Entity]) -> None:
    message = with_nulls(filled(entity_type))

    assert ours(message) == written(message)


@MESSAGES
def test_a_message_of_defaults_has_the_bytes_of_kio(entity_type: type[Entity]) -> None:
    message = entity_type(**{field.name: default_of(field) for field in dataclasses.fields(entity_type)})

    assert ours(message) == written(message)


@pytest.mark.parametrize("length", [126, 127, 128, 16_382, 16_383, 16_384, 32_767])
@pytest.mark.parametrize("version", [3, 4], ids=["several versions ago", "flexible"])
def test_a_message_with_a_long_string_has_the_bytes_of_kio(version: int, length: int) -> None:
    entity_type = message_class(ApiKey.INIT_PRODUCER_ID, version - 2, "request")
    message = made(entity_type, **{**_fields(filled(entity_type)), "transactional_id": "x" * length})

    assert ours(message) == written(message)


def _fields(entity: Any) -> dict[str, Any]:
    return {field.name: getattr(entity, field.name) for field in dataclasses.fields(entity)}


@pytest.mark.parametrize(
    ("values", "error"),
    [({"key": None}, AttributeError), ({"key": "x" * 32_768}, struct.error)],
    ids=["null", "too long"],
)
def test_a_value_that_does_not_fit_its_field_is_refused(
    values: dict[str, Any], error: type[Exception]
) -> None:
    entity_type = message_class(ApiKey.FIND_COORDINATOR, 2, "request")

    with pytest.raises(error):
        ours(made(entity_type, **{**_fields(filled(entity_type)), **values}))
