"""The answer to a fetch of committed offsets. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from barnabas.coordinator.offsets.committed_offset import OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.requests import FetchedOffset


def fetched_offsets(
    offsets: CommittedOffsets,
    group_id: str,
    wanted: Mapping[str, Sequence[int]] | None,
    *,
    require_stable: bool,
) -> Iterator[FetchedOffset]:
    """The offsets of the `wanted` partitions, or of all partitions with a committed offset."""
    committed = offsets.of_group(group_id)
    checks_pending = require_stable and offsets.pending.has_group(group_id)
    if wanted is None:
        wanted = {name: list(partitions) for name, partitions in committed.items()}
    for name, partitions in wanted.items():
        of_topic = committed.get(name, {})
        for partition in partitions:
            if checks_pending and offsets.pending.is_pending(OffsetKey(group_id, name, partition)):
                yield FetchedOffset(name, partition, None, is_unstable=True)
            else:
                yield FetchedOffset(name, partition, of_topic.get(partition))
