"""A decoder of values, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from barnabas.pipeline.columnar import ArrowType


class ValueMisfit(Exception):  # noqa: N818
    """A value doesn't fit the schema; the message gives the reason. It is not a bug of the decoder."""


def is_list(part: Any) -> bool:
    """Whether a part of a parsed schema is a list. Unlike isinstance, it doesn't narrow the type."""
    return isinstance(part, list)


class Decoder(Protocol):
    """Decodes values by one schema."""

    @property
    def arrow_type(self) -> ArrowType:
        """The type of the values from `decode`."""
        ...

    def decode(self, value: bytes) -> Any:
        """A value as Python objects that Arrow converts to `arrow_type`.

        Raises `ValueMisfit` with the reason if it knows one; malformed bytes may raise any other error, too.
        """
        ...
