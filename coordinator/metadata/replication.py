"""The leader's answer to a follower of the metadata log that fetches from a position (KIP-595, KIP-630).
Pure.

The rules are those of Kafka's `RaftLog.validateOffsetAndEpoch`, and of its leader, which sends a follower
without any records to the newest snapshot at once.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from barnabas.coordinator.metadata.snapshot import BOOTSTRAP_ID, SnapshotId


class DivergingEpoch(NamedTuple):
    """The newest epoch, and its end, that leader and follower may have in common: the follower truncates its
    log there and fetches again.
    """

    leader_epoch: int
    end_offset: int


class EpochLog(Protocol):
    """The questions to the leader's log."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def latest_leader_epoch(self) -> int:
        """The epoch of the last record; -1 if there is none, or it is unknown."""
        ...

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the newest epoch not above the asked one; (-1, -1) if it is unknown."""
        ...


def locate_follower(
    log: EpochLog, snapshot_ids: Sequence[SnapshotId], fetch_offset: int, last_fetched_epoch: int
) -> SnapshotId | DivergingEpoch | None:
    """None if the log continues at `fetch_offset` for a follower whose last record has `last_fetched_epoch`.
    Otherwise the next step: the snapshot to read, or where to truncate its log.

    `snapshot_ids` are in the order in which they were taken.
    """
    newest = snapshot_ids[-1] if snapshot_ids else None
    if fetch_offset == 0 and newest is not None and newest != BOOTSTRAP_ID:
        return newest
    if fetch_offset == log.log_start_offset == 0:
        return None
    if newest is not None and _is_below(log, snapshot_ids[0], fetch_offset, last_fetched_epoch):
        return newest
    leader_epoch, end_offset = _end_of(log, snapshot_ids, last_fetched_epoch)
    if leader_epoch == last_fetched_epoch and fetch_offset <= end_offset:
        return None
    return DivergingEpoch(leader_epoch, end_offset)


def _is_below(log: EpochLog, oldest: SnapshotId, fetch_offset: int, last_fetched_epoch: int) -> bool:
    """Whether the log no longer has the records that show this follower's position."""
    start_offset = log.log_start_offset
    return (
        fetch_offset < start_offset
        or (fetch_offset == start_offset and last_fetched_epoch != oldest.epoch)
        or last_fetched_epoch < oldest.epoch
    )


def _end_of(log: EpochLog, snapshot_ids: Sequence[SnapshotId], leader_epoch: int) -> tuple[int, int]:
    """(epoch, end offset) of the newest epoch not above the asked one, from the log and the snapshots."""
    found_epoch, end_offset = log.end_offset_for_epoch(leader_epoch)
    if found_epoch == leader_epoch and snapshot_ids and end_offset == snapshot_ids[0].end_offset:
        # The epoch ends where the log begins: unless it is the oldest snapshot's, the log has no record of
        # it.
        return snapshot_ids[0].epoch, end_offset
    if found_epoch >= 0:
        return found_epoch, end_offset
    latest_epoch = log.latest_leader_epoch
    if latest_epoch < 0:
        latest_epoch = snapshot_ids[-1].epoch if snapshot_ids else 0
    return latest_epoch, log.log_end_offset
