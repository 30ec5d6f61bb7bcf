"""Bugs that the broker doesn't have, planted to see whether the simulation finds them.

Each changes one behaviour of the real code, the way a slip of the hand would.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from barnabas.broker.leader.log_state_store import LogStateStore
from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.storage.append import ControlBatch
from barnabas.storage.appender import Appender
from barnabas.storage.filesystem import File
from barnabas.storage.pending_append import AppendGroup

# pyright: reportPrivateUsage=false

_encode: Callable[[LogStateStore, Any, int, int], list[ControlBatch]] = LogStateStore._encode
_record: Callable[[LogStateStore, str, Any, int], ShareCheckpoint | ShareDelta] = LogStateStore._record


@contextmanager
def dropped_fsync() -> Generator[None]:
    """With log.flush=always an append is answered when it's written, synced or not."""

    def write(self: Appender, group: AppendGroup, files: Sequence[File], **_: object) -> int:
        return self._write(group, files[-1])

    with patch.object(Appender, "_write_and_sync", write):
        yield


@contextmanager
def swapped_control_records() -> Generator[None]:
    """Two groups' records that share an append stand in the log the other way round than is believed."""

    def encode(
        self: LogStateStore, submission: Any, base_offset: int, leader_epoch: int
    ) -> list[ControlBatch]:
        batches = _encode(self, submission, base_offset, leader_epoch)
        if len(submission.written) == 2:
            first, second = submission.written
            submission.written[:] = (
                first._replace(offset=second.offset),
                second._replace(offset=first.offset),
            )
        return batches

    with patch.object(LogStateStore, "_encode", encode):
        yield


@contextmanager
def forgotten_back_offset() -> Generator[None]:
    """The first delta behind a checkpoint doesn't say what it follows."""

    def record(
        self: LogStateStore, group_id: str, changes: Any, leader_epoch: int
    ) -> ShareCheckpoint | ShareDelta:
        made = _record(self, group_id, changes, leader_epoch)
        if isinstance(made, ShareDelta) and changes.leader.image.delta_count == 0:
            return made._replace(back_offset=-1)
        return made

    with patch.object(LogStateStore, "_record", record):
        yield
