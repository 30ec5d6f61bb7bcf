"""One task of an audit of share state in `__share_group_state`: one partition of that topic.

It reads the records once, in the order of the log, and replays them as equivalent control records
(`state_topic_records`). It reads only the ends of the topics themselves. Memory is bounded as in
`log_replay`: live ranges of all share-partitions of the task, and `PACK_BYTES` of translated records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from barnabas.pipeline.audit.control_decoder import read_columns
from barnabas.pipeline.audit.data_offsets import DataOffsets
from barnabas.pipeline.audit.delivery_rows import SharePartition
from barnabas.pipeline.audit.log_replay import Answer, answer_of, bound_ranges
from barnabas.pipeline.audit.log_walk import PACK_BYTES
from barnabas.pipeline.audit.share_history import ShareHistory
from barnabas.pipeline.audit.state_topic_records import StateTranslation
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.log_source.segment_file import OpenSegment
from barnabas.pipeline.log_source.segment_slice import OFFSET_MAX, SegmentSlice
from barnabas.pipeline.log_source.slice_reader import LogTask, read_log_slice
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.share_state_records import (
    ShareSnapshotValue,
    ShareUpdateValue,
    decode_share_state_record,
)

STATE_TOPIC: Final = "__share_group_state"

_COLUMNS: Final = ("offset", "timestamp", "key", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPartition:
    """A partition that share groups read: its topic's id in hex, the offset below which its records are
    deleted, and its newest segment that is not empty.
    """

    topic_id: str
    topic: str
    partition: int
    log_start_offset: int
    newest: SegmentSlice | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTask:
    """A partition of the state topic, and the partitions that its records may be about."""

    pieces: Sequence[SegmentSlice]
    data: Sequence[DataPartition]
    groups: Collection[str] | None = None
    raise_damage: bool = True


def replay_state_topic(task: StateTask, answer: str) -> Iterator[RecordBatch]:
    """Rows of `DELIVERY_COLUMNS` or `FINDING_COLUMNS`. Raises `CorruptLog` and `SegmentChanged`."""
    replaying = _StateReplay(task, answer_of(answer))
    for piece in task.pieces:
        wanted = LogTask(
            piece=piece, columns=_COLUMNS, offset_range=(0, OFFSET_MAX), skips_damage=not task.raise_damage
        )
        for rows in read_log_slice(wanted):
            for row in rows.to_pylist():
                replaying.take(row)
                if replaying.packed_bytes >= PACK_BYTES:
                    yield from replaying.drain()
    yield from replaying.drain()
    yield from replaying.finish()


class _Replayed:
    """One share-partition."""

    def __init__(self, key: SharePartition, answer: Answer, data: DataPartition) -> None:
        self.translation = StateTranslation(key.group)
        self.history = ShareHistory(DataOffsets(), is_cut=True, is_in_data=False)
        self.answer = answer
        self.data = data
        self.payload = bytearray()


class _StateReplay:
    """All share-partitions of one task."""

    def __init__(self, task: StateTask, answer_for: Callable[[SharePartition], Answer]) -> None:
        self._groups = task.groups
        self._answer_for = answer_for
        self._data = {
            TopicIdPartition(UUID(hex=partition.topic_id), partition.partition): partition
            for partition in task.data
        }
        self._replayed: dict[SharePartitionKey, _Replayed | None] = {}
        self.packed_bytes = 0

    def take(self, row: dict[str, Any]) -> None:
        """A record of the state topic."""
        if row["key"] is None or (decoded := decode_share_state_record(row["key"], row["value"])) is None:
            return
        key, value = decoded
        replayed = self._of(SharePartitionKey(key.group_id, key.topic_id, key.partition))
        if replayed is None:
            return
        offset, now_ms = row["offset"], round(row["timestamp"].timestamp() * 1000)
        if isinstance(value, ShareSnapshotValue):
            entries = replayed.translation.take_snapshot(value, offset, now_ms)
        elif isinstance(value, ShareUpdateValue):
            entries = replayed.translation.take_update(value, offset, now_ms)
        else:
            entries = replayed.translation.take_tombstone(offset, now_ms)
        replayed.payload += entries
        self.packed_bytes += len(entries)

    def drain(self) -> Iterator[RecordBatch]:
        """Replays the records that were translated since the last time."""
        for replayed in self._known():
            if replayed.payload:
                columns = read_columns(bytes(replayed.payload))
                replayed.payload.clear()
                yield from replayed.answer.take(replayed.history, columns, replayed.history.take(columns))
        self.packed_bytes = 0
        bound_ranges([replayed.history for replayed in self._known()])

    def finish(self) -> Iterator[RecordBatch]:
        for replayed in self._known():
            if replayed.history.first_control_offset >= 0:
                end_offset = _end_offset(replayed.data.newest)
                yield from replayed.answer.finish(
                    replayed.history, replayed.data.log_start_offset, end_offset
                )

    def _known(self) -> list[_Replayed]:
        return [replayed for replayed in self._replayed.values() if replayed is not None]

    def _of(self, key: SharePartitionKey) -> _Replayed | None:
        """The share-partition of a record; None for unwanted groups, and unwanted or missing topics."""
        if key not in self._replayed:
            data = self._data.get(key.topic_id_partition)
            is_wanted = data is not None and (self._groups is None or key.group_id in self._groups)
            self._replayed[key] = None
            if data is not None and is_wanted:
                named = SharePartition(data.topic, data.partition, key.group_id)
                self._replayed[key] = _Replayed(named, self._answer_for(named), data)
        return self._replayed[key]


def _end_offset(piece: SegmentSlice | None) -> int:
    """The end of a log, exclusive, by the headers of its newest batches."""
    if piece is None:
        return 0
    end = piece.segment_base_offset
    with OpenSegment(piece.log_path) as file:
        for _, header in file.headers(piece.start_position, piece.end_position):
            end = header.last_offset + 1
    return end
