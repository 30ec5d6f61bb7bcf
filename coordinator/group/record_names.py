"""How long the ids and names may be that coordinators' records have as keys."""

from __future__ import annotations

from typing import Final

NAME_BYTES_MAX: Final = 2**15 - 1
"""Keys have no place for longer ones, which newer versions of the requests do."""


def is_too_long(name: str | None) -> bool:
    """Whether no record has a place for this id or name."""
    return name is not None and len(name.encode()) > NAME_BYTES_MAX
