"""Share state as control records of the partition's own log: the durable half of its leaders
(docs/decisions/0001).

One store serves one log, for all the groups that read it. Each decision of a leader joins the append that has
not been planned yet, or begins one (`state_append`): one record for each group, a SHARE_DELTA that chains to
the group's control record before it, or a SHARE_CHECKPOINT.

The store decides nothing itself, and knows no member, lock or session.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.errors import ApiError
from barnabas.runtime.completion import Completion
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.log_store.change_search import find_last_changes
from barnabas.share.log_store.state_append import (
    ResetAppend,
    StateAppend,
    StateRecord,
    replay,
)
from barnabas.share.partition.decision import Decision
from barnabas.storage.errors import ShareStateLost, StorageError
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog


class PartitionStateStore:
    """The share state of every group on one log.

    `deltas_per_checkpoint` bounds a chain: `share.coordinator.snapshot.update.records.per.snapshot`.
    """

    def __init__(self, log: PartitionLog, wall_ms: Callable[[], int], deltas_per_checkpoint: int) -> None:
        self.log = log
        self._wall_ms = wall_ms
        self._deltas_per_checkpoint = deltas_per_checkpoint
        self._open: StateAppend | None = None
        """The append that decisions join, until it is planned."""
        self._outstanding: dict[Completion[None], None] = {}

    def load(self, group_id: str, group_incarnation: int) -> ShareStateImage | None:
        """The group's durable image; None if this incarnation of the group has recorded nothing here.

        Reads the newest checkpoint and the deltas behind it, at most `deltas_per_checkpoint` of them. Raises
        StorageError, ShareStateLost.
        """
        if not self.log.share_records.may_have_state(group_id):
            return None
        chain: list[tuple[int, StateRecord, int]] = []
        for entry in self.log.share_records.newest(group_hash(group_id)):
            offset, record = self.log.share_records.read(entry)
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
        for entry in self.log.share_records.newest(group_hash(group_id)):
            with suppress(ShareStateLost):
                _, record = self.log.share_records.read(entry)
                if record.group_id == group_id:
                    return record.checkpoint_epoch
        return 0

    def _replay(self, newest_first: list[tuple[int, StateRecord, int]]) -> ShareStateImage:
        """The image, with the control offsets that its leader asks for already read."""
        image = ShareStateImage(self.log.control_runs)
        replay([(image, record, offset, size) for offset, record, size in reversed(newest_first)])
        self.log.control_runs.know_from(image.start_offset)
        return image

    def record(self, leader: SharePartitionLeader, decision: Decision) -> Completion[None]:
        """See `DecisionStore`."""
        append = self._open
        if append is not None and append.is_open:
            append.add(leader, decision)
            return append.recorded
        wall_ms = self._wall_ms()
        append = self._open = StateAppend(leader, decision, wall_ms, self._deltas_per_checkpoint)
        self.log.append(append, wall_ms)
        recorded = append.recorded
        if not recorded.done:
            self._outstanding[recorded] = None
            recorded.when_done(self._outstanding.pop)
        return recorded

    def last_changes(
        self, leader: SharePartitionLeader, wanted: Sequence[tuple[int, int]]
    ) -> list[RecordedChange]:
        """See `DecisionStore`. Reads a limited number of control records, see `change_search`."""
        return find_last_changes(self.log, leader.group_id, leader.image.group_incarnation, wanted)

    async def drained(self) -> None:
        """Returns once everything handed in before is in the log, or has failed."""
        for recorded in list(self._outstanding):
            with suppress(StorageError, ApiError):
                await recorded

    def reset(self, group_id: str, image: ShareStateImage, *, deleted: bool = False) -> Completion[None]:
        """Write `image` as a checkpoint of its own: an administrator's reset, or a group's tombstone.

        No leader of the group may be at work on this log; `image` is replayed when the completion ends.
        """
        wall_ms = self._wall_ms()
        append = ResetAppend(group_id, image, wall_ms, deleted=deleted)
        self.log.append(append, wall_ms)
        return append.recorded


def _is_followed(offset: int, record: StateRecord, newer: StateRecord) -> bool:
    """Whether the newer record says that it follows this one at `offset`."""
    return (
        isinstance(newer, ShareDelta)
        and newer.back_offset == offset
        and newer.checkpoint_epoch == record.checkpoint_epoch
    )
