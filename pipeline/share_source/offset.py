"""The source's offset: Spark writes it ahead of each batch, and it defines the batch. Pure.

An offset has the ranges of its batch, so that a replay holds the same records; the ledger of records that are
done but not confirmed; and the member's id, under which a restarted query joins its group again.

    {"version": 1, "sequence": 7, "group": "orders-to-lake", "member": "n2bR...",
     "topics": {"<topic id>": "orders"},
     "batch": {"<topic id>": {"0": [[100, 149, 1], ...]}},      first and last offset, delivery count
     "done": {"<topic id>": {"0": [[90, 99], ...]}}, "rejected": {...},
     "startOffsets": {"<topic id>": {"0": 90}}, "metrics": {"acquired": 150, ...}}

Topics have their ids: one that was deleted and created again is another topic. `sequence` grows by one with
each batch, so that no two offsets are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.ranges import AcquiredRange, OffsetRange
from barnabas.protocol.identity import TopicIdPartition

VERSION: Final = 1
RANGES_PER_BATCH_MAX: Final = 1_000
"""The bound of a batch's ranges: some 30 kB of JSON. Other acquired ranges are in the next batch."""

_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOffset:
    """One offset. Ranges are ascending and disjoint within a partition."""

    group_id: str
    member_id: str
    sequence: int = 0
    topics: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    """Names of the topics in the batch, by id."""
    batch: Mapping[TopicIdPartition, list[AcquiredRange]] = field(
        default_factory=dict[TopicIdPartition, list[AcquiredRange]]
    )
    done: Mapping[TopicIdPartition, list[OffsetRange]] = field(
        default_factory=dict[TopicIdPartition, list[OffsetRange]]
    )
    rejected: Mapping[TopicIdPartition, list[OffsetRange]] = field(
        default_factory=dict[TopicIdPartition, list[OffsetRange]]
    )
    start_offsets: Mapping[TopicIdPartition, int] = field(default_factory=dict[TopicIdPartition, int])
    """The last known start offsets (SPSO) of the group."""
    metrics: ShareMetrics = field(default_factory=ShareMetrics)

    def to_json(self) -> dict[str, Any]:
        """The JSON for Spark's offset log. Empty fields are left out."""
        members: dict[str, Any] = {
            "version": VERSION,
            "sequence": self.sequence,
            "group": self.group_id,
            "member": self.member_id,
        }
        maps = {
            "topics": {str(topic_id): name for topic_id, name in self.topics.items()},
            "batch": _by_topic(self.batch, _lists),
            "done": _by_topic(self.done, _lists),
            "rejected": _by_topic(self.rejected, _lists),
            "startOffsets": _by_topic(self.start_offsets, int),
            "metrics": self.metrics.to_json(),
        }
        return members | {name: found for name, found in maps.items() if found}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> ShareOffset:
        """Raises `PipelineError` if this is no offset of this source, or one of a newer version."""
        version = given.get("version")
        if version != VERSION:
            raise PipelineError(
                f"The checkpoint holds an offset of version {version!r}, where kafka-share knows {VERSION}: "
                "it was written by another source, or by a newer version of this one."
            )
        try:
            offset = cls(
                group_id=str(given["group"]),
                member_id=str(given["member"]),
                sequence=int(given["sequence"]),
                topics={UUID(topic_id): str(name) for topic_id, name in given.get("topics", {}).items()},
                batch=_by_partition(given.get("batch", {}), _acquired_ranges),
                done=_by_partition(given.get("done", {}), _offset_ranges),
                rejected=_by_partition(given.get("rejected", {}), _offset_ranges),
                start_offsets=_by_partition(given.get("startOffsets", {}), int),
                metrics=ShareMetrics.from_json(given.get("metrics", {})),
            )
            for topic_id, _ in offset.batch:
                offset.topics[topic_id]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PipelineError(f"The checkpoint holds no offset of kafka-share: {error!r} in it.") from error
        return offset


def _by_topic(
    kept: Mapping[TopicIdPartition, _Kept], write: Callable[[_Kept], Any]
) -> dict[str, dict[str, Any]]:
    by_topic: dict[str, dict[str, Any]] = {}
    for (topic_id, index), value in sorted(kept.items()):
        by_topic.setdefault(str(topic_id), {})[str(index)] = write(value)
    return by_topic


def _by_partition(
    given: Mapping[str, Mapping[str, Any]], read: Callable[[Any], _Kept]
) -> dict[TopicIdPartition, _Kept]:
    return {
        TopicIdPartition(UUID(topic_id), int(index)): read(value)
        for topic_id, partitions in given.items()
        for index, value in partitions.items()
    }


def _lists(ranges: list[OffsetRange] | list[AcquiredRange]) -> list[list[int]]:
    return [list(cast("tuple[int, ...]", offset_range)) for offset_range in ranges]


def _offset_ranges(given: list[list[int]]) -> list[OffsetRange]:
    return [OffsetRange(first, last) for first, last in given]


def _acquired_ranges(given: list[list[int]]) -> list[AcquiredRange]:
    return [AcquiredRange(first, last, delivery_count) for first, last, delivery_count in given]
