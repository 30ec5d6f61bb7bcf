"""The search for the last recorded changes of some records, backwards through the control records of a group.

Only deltas have causes. A change that was recorded as part of a checkpoint is not found. The search ends when
all wanted offsets are found, before the first wanted record, where the group began anew, and at its limits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import Cause
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.storage.errors import StorageError
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog

SEARCHED_RECORDS_MAX: Final = 500
"""The most control records that one search reads."""
SEARCHED_BYTES_MAX: Final = 512 * 1024
"""The most bytes of control records that one search reads; the last one may exceed it."""

Span = tuple[int, int]
"""First and last offset, both inclusive."""

_first_offset, _last_offset = itemgetter(0), itemgetter(1)
_OFFSET_MAX: Final = (1 << 63) - 1


class _Missing:
    """The wanted offsets whose changes have not been found yet, as ascending spans."""

    def __init__(self, wanted: Sequence[Span]) -> None:
        self._spans = list(wanted)

    def __bool__(self) -> bool:
        return bool(self._spans)

    @property
    def first_offset(self) -> int:
        return self._spans[0][0]

    def take(self, first_offset: int, last_offset: int) -> list[Span]:
        """The missing offsets of the range, which are missing no longer."""
        low = bisect_left(self._spans, first_offset, key=_last_offset)
        high = bisect_right(self._spans, last_offset, lo=low, key=_first_offset)
        overlapping = self._spans[low:high]
        if not overlapping:
            return []
        before = (overlapping[0][0], first_offset - 1)
        behind = (last_offset + 1, overlapping[-1][1])
        self._spans[low:high] = [(first, last) for first, last in (before, behind) if first <= last]
        return [(max(first, first_offset), min(last, last_offset)) for first, last in overlapping]

    def give_up_from(self, offset: int) -> None:
        """The changes of this and all higher offsets will not be found."""
        self.take(offset, _OFFSET_MAX)


def find_last_changes(
    log: PartitionLog, group_id: str, group_incarnation: int, wanted: Sequence[Span]
) -> list[RecordedChange]:
    """The last changes of the wanted offsets, as far as they are found: ascending, disjoint, inside of the
    wanted spans, which are ascending and disjoint, too.
    """
    missing = _Missing(wanted)
    found: list[RecordedChange] = []
    try:
        for record in _newest_first(log, group_id, group_incarnation, missing):
            if isinstance(record, ShareCheckpoint):
                # After a reset, older changes of these offsets belong to an earlier round of deliveries.
                missing.give_up_from(record.end_offset)
            else:
                found += _changes_in(record, missing)
    except StorageError:
        pass  # The damage was logged. Changes before it remain unknown.
    return sorted(found)


def _newest_first(
    log: PartitionLog, group_id: str, group_incarnation: int, missing: _Missing
) -> Iterator[ShareCheckpoint | ShareDelta]:
    """The group's records while changes are missing. A record lies behind all records whose states it has."""
    read_count = read_bytes = 0
    if not missing:
        return
    for entry in log.share_records.newest(group_hash(group_id), down_to_offset=missing.first_offset):
        is_at_limit = read_count >= SEARCHED_RECORDS_MAX or read_bytes >= SEARCHED_BYTES_MAX
        if is_at_limit or not missing or entry.offset < missing.first_offset:
            return
        read_count += 1
        read_bytes += entry.length_bytes
        _, record = log.share_records.read(entry)
        if record.group_id != group_id:
            continue
        if record.group_incarnation != group_incarnation:
            return
        if isinstance(record, ShareCheckpoint) and record.deleted:
            return
        yield record


def _changes_in(delta: ShareDelta, missing: _Missing) -> Iterator[RecordedChange]:
    """The changes of missing offsets in the delta. States without a cause only fill the gaps between."""
    for base_offset, last_offset, state, count, cause, member, _ in delta.states:
        if cause is not Cause.NONE:
            for first, last in missing.take(base_offset, last_offset):
                yield RecordedChange(first, last, state, count, cause, member, delta.decided_at_ms)
