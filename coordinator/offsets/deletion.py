"""The deletion of some of a group's offsets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.coordinator.group.records import AnyOffsetRecord
from barnabas.coordinator.offsets.commit import range_tombstones
from barnabas.coordinator.offsets.committed_offset import OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.record_factory import deleted_offset
from barnabas.protocol.errors import ErrorCode


def tombstones_of(key: OffsetKey, offsets: CommittedOffsets) -> list[AnyOffsetRecord]:
    """The records that delete a committed offset and the ranges beyond it."""
    return [deleted_offset(key), *range_tombstones(key, offsets)]


def deletion_records(
    group_id: str,
    offsets: CommittedOffsets,
    keys: Sequence[tuple[str, int]],
    is_read: Callable[[str], bool],
) -> tuple[list[AnyOffsetRecord], list[ErrorCode]]:
    """Tombstones for (topic name, partition) pairs, and the outcome of each.

    GROUP_SUBSCRIBED_TO_TOPIC if `is_read` returns true for the topic's name. Deleting an unknown offset
    succeeds.
    """
    records: list[AnyOffsetRecord] = []
    codes: list[ErrorCode] = []
    for topic_name, partition in keys:
        if is_read(topic_name):
            codes.append(ErrorCode.group_subscribed_to_topic)
            continue
        codes.append(ErrorCode.none)
        key = OffsetKey(group_id, topic_name, partition)
        if offsets.has(key):
            records += tombstones_of(key, offsets)
    return records, codes
