"""All recorded changes of one record by a group, newest first, page by page.

A delivery is not recorded, only its end. The search goes backwards through the control records of the group.
It ends where the group had not acquired the record yet, before the record itself, or where the group began
anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import Cause
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.storage.format.share_index import ShareIndexEntry, group_hash
from barnabas.storage.log.partition_log import PartitionLog

SEARCHED_RECORDS_MAX: Final = 500
"""The most control records that one page reads."""
SEARCHED_BYTES_MAX: Final = 512 * 1024
"""The most bytes of control records that one page reads; the last one may exceed it."""

FROM_NEWEST: Final = -1
"""As the position of the first page."""


class HistoricChange(NamedTuple):
    """A change, and the offset of the control record that has it."""

    control_offset: int
    change: RecordedChange


class HistoryPage(NamedTuple):
    """Some changes, newest first; there may be none although more follow."""

    changes: list[HistoricChange]
    next_before: int | None
    """The position of the next page; None if this is the last one."""
    is_complete: bool
    """On the last page: whether no older change can have been cleaned away."""


def find_history(
    log: PartitionLog, group_id: str, group_incarnation: int, offset: int, before: int, changes_max: int
) -> HistoryPage:
    """The changes in control records before the position `before`. Raises StorageError."""
    changes: list[HistoricChange] = []
    read_count = read_bytes = 0
    for entry in _entries(log, group_id, offset, before):
        is_full = len(changes) >= changes_max
        if is_full or read_count >= SEARCHED_RECORDS_MAX or read_bytes >= SEARCHED_BYTES_MAX:
            return HistoryPage(changes, entry.offset + 1, is_complete=False)
        read_count += 1
        read_bytes += entry.length_bytes
        _, record = log.read_control_record(entry)
        if record.group_id != group_id:
            continue
        if record.group_incarnation != group_incarnation or _is_beginning(record, offset):
            return HistoryPage(changes, None, is_complete=True)
        if isinstance(record, ShareDelta):
            changes += (HistoricChange(entry.offset, one) for one in _changes_of(record, offset))
    return HistoryPage(changes, None, is_complete=offset >= log.earliest_share_offset)


def _entries(log: PartitionLog, group_id: str, offset: int, before: int) -> Iterator[ShareIndexEntry]:
    """Those that may have a change of the record. A control record lies behind the records of its states."""
    for entry in log.newest_control_entries(group_hash(group_id), down_to_offset=offset):
        if entry.offset < offset:
            return
        if before == FROM_NEWEST or entry.offset < before:
            yield entry


def _is_beginning(record: ShareCheckpoint | ShareDelta, offset: int) -> bool:
    """Whether the group had not acquired the record then, or was deleted, or was reset before it."""
    return isinstance(record, ShareCheckpoint) and (record.deleted or record.end_offset <= offset)


def _changes_of(delta: ShareDelta, offset: int) -> Iterator[RecordedChange]:
    """States without a cause only fill the gaps between others."""
    for base_offset, last_offset, state, count, cause, member, _ in delta.states:
        if base_offset <= offset <= last_offset and cause is not Cause.NONE:
            yield RecordedChange(base_offset, last_offset, state, count, cause, member, delta.decided_at_ms)
