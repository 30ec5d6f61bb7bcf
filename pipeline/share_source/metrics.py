"""What a query has acquired and what became of it, counted since its checkpoint began (pure).

The counts go into the offset, so that they outlive the driver, and into the query's progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

UNKNOWN_LAG: Final = -1


@dataclass(slots=True)
class ShareMetrics:
    """Counts of offsets; `lag` alone is of the moment."""

    acquired: int = 0
    """Acquired from the group, redeliveries included."""
    emitted: int = 0
    """Put into batches."""
    deduplicated: int = 0
    """Redelivered though an earlier batch had done them: acknowledged, and not emitted."""
    renewed: int = 0
    """Renewals of locks."""
    expired: int = 0
    """Locks that were lost before their records were acknowledged: time ran out, or the connection broke."""
    released: int = 0
    """By decision, to be delivered again."""
    rejected: int = 0
    """By decision, never to be delivered again."""
    omitted: int = 0
    """Left out of a repeated batch, because other members of the group have got them meanwhile."""
    twice: int = 0
    """Of a batch that was done and not acknowledged when the query was killed, and that other members may
    have got before the query was back."""
    lag: int = UNKNOWN_LAG
    """Records that the group is not done with, in all partitions, when last asked; -1 if not known."""

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> ShareMetrics:
        """Counts that are not known here are left out, missing ones begin at 0."""
        return cls(**{one.name: int(given[one.name]) for one in fields(cls) if one.name in given})
