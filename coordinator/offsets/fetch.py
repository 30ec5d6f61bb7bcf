"""The answer to a fetch of committed offsets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from uuid import UUID

from barnabas.coordinator.offsets.committed_offset import OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.requests import FetchedOffset

IsApart = Callable[[str, UUID, int], bool]
"""Whether the member of an id is not the reader, and has a topic's partition, or a share of it, now."""


def fetched_offsets(
    offsets: CommittedOffsets,
    group_id: str,
    wanted: Mapping[str, Sequence[int]] | None,
    is_apart: IsApart | None,
    *,
    with_ranges: bool,
) -> Iterator[FetchedOffset]:
    """The offsets of the `wanted` partitions, or of all partitions with a committed offset.

    `is_apart` is given if the client requires stable offsets.
    """
    committed = offsets.of_group(group_id)
    unstable_for = is_apart if offsets.has_pending(group_id) else None
    if wanted is None:
        wanted = {name: list(partitions) for name, partitions in committed.items()}
    for name, partitions in wanted.items():
        of_topic = committed.get(name, {})
        for partition in partitions:
            key = OffsetKey(group_id, name, partition)
            if unstable_for is not None and _is_unstable(key, offsets, unstable_for):
                yield FetchedOffset(name, partition, None, is_unstable=True)
            else:
                found = offsets.individual.find(key) if with_ranges else None
                ranges = () if found is None else tuple(found.ranges)
                yield FetchedOffset(name, partition, of_topic.get(partition), ranges=ranges)


def _is_unstable(key: OffsetKey, offsets: CommittedOffsets, is_apart: IsApart) -> bool:
    """Whether an open transaction may replace the offset, or a former owner of the partition, or the reader
    itself, has ranges in one. Members that still have a share of it commit offsets that no other member
    reads.
    """
    if offsets.pending.is_pending(key):
        return True
    committers = {(pending.member_id, pending.topic_id) for pending in offsets.individual.pending(key)}
    return any(not is_apart(*committer, key.partition) for committer in committers)
