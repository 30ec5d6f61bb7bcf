"""The known name that is most similar to a misspelt one. Pure."""

from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The element of `known` that is most similar to `name`; None if none is similar."""
    from difflib import get_close_matches  # an ordinary start has no misspelt name

    matches = get_close_matches(name, list(known), n=1)
    return matches[0] if matches else None


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """All of `known`, the most similar to `name` first."""
    from difflib import SequenceMatcher  # an ordinary start has no misspelt name

    return sorted(known, key=lambda candidate: (-SequenceMatcher(None, name, candidate).ratio(), candidate))
