"""The form of a rule for an allowed difference, and of a list whose order means nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.differential.plain import Plain


def _any(_kafka: Plain, _ours: Plain) -> bool:
    return True


class Rule(NamedTuple):
    """One allowed difference."""

    name: str
    fields: tuple[str, ...]
    """`api: path`; what tells an element of a list from others is in braces, as in `configs{flush.ms}`."""
    kafka: str
    ours: str
    why: str
    allows: Callable[[Plain, Plain], bool] = _any
    """Which pairs of values it is about, Kafka's first."""
    ends_history: bool = False
    """What comes after it follows from it, so that the rest of the history is left out."""


class Order(NamedTuple):
    """A list whose order means nothing."""

    fields: tuple[str, ...]
    why: str
