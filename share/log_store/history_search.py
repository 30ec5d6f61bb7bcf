"""The search for the history of one record, backwards through the control records of its group.

A page reads a limited number of control records, as the search for last changes does (`change_search`).
Control records of earlier groups with the same name are part of the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.record_history import HistoryStep, history_step
from barnabas.share.log_store.change_search import SEARCHED_BYTES_MAX, SEARCHED_RECORDS_MAX
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog

FROM_NEWEST: Final = -1
"""As the position of the first page."""


class HistoryPage(NamedTuple):
    """A part of the history of one record, newest first."""

    steps: Sequence[HistoryStep]
    next_offset: int | None
    """The steps of control records before this offset follow; None after the last page."""


def find_history(
    log: PartitionLog,
    group_id: str,
    offset: int,
    before_offset: int,
    steps_max: int = SEARCHED_RECORDS_MAX,
) -> HistoryPage:
    """The steps of the record at `offset`, from control records before `before_offset`, or from all for
    `FROM_NEWEST`.

    A control record lies behind all records whose states it has, so the search ends there. Raises
    StorageError for one that cannot be read.
    """
    steps: list[HistoryStep] = []
    read_count = read_bytes = 0
    for entry in log.share_records.newest(group_hash(group_id), down_to_offset=offset):
        if entry.offset < offset:
            break
        if 0 <= before_offset <= entry.offset:
            continue
        is_full = len(steps) >= steps_max or read_count >= SEARCHED_RECORDS_MAX
        if is_full or read_bytes >= SEARCHED_BYTES_MAX:
            return HistoryPage(steps, entry.offset + 1)
        read_count += 1
        read_bytes += entry.length_bytes
        control_offset, record = log.share_records.read(entry)
        if record.group_id == group_id:
            step = history_step(offset, control_offset, record)
            if step is not None:
                steps.append(step)
    return HistoryPage(steps, None)
