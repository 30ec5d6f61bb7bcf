"""The form of a rule for an allowed difference, and of a list with a meaningless order."""

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
    """`api: path`; the identity of an element of a list is in braces, as in `configs{flush.ms}`."""
    kafka: str
    ours: str
    why: str
    allows: Callable[[Plain, Plain], bool] = _any
    """The pairs of values that it allows, Kafka's first."""
    ends_history: bool = False
    """Later differences follow from this one, so the rest of the history is left out."""


class Order(NamedTuple):
    """A list whose order is meaningless."""

    fields: tuple[str, ...]
    why: str
