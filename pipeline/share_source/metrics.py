"""Counts of acquired offsets and of their outcomes, since the query's checkpoint began. Pure.

The counts are in the offset, so they outlive the driver, and in the query's progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

UNKNOWN_LAG: Final = -1


@dataclass(slots=True)
class ShareMetrics:
    """Counts of offsets; only `lag` is a present value."""

    acquired: int = 0
    """Acquired from the group, redeliveries included."""
    emitted: int = 0
    """Put into batches."""
    deduplicated: int = 0
    """Redelivered after an earlier batch had done them: acknowledged, and not emitted."""
    renewed: int = 0
    """Renewals of locks."""
    expired: int = 0
    """Locks that were lost before their records were acknowledged: time ran out, or the connection broke."""
    released: int = 0
    """Released by a decision, to be delivered again."""
    rejected: int = 0
    """Rejected by a decision, never to be delivered again."""
    omitted: int = 0
    """Left out of a repeated batch, because other members of the group have got them meanwhile."""
    twice: int = 0
    """Of a batch that was done and not acknowledged when the query was killed: other members may have got
    them before the query was back."""
    lag: int = UNKNOWN_LAG
    """Records of all partitions that the group is not done with, at the last request; -1 if unknown."""

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> ShareMetrics:
        """Ignores unknown counts; missing ones begin at 0."""
        return cls(**{field.name: int(given[field.name]) for field in fields(cls) if field.name in given})
