"""Regular expressions from clients: of topics to read (KIP-848), of ids to list (KIP-1152).

The syntax is RE2's, as in Apache Kafka (RE2/J): the time of a match grows linearly with the text, so no
expression can block the loop, as some would with Python's `re`. An expression that is longer than
`LENGTH_MAX`, or needs more than `MEMORY_BYTES_MAX` once compiled, is refused.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

LENGTH_MAX: Final = 1_000
"""Characters of an expression; the time to compile one grows with their square."""
MEMORY_BYTES_MAX: Final = 1024 * 1024
"""Memory of a compiled expression."""


class RegexError(ValueError):
    """The text is not a regular expression, or the expression is too large."""


class RegularExpression:
    """A compiled expression."""

    __slots__ = ("_compiled",)

    def __init__(self, expression: str) -> None:
        """Raises `RegexError`."""
        if len(expression) > LENGTH_MAX:
            raise RegexError(f"it has more than {LENGTH_MAX} characters")
        # Imported here, so that a broker without expressions does not load the library. It has no types.
        re2: Any = import_module("re2")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MEMORY_BYTES_MAX
        try:
            self._compiled: Any = re2.compile(expression, options)
        except re2.error as error:
            raise RegexError(_reason(error)) from error

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        return self._compiled.fullmatch(text) is not None


def _reason(error: Exception) -> str:
    reason = error.args[0]
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
