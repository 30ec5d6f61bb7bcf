"""One task of an audit: replays the share-partitions of one partition in one walk over its log.

It holds only live states, so the memory of a task is bounded for a log of any size:

    in-flight ranges            `RANGES_MAX` over all groups of the task, some 60 MB
    control offsets, packed     `PACKED_BYTES_MAX`, 64 MB
    a buffer and its packs      some 10 MB, and one pack of them as columns, some 30 MB

If there are fewer partitions than cores, their groups are split among several tasks. Each of these walks over
the whole log, which is a small part of the work. One pass returns either the deliveries, which are many, or
everything else, which is little.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from zlib import crc32

from barnabas.pipeline.audit import tables
from barnabas.pipeline.audit.checks import Violation
from barnabas.pipeline.audit.control_columns import ControlColumns
from barnabas.pipeline.audit.control_decoder import read_columns
from barnabas.pipeline.audit.control_walk import Found
from barnabas.pipeline.audit.data_offsets import DataOffsets, offset_count, pack_runs
from barnabas.pipeline.audit.delivery_rows import SharePartition, batch_of_deliveries, recorded_deliveries
from barnabas.pipeline.audit.findings import Findings, finding_rows, violation_row
from barnabas.pipeline.audit.live_ranges import RANGES_MAX
from barnabas.pipeline.audit.log_walk import LogWalk
from barnabas.pipeline.audit.share_history import ReplayedPack, ShareHistory
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.log_source.segment_slice import SegmentSlice

DELIVERIES: Final = "deliveries"
FINDINGS: Final = "findings"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTask:
    """The segments of one partition, and the groups of this task: those whose hash modulo `share_count` is
    `share`, and only those in `groups` if it is given. `is_cut` if the log begins above offset 0. Records
    below `log_start_offset` are deleted.
    """

    pieces: Sequence[SegmentSlice]
    is_cut: bool
    log_start_offset: int
    share: int = 0
    share_count: int = 1
    groups: Collection[str] | None = None
    raise_damage: bool = True

    @property
    def topic_partition(self) -> tuple[str, int]:
        return self.pieces[0].topic, self.pieces[0].partition

    def is_for(self, group: str) -> bool:
        """Whether this task has the group."""
        is_asked_for = self.groups is None or group in self.groups
        return is_asked_for and crc32(group.encode()) % self.share_count == self.share


class Answer(Protocol):
    """The result of a pass over one share-partition's history."""

    def take(
        self, history: ShareHistory, columns: ControlColumns, replayed: ReplayedPack
    ) -> Iterator[RecordBatch]: ...
    def finish(
        self, history: ShareHistory, log_start_offset: int, log_end_offset: int
    ) -> Iterator[RecordBatch]: ...


class _Deliveries:
    """Returns the deliveries."""

    def __init__(self, key: SharePartition) -> None:
        self._key = key

    def take(
        self, history: ShareHistory, columns: ControlColumns, replayed: ReplayedPack
    ) -> Iterator[RecordBatch]:
        yield from _all_deliveries(self._key, history, columns, replayed)
        history.checkpoints.clear()
        history.violations.clear()

    def finish(
        self, history: ShareHistory, log_start_offset: int, log_end_offset: int
    ) -> Iterator[RecordBatch]:
        yield from _last_deliveries(self._key, history)


class _Findings:
    """Returns everything except the deliveries."""

    def __init__(self, key: SharePartition) -> None:
        self._key = key
        self._findings = Findings(key)

    def take(
        self, history: ShareHistory, columns: ControlColumns, replayed: ReplayedPack
    ) -> Iterator[RecordBatch]:
        for batch in _all_deliveries(self._key, history, columns, replayed):
            self._findings.take_deliveries(batch)
        self._findings.take_history(history)
        yield self._findings.drain()

    def finish(
        self, history: ShareHistory, log_start_offset: int, log_end_offset: int
    ) -> Iterator[RecordBatch]:
        for batch in _last_deliveries(self._key, history):
            self._findings.take_deliveries(batch)
        self._findings.take_history(history)
        self._findings.finish(history, log_start_offset, log_end_offset)
        yield self._findings.drain()


def answer_of(answer: str) -> Callable[[SharePartition], Answer]:
    """The class for `DELIVERIES` or `FINDINGS`."""
    return _Deliveries if answer == DELIVERIES else _Findings


def bound_ranges(histories: Sequence[ShareHistory]) -> None:
    """Bounds the ranges of all share-partitions of a task together: the largest gives up its state."""
    if sum(history.range_count for history in histories) > RANGES_MAX:
        largest = max(histories, key=_range_count)
        largest.give_up(largest.last_control_offset)


def replay(task: ReplayTask, answer: str) -> Iterator[RecordBatch]:
    """Rows of `DELIVERY_COLUMNS` or `FINDING_COLUMNS`. Raises the errors of `LogWalk`."""
    replaying = _Replay(task, answer_of(answer))
    walk = LogWalk(task.pieces, raise_damage=task.raise_damage)
    for found in walk:
        yield from replaying.take(found)
    yield from replaying.finish(walk.end_offset)
    if answer == FINDINGS and task.share == 0 and walk.damage:
        yield _damage_rows(task, walk.damage)


class _Replay:
    """All groups of one task."""

    def __init__(self, task: ReplayTask, answer_for: Callable[[SharePartition], Answer]) -> None:
        self._task = task
        self._answer_for = answer_for
        self._is_cut = task.is_cut
        self._offsets = DataOffsets()
        self._groups: dict[bytes, tuple[ShareHistory, Answer] | None] = {}
        """The group by name in UTF-8; None for groups of other tasks."""

    def take(self, found: Found) -> Iterator[RecordBatch]:
        """Replays the records of one part of the log."""
        self._is_cut = self._is_cut or found.mark_count > 0
        self._offsets.add(pack_runs(found.runs), offset_count(found.runs), found.runs[0])
        for name, pack in found.packs.items():
            group = self._group(name)
            if group is not None:
                history, answer = group
                columns = read_columns(bytes(pack.payload))
                yield from answer.take(history, columns, history.take(columns))
        bound_ranges([group[0] for group in self._groups.values() if group is not None])

    def finish(self, log_end_offset: int) -> Iterator[RecordBatch]:
        for group in self._groups.values():
            if group is not None:
                yield from group[1].finish(group[0], self._task.log_start_offset, log_end_offset)

    def _group(self, name: bytes) -> tuple[ShareHistory, Answer] | None:
        if name not in self._groups:
            key = SharePartition(*self._task.topic_partition, name.decode())
            is_ours = self._task.is_for(key.group)
            history = ShareHistory(self._offsets, is_cut=self._is_cut)
            self._groups[name] = (history, self._answer_for(key)) if is_ours else None
        return self._groups[name]


def _range_count(history: ShareHistory) -> int:
    return history.range_count


def _damage_rows(task: ReplayTask, damage: Sequence[Violation]) -> RecordBatch:
    return finding_rows(
        (*task.topic_partition, None, tables.VIOLATION, violation_row(violation)) for violation in damage
    )


def _all_deliveries(
    key: SharePartition, history: ShareHistory, columns: ControlColumns, replayed: ReplayedPack
) -> Iterator[RecordBatch]:
    yield recorded_deliveries(key, columns, replayed, has_causes=history.is_in_data)
    yield from _drain_deliveries(key, history)


def _last_deliveries(key: SharePartition, history: ShareHistory) -> Iterator[RecordBatch]:
    history.finish()
    yield from _drain_deliveries(key, history)


def _drain_deliveries(key: SharePartition, history: ShareHistory) -> Iterator[RecordBatch]:
    if history.deliveries:
        yield batch_of_deliveries(key, history.deliveries)
        history.deliveries.clear()
