"""Large logs, written into a stopped broker's data directory by the broker's own storage code.

Producing gigabytes over the network would take minutes per run, and is not part of the measurement.
"""

import asyncio
import time
from pathlib import Path
from uuid import UUID

from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    build_control_batch,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.protocol.record_batch import build_batch, validate_produced
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.filesystem import RealFileSystem
from barnabas.storage.log.pending_append import AppendGroup
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.control_batch import ControlBatch

GROUP = "of the filling"
DELTAS_PER_CHECKPOINT = 500

_VALUE_BYTES = 1_000
_RECORDS_PER_BATCH = 16
_FLUSH_BYTES = 64 << 20


def fill_log(directory: Path, topic: str, topic_id: UUID, size_bytes: int) -> None:
    """Fills partition 0 to this size: batches of 16 KB, each followed by a group's control record."""
    asyncio.run(_fill(directory, topic, topic_id, size_bytes))


async def _fill(directory: Path, topic: str, topic_id: UUID, size_bytes: int) -> None:
    logs = await LogDirectory.open(RealFileSystem(), str(directory), node_id=1, wall_ms=_wall_ms)
    log = await logs.log(topic, 0, topic_id, LogConfig())
    state = _GroupState()
    batch = build_batch(
        0, [(None, bytes(_VALUE_BYTES))] * _RECORDS_PER_BATCH, leader_epoch=-1, timestamp_ms=_wall_ms()
    )
    batches = validate_produced(batch, message_bytes_max=2**31 - 1)
    while log.size_bytes < size_bytes:
        await log.append_produced(batch, batches, _wall_ms())
        log.append(state, _wall_ms())
        if log.flusher.unflushed_bytes > _FLUSH_BYTES:
            await log.flush()
    await logs.close()


class _GroupState:
    """A leader's chain of control records: deltas, and a checkpoint after `DELTAS_PER_CHECKPOINT`."""

    size_bytes = 256
    offset_count = 1
    timestamp_ms = -1

    def __init__(self) -> None:
        self._checkpoint_epoch = 0
        self._delta_count = DELTAS_PER_CHECKPOINT
        self._last_control_offset = -1

    def plan(self, group: AppendGroup) -> None:
        group.add_control(self._next_record(group.next_offset, group.leader_epoch))
        group.appends.append(self)

    def written(self, log_start_offset: int) -> None:
        """The next record may follow."""

    def failed(self, error: Exception) -> None:
        raise error

    def _next_record(self, offset: int, leader_epoch: int) -> ControlBatch:
        """The control record at this offset."""
        if self._delta_count == DELTAS_PER_CHECKPOINT:
            self._checkpoint_epoch, self._delta_count = self._checkpoint_epoch + 1, 0
            checkpoint = ShareCheckpoint(
                GROUP, 1, self._checkpoint_epoch, _wall_ms(), 0, leader_epoch, offset, offset, 0
            )
            kind, (key, value) = ControlType.SHARE_CHECKPOINT, encode_checkpoint(checkpoint)
        else:
            self._delta_count += 1
            state = StateRange(offset, offset, RecordState.ACKNOWLEDGED, 1, Cause.ACCEPT)
            delta = ShareDelta(
                GROUP, 1, self._checkpoint_epoch, _wall_ms(), self._last_control_offset, (state,)
            )
            kind, (key, value) = ControlType.SHARE_DELTA, encode_delta(delta)
        self._last_control_offset = offset
        data = build_control_batch(offset, leader_epoch, _wall_ms(), key, value)
        return ControlBatch(data, 0, GROUP, kind, tombstone=False)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
