"""The offset at which the metadata log may begin (KIP-630, "When to Increase the Log Begin Offset"). Pure.

The log begins where a snapshot ends, and never after the end of the second newest one: if the newest cannot
be read, the one before it and the log from there have the same content. The log also waits until its live
followers have the records that it deletes, but not for ever, and not with too much on the disk.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.coordinator.metadata.snapshot import SnapshotId
from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings

SNAPSHOTS_KEPT = 2


class StoredSnapshot(NamedTuple):
    """A snapshot on the disk; `last_written_ms` (monotonic) is when the last record that it replaces was
    written.
    """

    snapshot_id: SnapshotId
    last_written_ms: int
    size_bytes: int


def decide_log_start(
    snapshots: Sequence[StoredSnapshot],
    log_start_offset: int,
    *,
    log_bytes: int,
    replicated_offset: int | None,
    settings: SnapshotSettings,
    now_ms: int,
) -> int:
    """The offset up to which the log start may move: `log_start_offset` itself if it may not move.

    `snapshots` are in the order in which they were taken; `replicated_offset` is the offset up to which all
    live followers have the records (None without followers); `now_ms` is monotonic.
    """
    stored_bytes = log_bytes + sum(snapshot.size_bytes for snapshot in snapshots)
    is_too_much = 0 <= settings.retention_bytes < stored_bytes
    for snapshot in reversed(snapshots[: 1 - SNAPSHOTS_KEPT]):
        end_offset = snapshot.snapshot_id.end_offset
        if end_offset <= log_start_offset:
            break
        is_replicated = replicated_offset is None or replicated_offset >= end_offset
        has_waited = now_ms - snapshot.last_written_ms >= settings.wait_ms
        if is_replicated or has_waited or is_too_much:
            return end_offset
    return log_start_offset


def waits_for_followers(snapshots: Sequence[StoredSnapshot], log_start_offset: int) -> bool:
    """Whether only followers keep the log from beginning at a later snapshot."""
    return any(
        snapshot.snapshot_id.end_offset > log_start_offset for snapshot in snapshots[: 1 - SNAPSHOTS_KEPT]
    )
