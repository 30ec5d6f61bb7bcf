"""The settings of a share group that a fetch goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from barnabas.share.partition.limits import ShareLimits


class AutoOffsetReset(NamedTuple):
    """The start offset of a share-partition before its first fetch: "latest", "earliest", or "by_duration"
    with milliseconds.
    """

    strategy: str
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupConfig:
    """One group's settings. `read_committed` is share.isolation.level, `forces_record_limit` is
    share.record.limit.force.
    """

    limits: ShareLimits
    read_committed: bool
    auto_offset_reset: AutoOffsetReset
    forces_record_limit: bool = False


class ShareGroupConfigs(Protocol):
    """The present settings of every group."""

    def of(self, group_id: str) -> ShareGroupConfig: ...
