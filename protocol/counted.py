"""Counts in sentences for users: "1 topic", "2,000 topics". Pure."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """The count with its noun. The plural takes an s unless it is given."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
