"""The deletion of some of a group's offsets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.coordinator.offsets.committed_offset import OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.record_factory import deleted_offset
from barnabas.protocol.classic_group_records import OffsetRecord
from barnabas.protocol.errors import ErrorCode


def deletion_records(
    group_id: str,
    offsets: CommittedOffsets,
    keys: Sequence[tuple[str, int]],
    is_read: Callable[[str], bool],
) -> tuple[list[OffsetRecord], list[ErrorCode]]:
    """Tombstones for (topic name, partition) pairs, and the outcome of each.

    GROUP_SUBSCRIBED_TO_TOPIC if `is_read` returns true for the topic's name. Deleting an unknown offset
    succeeds.
    """
    records: list[OffsetRecord] = []
    codes: list[ErrorCode] = []
    for topic_name, partition in keys:
        if is_read(topic_name):
            codes.append(ErrorCode.group_subscribed_to_topic)
            continue
        codes.append(ErrorCode.none)
        key = OffsetKey(group_id, topic_name, partition)
        if offsets.has(key):
            records.append(deleted_offset(key))
    return records, codes
