"""The content of a record: key, value and headers; and the deserializers of keys and values. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

Bytes = bytes | None
"""A key or a value on the wire; None stands for a null."""
Headers = tuple[tuple[str, bytes | None], ...]
"""Names and values, in the producer's order; a name may occur more than once."""

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Content(NamedTuple, Generic[KeyT, ValueT]):
    """The producer's data; the topic decides whether `timestamp_ms` is the producer's or the broker's."""

    timestamp_ms: int
    key: KeyT
    value: ValueT
    headers: Headers


class Deserializers(NamedTuple, Generic[KeyT, ValueT]):
    """The functions that make keys and values from bytes."""

    key: Callable[[Bytes], KeyT]
    value: Callable[[Bytes], ValueT]


def unchanged(data: Bytes) -> Bytes:
    """The deserializer of a consumer that has none."""
    return data
