"""Counts in sentences for users: "1 topic", "2,000 topics". Pure."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """The count with its noun, which takes an s in the plural."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
