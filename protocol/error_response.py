"""A response that answers a whole request with one error code, made from the structure of both messages.

A message with an error code of its own has nothing else. Any other message repeats the list of the request:
each of its topics, partitions, groups or keys gets the code. It is the answer of Kafka's
`AbstractRequest.getErrorResponse`, for the messages that kio reads and writes. Pure.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Final, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from barnabas.protocol.errors import ErrorCode

MessageT = TypeVar("MessageT")

_ZEROS: Final[Mapping[type, object]] = {
    bool: False,
    int: 0,
    str: "",
    bytes: b"",
    UUID: UUID(int=0),
    datetime.timedelta: datetime.timedelta(0),
    datetime.datetime: datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
}


class _Field(NamedTuple):
    """A field of a response. `element` is the class of a list's elements, if they are messages."""

    name: str
    kind: type[object]
    is_required: bool
    is_nullable: bool
    element: type[object] | None

    @property
    def is_message(self) -> bool:
        """Whether the value is a message itself."""
        return is_dataclass(self.kind)


def error_response(response: type[MessageT], request: object, code: ErrorCode) -> MessageT:
    """The response of this class to `request`, with `code` and as little else as possible."""
    given: dict[str, object] = {}
    found = _fields_of(cast("Hashable", response))
    has_code = any(field.kind is ErrorCode for field in found)
    for field in found:
        if field.kind is ErrorCode:
            given[field.name] = code
        elif field.element is not None and not has_code and _tells_errors(cast("Hashable", field.element)):
            given[field.name] = _repeated(field.element, request, code)
        elif _value(request, field) is not None:
            given[field.name] = _value(request, field)
        elif field.is_required:
            given[field.name] = _zero(field)
    return response(**given)


def _repeated(element: type[object], request: object, code: ErrorCode) -> tuple[object, ...]:
    """An element for each one of the request's list."""
    return tuple(error_response(element, entry, code) for entry in _first_list(request))


def _first_list(request: object) -> tuple[object, ...]:
    """The first field of the request that is a list; empty without one."""
    for value in _values_of(request):
        if isinstance(value, tuple):
            return cast("tuple[object, ...]", value)
    return ()


def _value(request: object, field: _Field) -> object:
    """The request's value for a field: of the field of this name, or the request itself if it is a plain
    element of a list, such as a group's id; None if there is none.
    """
    if is_dataclass(request):
        value: object = getattr(request, field.name, None)
        return value if isinstance(value, field.kind) and field.element is None else None
    is_key = isinstance(request, str | int) and field.is_required and issubclass(field.kind, str | int)
    return request if is_key and isinstance(request, _base(field.kind)) and field.name in _KEYS else None


_KEYS: Final = frozenset({"key", "group_id", "name", "partition_index", "partition", "transactional_id"})
"""The fields for which a list of plain values stands."""


def _zero(field: _Field) -> object:
    if field.is_nullable:
        return None
    if field.is_message:
        return error_response(field.kind, None, ErrorCode.none)
    return _ZEROS.get(_base(field.kind)) if field.kind is not tuple else ()


def _base(kind: type) -> type:
    """The plain type of a value on the wire."""
    return next((base for base in kind.__mro__ if base in _ZEROS), kind)


def _values_of(request: object) -> list[object]:
    return [getattr(request, field.name) for field in fields(request)] if is_dataclass(request) else []


@cache
def _fields_of(response: Hashable) -> list[_Field]:
    """The fields of a class of messages."""
    assert isinstance(response, type)
    assert is_dataclass(response)
    hints: Mapping[str, object] = get_type_hints(response)
    found: list[_Field] = []
    for field in fields(response):
        hint = hints[field.name]
        is_required = field.default is MISSING and field.default_factory is MISSING
        is_nullable = get_origin(hint) in (Union, UnionType)
        kind, element = _kind(hint)
        found.append(_Field(field.name, kind, is_required, is_nullable, element))
    return found


def _kind(hint: object) -> tuple[type[object], type[object] | None]:
    """The type of a field's value, and of its elements if they are messages."""
    arguments: list[object] = [argument for argument in get_args(hint) if argument is not type(None)]
    if get_origin(hint) in (Union, UnionType):
        return _kind(arguments[0])
    if get_origin(hint) is tuple:
        element = arguments[0]
        return tuple, element if isinstance(element, type) and is_dataclass(element) else None
    assert isinstance(hint, type), hint
    return hint, None


@cache
def _tells_errors(message: Hashable) -> bool:
    """Whether the message, or one within it, has an error code."""
    found = _fields_of(message)
    return any(
        field.kind is ErrorCode
        or (field.element is not None and _tells_errors(cast("Hashable", field.element)))
        for field in found
    )
