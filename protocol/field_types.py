"""How kio's dataclasses mark a nullable field: a union with None, around the value or the array."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, get_args, get_origin


def without_none(annotation: Any) -> tuple[Any, bool]:
    """The type of a field's non-null values, and whether the field is nullable."""
    if get_origin(annotation) is not UnionType:
        return annotation, False
    (value_type,) = (argument for argument in get_args(annotation) if argument is not NoneType)
    return value_type, True
