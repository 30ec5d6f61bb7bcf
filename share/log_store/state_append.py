"""One append of share state to a partition's log: the decisions of all groups that are due, in one write.

It goes through the steps of a `PendingAppend`. `plan` makes the control records, at the moment when the log
knows their offsets; `written` replays them on the groups' durable images; `failed` leaves the images alone.
Then `recorded` ends, and each leader gives effect to its decision, or takes it back.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    build_control_batch,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.delivery_state import StateRange
from barnabas.protocol.tuples import maker
from barnabas.runtime.completion import Completion
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.log_store.delta_states import delta_states
from barnabas.share.partition.decision import Decision
from barnabas.storage.format.share_image import UNDECIDED_OFFSET, ShareStateImage
from barnabas.storage.log.pending_append import AppendGroup, ControlAppend
from barnabas.storage.segments.control_batch import ControlBatch

StateRecord = ShareCheckpoint | ShareDelta
"""A control record with share state."""

DELTA_BYTES_PER_CHECKPOINT = 256 * 1024
"""A chain with this many bytes of deltas ends in a checkpoint, however few the deltas are: deltas over
thousands of single records are large, and loading the state reads all of them."""


WrittenRecord = tuple[ShareStateImage, StateRecord, int, int]
"""An image, a control record of it in the log, and the record's offset and size in bytes."""

_CHECKPOINT, _DELTA = ControlType.SHARE_CHECKPOINT, ControlType.SHARE_DELTA

_new_batch, _new_delta = maker(ControlBatch), maker(ShareDelta)


class _RecordAppend(ControlAppend):
    """An append of control records that are replayed once they are written."""

    __slots__ = ("_wall_ms", "_written", "recorded")

    def __init__(self, wall_ms: int) -> None:
        """`wall_ms` is the time of the decisions."""
        self.recorded: Completion[None] = Completion()
        """Ends when the records are in the log and in the images, or when the append has failed."""
        self._written: list[WrittenRecord] = []
        self._wall_ms = wall_ms

    def _add(self, group: AppendGroup, group_id: str, image: ShareStateImage, record: StateRecord) -> None:
        if isinstance(record, ShareDelta):
            kind, (key, value), is_tombstone = _DELTA, encode_delta(record), False
        else:
            kind, (key, value), is_tombstone = _CHECKPOINT, encode_checkpoint(record), record.deleted
        offset = group.next_offset
        data = build_control_batch(offset, group.leader_epoch, record.decided_at_ms, key, value)
        self._written.append((image, record, offset, len(data)))
        group.add_control(_new_batch((data, 0, group_id, kind, is_tombstone)))

    def written(self, log_start_offset: int) -> None:
        """See `PendingAppend`."""
        replay(self._written)
        self.recorded.complete(None)

    def failed(self, error: Exception) -> None:
        """See `PendingAppend`."""
        self.recorded.fail(error)


class StateAppend(_RecordAppend):
    """The decisions that go out with one write; more join it until the log asks for the bytes."""

    __slots__ = ("_decisions", "_deltas_per_checkpoint", "is_open")

    def __init__(
        self, leader: SharePartitionLeader, decision: Decision, wall_ms: int, deltas_per_checkpoint: int
    ) -> None:
        self.recorded = Completion()
        self._written = []
        self._wall_ms = wall_ms
        self.is_open = True
        """Whether more decisions may join."""
        self._deltas_per_checkpoint = deltas_per_checkpoint
        self._decisions: dict[SharePartitionLeader, list[Decision]] = {leader: [decision]}

    def add(self, leader: SharePartitionLeader, decision: Decision) -> None:
        """Have `decision` written too, after those of the same leader that were added before."""
        self._decisions.setdefault(leader, []).append(decision)

    def plan(self, group: AppendGroup) -> None:
        """See `PendingAppend`: one record for each share group, for some with a checkpoint before it."""
        self.is_open = False
        for leader, decisions in self._decisions.items():
            planned = leader.image
            if not planned.checkpoint_epoch and planned.start_offset != UNDECIDED_OFFSET:
                planned = self._plan_start(group, leader)
            record = self._next_record(leader, planned, decisions, group.leader_epoch)
            # It is replayed on the leader's image: `planned` may be a copy.
            self._add(group, leader.group_id, leader.image, record)
        group.appends.append(self)

    def failed(self, error: Exception) -> None:
        """See `PendingAppend`."""
        self.is_open = False
        super().failed(error)

    def _plan_start(self, group: AppendGroup, leader: SharePartitionLeader) -> ShareStateImage:
        """Plans the checkpoint of a start at offset 0 that only the group's own records have (decision 20).
        Returns the image that the group's next record follows.

        The checkpoint has no decision in it: only deltas have the cause and the member of each change. The
        leader's image gets it when it is written, because the write may fail. The next record is planned
        before that, so it follows a copy that has the checkpoint already.
        """
        image = leader.image
        checkpoint = next_checkpoint(leader.group_id, image, self._wall_ms, group.leader_epoch)
        ahead = image.copy()
        ahead.replay_checkpoint(checkpoint, group.next_offset)
        self._add(group, leader.group_id, image, checkpoint)
        return ahead

    def _next_record(
        self,
        leader: SharePartitionLeader,
        image: ShareStateImage,
        decisions: Sequence[Decision],
        leader_epoch: int,
    ) -> StateRecord:
        """The record after those of `image`: a delta, or a checkpoint if a decision sets the start offset or
        the chain has grown long.
        """
        if len(decisions) == 1:
            changes = decisions[0].changes
        else:
            changes = [change for decision in decisions for change in decision.changes]
        if len(changes) == 1 and changes[0].base_offset <= leader.image.end_offset:
            states = changes
        else:
            states = delta_states(leader.image, leader.core, changes)
        start_offset: int | None = None
        for decision in decisions:
            if decision.start_offset is not None:
                start_offset = max(decision.start_offset, start_offset or 0)
        is_chain_full = (
            image.delta_count >= self._deltas_per_checkpoint
            or image.delta_bytes >= DELTA_BYTES_PER_CHECKPOINT
        )
        if start_offset is None and image.checkpoint_epoch and not is_chain_full:
            return _new_delta(
                (
                    leader.group_id,
                    image.group_incarnation,
                    image.checkpoint_epoch,
                    self._wall_ms,
                    image.last_control_offset,
                    states,
                )
            )
        return next_checkpoint(
            leader.group_id, image, self._wall_ms, leader_epoch, start_offset=start_offset, states=states
        )


class ResetAppend(_RecordAppend):
    """An image as a checkpoint of its own: an administrator's reset, or a group's tombstone."""

    __slots__ = ("_deleted", "_group_id", "_image")

    def __init__(self, group_id: str, image: ShareStateImage, wall_ms: int, *, deleted: bool) -> None:
        super().__init__(wall_ms)
        self._group_id = group_id
        self._image = image
        self._deleted = deleted

    def plan(self, group: AppendGroup) -> None:
        """See `PendingAppend`."""
        checkpoint = next_checkpoint(self._group_id, self._image, self._wall_ms, group.leader_epoch)
        self._add(group, self._group_id, self._image, checkpoint._replace(deleted=self._deleted))
        group.appends.append(self)


def next_checkpoint(
    group_id: str,
    image: ShareStateImage,
    wall_ms: int,
    leader_epoch: int,
    *,
    start_offset: int | None = None,
    states: Sequence[StateRange] = (),
) -> ShareCheckpoint:
    """The checkpoint that follows the records of `image`, with these changes."""
    return image.to_checkpoint(
        group_id,
        checkpoint_epoch=image.checkpoint_epoch + 1,
        decided_at_ms=wall_ms,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        changes=states,
    )


def replay(written: Sequence[WrittenRecord]) -> None:
    """Take control records over into their images, in the order of the log."""
    for image, record, offset, size_bytes in written:
        if isinstance(record, ShareDelta):
            image.replay_delta(record, offset, size_bytes)
        else:
            image.replay_checkpoint(record, offset)
