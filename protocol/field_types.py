"""How kio's dataclasses say that a field can be null: a union with None, around the value or the array."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, get_args, get_origin


def without_none(annotation: Any) -> tuple[Any, bool]:
    """The type of a field's values other than null, and whether null is one."""
    if get_origin(annotation) is not UnionType:
        return annotation, False
    (value_type,) = (argument for argument in get_args(annotation) if argument is not NoneType)
    return value_type, True
