"""What one fetch gets from a share-partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol.extended.runs import Runs
from barnabas.protocol.varint import Buffer


class Handout(NamedTuple):
    """The records for one fetch: whole producer batches, and the ranges that the member acquired. Empty with
    an error.
    """

    acquired: Sequence[tuple[int, int, int]]
    """Disjoint, ascending: first offset, last offset (inclusive), delivery count with this delivery."""
    buffers: list[Buffer]
    size_bytes: int
    record_count: int
    more_may_follow: bool = False
    """Whether the next fetch may get records immediately, although this one gets none: all that it found have
    been archived, or it has looked at as many as one fetch may.
    """
    runs: Runs | None = None
    """Which of these records are taken back together, if any."""
    error_code: int = 0
    error_message: str | None = None


NOTHING = Handout((), [], 0, 0)
