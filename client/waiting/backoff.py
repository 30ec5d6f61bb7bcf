"""The pause before the next try: exponential, bounded, and different for each client. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

FACTOR: Final = 2
JITTER: Final = 0.2
"""A pause is up to this share longer or shorter, so that the clients of a broker that restarts do not all
connect in the same millisecond."""


class Backoff:
    """The pauses of one repeated operation: `next_ms` after each failure, `reset` after a success."""

    __slots__ = ("_first_ms", "_max_ms", "_next_ms", "_random")

    def __init__(self, first_ms: int, max_ms: int, random: Callable[[], float]) -> None:
        """`random` returns numbers from 0 (inclusive) to 1 (exclusive)."""
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._next_ms = first_ms
        self._random = random

    def next_ms(self) -> int:
        """The pause after one more failure."""
        base_ms = self._next_ms
        self._next_ms = min(base_ms * FACTOR, self._max_ms)
        return round(base_ms * (1 + JITTER * (2 * self._random() - 1)))

    def reset(self) -> None:
        self._next_ms = self._first_ms
