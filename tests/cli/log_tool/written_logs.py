"""A data directory with a log, written by the storage layer to a real disk, and functions that damage it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.__main__ import main
from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    build_control_batch,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.protocol.record_batch import iterate_headers
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.control_batch import ControlBatch
from tests.storage.log_building import NOW_MS, TOPIC_ID, append, append_control, sequenced
from tests.storage.steady_filesystem import SteadyFileSystem

GROUP = "workers"
INCARNATION = 7
FIRST, ACTIVE = "00000000000000000000", "00000000000000000008"
"""The segments of the log from `write`."""


async def write(path: Path, *, is_closed_in_order: bool = True) -> Path:
    """Makes a data directory with the log of `orders-0`; returns the log's directory.

    Data at 0-2, 6, 7, 10 and 11; share state of one group at 3-5, 8, 9, 12 and 13.
    """
    directory = await LogDirectory.open(SteadyFileSystem(), str(path), node_id=1, wall_ms=lambda: NOW_MS)
    directory.leader_epoch = 2
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig(segment_bytes=800, index_interval_bytes=1))
    append(log, 3, value=b"first")
    record(log, checkpoint())
    record(log, delta(3, available(0, 1)))
    record(log, delta(4, accepted(0, 0), cause=Cause.ACCEPT))
    sequenced(log, 0, 2)
    record(log, checkpoint(epoch=2, start_offset=1, end_offset=2, states=(available(1, 1),)))
    record(log, delta(8, accepted(2, 6), epoch=2))
    sequenced(log, 2, 2)
    record(log, delta(9, available(10, 10), epoch=2))
    record(log, delta(12, accepted(1, 1), epoch=2))
    assert log.log_end_offset == 14
    await directory.close(clean=is_closed_in_order)
    return path / "orders-0"


async def write_groups(path: Path, groups: Sequence[str]) -> Path:
    """Makes a data directory with a checkpoint of each of these groups; returns the log's directory."""
    directory = await LogDirectory.open(SteadyFileSystem(), str(path), node_id=1, wall_ms=lambda: NOW_MS)
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig())
    append(log, 1)
    for group in groups:
        record(log, checkpoint()._replace(group_id=group))
    await directory.close()
    return path / "orders-0"


def record(log: PartitionLog, made: ShareCheckpoint | ShareDelta) -> None:
    """Appends a control record."""

    def encode(offset: int, leader_epoch: int) -> ControlBatch:
        if isinstance(made, ShareCheckpoint):
            kind, (key, value), tombstone = (
                ControlType.SHARE_CHECKPOINT,
                encode_checkpoint(made),
                made.deleted,
            )
        else:
            kind, (key, value), tombstone = ControlType.SHARE_DELTA, encode_delta(made), False
        data = build_control_batch(offset, leader_epoch, NOW_MS, key, value)
        return ControlBatch(data, 0, made.group_id, kind, tombstone)

    append_control(log, encode, NOW_MS)


def checkpoint(
    *,
    epoch: int = 1,
    start_offset: int = 0,
    end_offset: int = 0,
    states: tuple[StateRange, ...] = (),
    state_epoch: int = 1,
    incarnation: int = INCARNATION,
    deleted: bool = False,
) -> ShareCheckpoint:
    return ShareCheckpoint(
        GROUP, incarnation, epoch, NOW_MS, state_epoch, 2, start_offset, end_offset, 0, states, deleted
    )


def delta(
    back_offset: int,
    *states: StateRange,
    epoch: int = 1,
    incarnation: int = INCARNATION,
    cause: Cause = Cause.NONE,
) -> ShareDelta:
    caused = tuple(one._replace(cause=cause, member="member-1" if cause else None) for one in states)
    return ShareDelta(GROUP, incarnation, epoch, NOW_MS, back_offset, caused)


def available(base_offset: int, last_offset: int) -> StateRange:
    return StateRange(base_offset, last_offset, RecordState.AVAILABLE, 1)


def accepted(base_offset: int, last_offset: int) -> StateRange:
    return StateRange(base_offset, last_offset, RecordState.ACKNOWLEDGED, 1)


def batch_positions(path: Path) -> dict[int, int]:
    """The position of each batch in a segment, by base offset."""
    return {header.base_offset: position for position, header in iterate_headers(path.read_bytes())}


def spoil(path: Path, change: Callable[[bytearray], None]) -> None:
    """Writes the file again with the change."""
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


class LogCommand:
    """`barnabas log`, run in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *arguments: str | Path) -> tuple[int, list[str]]:
        """The exit code, and the lines printed to standard output and to standard error."""
        self._capsys.readouterr()  # drops the lines of logs that the test itself has opened
        exit_code = main(["log", *map(str, arguments)])
        printed = self._capsys.readouterr()
        return exit_code, (printed.out + printed.err).splitlines()

    def rows(self, *arguments: str | Path) -> list[Mapping[str, Any]]:
        """The rows that are printed as JSON."""
        return [json.loads(line) for line in self.run(*arguments, "--json")[1]]
