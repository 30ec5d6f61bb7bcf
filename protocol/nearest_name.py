"""The name that a misspelt one was most likely meant to be. Pure."""

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that is most like `name`; None if none is like it."""
    matches = get_close_matches(name, list(known), n=1)
    return matches[0] if matches else None


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """All of `known`, those that are most like `name` first."""
    return sorted(known, key=lambda one: (-SequenceMatcher(None, name, one).ratio(), one))
