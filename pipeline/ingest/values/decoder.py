"""A decoder of values, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from barnabas.pipeline.columnar import ArrowType


class ValueMisfit(Exception):  # noqa: N818
    """A value doesn't fit the schema; the message says why. It is no failure of ours."""


def is_list(part: Any) -> bool:
    """Whether a part of a parsed schema is a list; without a say in what type checkers take it for."""
    return isinstance(part, list)


class Decoder(Protocol):
    """Decodes values by one schema."""

    @property
    def arrow_type(self) -> ArrowType:
        """The type of what `decode` answers."""
        ...

    def decode(self, value: bytes) -> Any:
        """A value as Python objects that Arrow takes for `arrow_type`.

        Raises `ValueMisfit` where it knows what is wrong; any other error of the bytes' making is one, too.
        """
        ...
