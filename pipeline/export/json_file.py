"""The JSON files of an export or a restore: a dataclass with a version number, checked when it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from barnabas.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Value = TypeVar("_Value")


def encode(value: DataclassInstance, version: int, **heading: str) -> str:
    """The content of the file: the heading, the version and the fields of the dataclass."""
    content = {**heading, "version": version, **asdict(value)}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def decode(shape: type[_Value], text: str, path: str, version: int, *, kind: str, **heading: str) -> _Value:
    """The dataclass from the file's content; `version` is the newest that is read.

    `kind` is the kind of the file for messages, such as "the manifest of an export". Raises `PipelineError`,
    which names the file and its kind, for another heading, version or content.
    """
    try:
        content: Any = json.loads(text)
        if any(content.get(name) != value for name, value in heading.items()):
            raise PipelineError(f"{path} is not {kind}.")
        if content["version"] not in range(1, version + 1):
            known = f"versions 1 to {version} are" if version > 1 else f"only version {version} is"
            raise PipelineError(f"{path} is {kind} in version {content['version']}; {known} read.")
        return _build(shape, content)
    except (AttributeError, ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{path} cannot be read as {kind}: {error!r}") from error


def _build(shape: type[_Value], content: Mapping[str, Any]) -> _Value:
    """A dataclass from the JSON of `asdict`; a missing field has its default. Raises TypeError."""
    hints = get_type_hints(shape)
    names = [field.name for field in fields(shape) if field.name in content]  # type: ignore[arg-type]
    return shape(**{name: _value(hints[name], content[name]) for name in names})


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        if type(None) in get_args(hint):
            return None
        raise TypeError(f"null where there must be a {hint}")
    if type(None) in get_args(hint):
        (hint,) = (member for member in get_args(hint) if member is not type(None))
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], entry) for entry in value)
    if get_origin(hint) is dict:
        return {_value(str, name): _value(str, entry) for name, entry in value.items()}
    if is_dataclass(hint):
        return _build(hint, value)  # type: ignore[arg-type]
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise TypeError(f"{value!r} where there must be a {hint.__name__}")
    return value
