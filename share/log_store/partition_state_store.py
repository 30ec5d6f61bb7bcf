"""Share state as control records of the partition's own log: the durable half of its leaders
(docs/decisions/0001).

One store serves one log, for all the groups that read it. What their leaders decide is queued here; the log
calls back at write time, in log order, and everything queued then goes out in one append, one record for
each group: a SHARE_DELTA that chains to the group's control record before it, or a SHARE_CHECKPOINT where
the chain has grown long, or where a decision sets the start offset. Only when the bytes are in the file is
the record replayed on the group's durable image and the leader told to complete; after a failed write it is
told to abort.

It decides nothing itself, and knows no member, lock or session.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    StateRange,
    build_control_batch,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.errors import ApiError
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.recording import delta_states
from barnabas.storage.errors import ShareStateLost, StorageError
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.segments.append import Append, ControlBatch

Record = ShareCheckpoint | ShareDelta

DELTA_BYTES_PER_CHECKPOINT = 256 * 1024
"""A chain with so many bytes of deltas ends in a checkpoint, however few they are: deltas over thousands of
single records are large, and whoever loads the state reads them all.
"""


class _GroupChanges:
    """What one append is to say of one group: decisions of its leader, in order."""

    __slots__ = ("decisions", "leader")

    def __init__(self, leader: SharePartitionLeader) -> None:
        self.leader = leader
        self.decisions: list[Decision] = []

    def states(self) -> list[StateRange]:
        if len(self.decisions) == 1:
            changes = self.decisions[0].changes
        else:
            changes = [change for decision in self.decisions for change in decision.changes]
        return delta_states(self.leader.image, self.leader.core, changes)

    def start_offset(self) -> int | None:
        if len(self.decisions) == 1:
            return self.decisions[0].start_offset
        starts = [one.start_offset for one in self.decisions if one.start_offset is not None]
        return max(starts, default=None)


class _Written(NamedTuple):
    image: ShareStateImage
    record: Record
    offset: int
    size_bytes: int


class _Submission:
    """One append under way: it takes what its groups decide until the log asks for the bytes."""

    __slots__ = ("groups", "ticket", "written")

    def __init__(self) -> None:
        self.groups: dict[str, _GroupChanges] = {}
        self.written: list[_Written] = []
        self.ticket: Append
        """Known once the log has taken it."""

    def add(self, leader: SharePartitionLeader, decision: Decision) -> None:
        changes = self.groups.get(leader.group_id)
        if changes is None:
            changes = self.groups[leader.group_id] = _GroupChanges(leader)
        changes.decisions.append(decision)


class PartitionStateStore:
    """The share state of every group on one log.

    `deltas_per_checkpoint` bounds a chain: `share.coordinator.snapshot.update.records.per.snapshot`.
    """

    def __init__(self, log: PartitionLog, wall_ms: Callable[[], int], deltas_per_checkpoint: int) -> None:
        self.log = log
        self._wall_ms = wall_ms
        self._deltas_per_checkpoint = deltas_per_checkpoint
        self._open: _Submission | None = None
        self._outstanding: dict[Append, None] = {}

    def load(self, group_id: str, group_incarnation: int) -> ShareStateImage | None:
        """The group's durable image; None if this incarnation of the group has recorded nothing here.

        Reads the newest checkpoint and the deltas behind it, at most `deltas_per_checkpoint` of them. Raises
        StorageError, ShareStateLost.
        """
        if not self.log.may_have_share_state(group_id):
            return None
        chain: list[tuple[int, Record, int]] = []
        for entry in self.log.newest_control_entries(group_hash(group_id)):
            offset, record = self.log.read_control_record(entry)
            if record.group_id != group_id:
                continue
            if record.group_incarnation != group_incarnation:
                break
            if chain and not _is_followed(offset, record, chain[-1][1]):
                break
            chain.append((offset, record, entry.length_bytes))
            if isinstance(record, ShareCheckpoint):
                return None if record.deleted else self._replay(chain)
        if chain:
            raise ShareStateLost(
                f"{self.log.topic_partition.directory_name}: the share state of group {group_id!r} at "
                f"{chain[-1][0]} follows a record that is not there."
            )
        return None

    def newest_checkpoint_epoch(self, group_id: str) -> int:
        """That of the newest of its records that can be read; 0 without any. Raises StorageError."""
        for entry in self.log.newest_control_entries(group_hash(group_id)):
            with suppress(ShareStateLost):
                _, record = self.log.read_control_record(entry)
                if record.group_id == group_id:
                    return record.checkpoint_epoch
        return 0

    def _replay(self, newest_first: list[tuple[int, Record, int]]) -> ShareStateImage:
        """The image; what its leader asks about control offsets is read already."""
        image = ShareStateImage(self.log.control_runs)
        _replay_written(
            [_Written(image, record, offset, size) for offset, record, size in reversed(newest_first)]
        )
        self.log.control_runs.know_from(image.start_offset)
        return image

    def record(self, leader: SharePartitionLeader, decision: Decision) -> Append:
        """Have `decision` written with the next append; the leader has settled it once the ticket is done."""
        if self._open is not None:
            self._open.add(leader, decision)
            return self._open.ticket
        submission = self._open = _Submission()
        submission.add(leader, decision)
        submission.ticket = self.log.append_control(partial(self._encode, submission), self._wall_ms())
        if not submission.ticket.done:
            self._outstanding[submission.ticket] = None
        submission.ticket.add_done_callback(partial(self._finish, submission))
        return submission.ticket

    async def drained(self) -> None:
        """Returns once everything handed in before is in the log, or has failed."""
        for ticket in list(self._outstanding):
            with suppress(StorageError, ApiError):
                await ticket

    def reset(self, group_id: str, image: ShareStateImage, *, deleted: bool = False) -> Append:
        """Write `image` as it stands, as a checkpoint of its own: an administrator's reset, or a group's
        tombstone.

        No leader of the group may be at work on this log; `image` is replayed when the ticket is done.
        """

        def encode(base_offset: int, leader_epoch: int) -> list[ControlBatch]:
            checkpoint = self._checkpoint(group_id, image, leader_epoch)._replace(deleted=deleted)
            batch = _control_batch(group_id, checkpoint, base_offset, leader_epoch)
            written.append(_Written(image, checkpoint, base_offset, len(batch.data)))
            return [batch]

        def finish(ticket: Append) -> None:
            if ticket.error is None:
                _replay_written(written)

        written: list[_Written] = []
        ticket = self.log.append_control(encode, self._wall_ms())
        ticket.add_done_callback(finish)
        return ticket

    def _encode(self, submission: _Submission, base_offset: int, leader_epoch: int) -> list[ControlBatch]:
        """Called by the log at write time: from here on the submission is closed."""
        self._open = None
        batches: list[ControlBatch] = []
        for offset, (group_id, changes) in enumerate(submission.groups.items(), base_offset):
            record = self._record(group_id, changes, leader_epoch)
            batch = _control_batch(group_id, record, offset, leader_epoch)
            submission.written.append(_Written(changes.leader.image, record, offset, len(batch.data)))
            batches.append(batch)
        return batches

    def _record(self, group_id: str, changes: _GroupChanges, leader_epoch: int) -> Record:
        image = changes.leader.image
        states = changes.states()
        start_offset = changes.start_offset()
        if (
            start_offset is None
            and image.checkpoint_epoch
            and image.delta_count < self._deltas_per_checkpoint
            and image.delta_bytes < DELTA_BYTES_PER_CHECKPOINT
        ):
            return ShareDelta(
                group_id,
                image.group_incarnation,
                image.checkpoint_epoch,
                self._wall_ms(),
                image.last_control_offset,
                states,
            )
        return self._checkpoint(group_id, image, leader_epoch, states, start_offset)

    def _checkpoint(
        self,
        group_id: str,
        image: ShareStateImage,
        leader_epoch: int,
        states: list[StateRange] | None = None,
        start_offset: int | None = None,
    ) -> ShareCheckpoint:
        return image.to_checkpoint(
            group_id,
            checkpoint_epoch=image.checkpoint_epoch + 1,
            decided_at_ms=self._wall_ms(),
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            changes=states or (),
        )

    def _finish(self, submission: _Submission, ticket: Append) -> None:
        self._outstanding.pop(ticket, None)
        if self._open is submission:
            self._open = None
        if ticket.error is None:
            _replay_written(submission.written)
        for changes in submission.groups.values():
            for decision in changes.decisions:
                changes.leader.settle(decision, ticket.error)


def _is_followed(offset: int, record: Record, newer: Record) -> bool:
    """Whether the newer record says that it follows this one at `offset`."""
    return (
        isinstance(newer, ShareDelta)
        and newer.back_offset == offset
        and newer.checkpoint_epoch == record.checkpoint_epoch
    )


def _replay_written(written: list[_Written]) -> None:
    for image, record, offset, size_bytes in written:
        if isinstance(record, ShareDelta):
            image.replay_delta(record, offset, size_bytes)
        else:
            image.replay_checkpoint(record, offset)


def _control_batch(group_id: str, record: Record, offset: int, leader_epoch: int) -> ControlBatch:
    if isinstance(record, ShareDelta):
        kind, (key, value) = ControlType.SHARE_DELTA, encode_delta(record)
        tombstone = False
    else:
        kind, (key, value) = ControlType.SHARE_CHECKPOINT, encode_checkpoint(record)
        tombstone = record.deleted
    data = build_control_batch(offset, leader_epoch, record.decided_at_ms, key, value)
    return ControlBatch(data, 0, group_id, kind, tombstone)
