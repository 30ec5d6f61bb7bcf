"""Bugs that the broker does not have, planted to test whether the simulation finds them.

Each changes one behaviour of the real code, like a programming mistake would.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any
from unittest.mock import patch

from barnabas.broker.internal_topics import client_markers
from barnabas.coordinator.consumer import member_change, reconciliation
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.handover import Handover
from barnabas.coordinator.consumer.offsets import ConsumerOffsetRules
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.offsets import commit, waiting_commits
from barnabas.coordinator.offsets import coordinator as offset_coordinator
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.record_factory import deleted_range
from barnabas.coordinator.transaction.decided_transactions import DecidedTransactions
from barnabas.protocol import committed_ranges
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import RecordState
from barnabas.protocol.identity import TopicNamePartition
from barnabas.share.log_store.state_append import StateAppend
from barnabas.share.partition import locks
from barnabas.share.partition.window import Run
from barnabas.storage.filesystem import File
from barnabas.storage.log.appender import Appender
from barnabas.storage.log.pending_append import AppendGroup
from barnabas.storage.state.log_state import LogState
from tests.simulation.planting import planted

# pyright: reportPrivateUsage=false

_join: Callable[[Any, OffsetRange, list[OffsetRange]], None] = committed_ranges._Change.join
_end_transaction = CommittedOffsets.end_transaction
_commit_records: Callable[..., list[Any]] = commit.commit_records
_load_record: Callable[[Groups, int, Any], None] = Groups._load
_reconcile: Callable[[Any, Any, reconciliation.Surroundings], Any] = reconciliation.reconcile
_write_markers: Callable[[DecidedTransactions, Any], None] = DecidedTransactions._write
_plan: Callable[[StateAppend, AppendGroup], None] = StateAppend.plan
_next_record: Callable[..., ShareCheckpoint | ShareDelta] = StateAppend._next_record


@planted(Appender, "_write_and_sync")
def dropped_fsync(self: Appender, group: AppendGroup, files: Sequence[File], **_: object) -> int:
    """With log.flush=always an append is answered once it is written, before it is synced."""
    return self._write(group, files[-1])


@planted(StateAppend, "plan")
def swapped_control_records(self: StateAppend, group: AppendGroup) -> None:
    """The share records of two groups in one append are written in the other order than the leaders
    believe.
    """
    _plan(self, group)
    written = self._written
    newest = {id(image): index for index, (image, *_) in enumerate(written)}
    if len(newest) == 2:
        first, second = newest.values()
        image, record, offset, size_bytes = written[first]
        other_image, other_record, other_offset, other_bytes = written[second]
        written[first] = image, record, other_offset, size_bytes
        written[second] = other_image, other_record, offset, other_bytes


@planted(StateAppend, "_next_record")
def forgotten_back_offset(
    self: StateAppend, leader: Any, image: Any, decisions: Any, leader_epoch: int
) -> ShareCheckpoint | ShareDelta:
    """The first delta after a checkpoint does not link to the checkpoint."""
    made = _next_record(self, leader, image, decisions, leader_epoch)
    if isinstance(made, ShareDelta) and image.delta_count == 0:
        return made._replace(back_offset=-1)
    return made


@planted(locks, "_is_open")
def archive_of_available_only(run: Run) -> bool:
    """An administrator's archive leaves records that a member holds as they are."""
    return run.state is RecordState.AVAILABLE


@planted(DecidedTransactions, "_write")
def forgotten_marker(self: DecidedTransactions, decided: Any) -> None:
    """The last partition of a committed transaction gets no marker if there are others."""
    partitions = [one for one in decided.remaining if isinstance(one, TopicNamePartition)]
    if len(partitions) > 1 and decided.transaction.commits:
        decided.remaining.discard(max(partitions))
    _write_markers(self, decided)


@planted(client_markers, "_check_known_producer")
def forged_markers(*_: object) -> None:
    """Clients may end transactions that the coordinator holds open."""


@contextmanager
def unstable_offset() -> Generator[None]:
    """Readers of committed records may read up to the high watermark."""
    with patch.object(LogState, "last_stable_offset", property(attrgetter("high_watermark"))):
        yield


@planted(CommittedOffsets, "end_transaction")
def offsets_of_aborted(self: CommittedOffsets, log_partition: int, producer_id: int, *, commit: bool) -> None:
    """An offset committed in a transaction counts, even if the transaction aborts."""
    _end_transaction(self, log_partition, producer_id, commit=True)


@planted(offset_coordinator, "commit_records")
def unwritten_commit(*arguments: Any, **options: Any) -> list[Any]:
    """Committed offsets are in force and confirmed without being written."""
    return _commit_records(*arguments, **options)[:-1]


@planted(Groups, "_load")
def generation_begun_anew(self: Groups, partition: int, stored: Any) -> None:
    """A classic group that is loaded starts to count its generations again."""
    _load_record(self, partition, stored)
    for group in self.classic._registry:
        group.generation_id = min(group.generation_id, 1)


@contextmanager
def two_owners() -> Generator[None]:
    """A KIP-848 group gives a member partitions that another member has not given up yet."""

    def is_owned(*_: Any) -> bool:
        return False

    def reconcile(member: Any, target: Any, around: reconciliation.Surroundings) -> Any:
        return _reconcile(member, target, around._replace(is_owned=is_owned))

    with patch.object(member_change, "reconcile", reconcile):
        yield


@planted(Handover, "is_taken")
def hasty_handover(_: Handover, group: Any, member_id: str, *share: Any) -> bool:
    """A share goes to its new owner while the old owner's transaction is open."""
    return bool(group.is_owned_by_another(member_id, *share))


@planted(commit, "range_tombstones")
def forgotten_tombstones(key: Any, offsets: CommittedOffsets) -> list[Any]:
    """An ordinary commit leaves the ranges of open transactions alone."""
    found = offsets.individual.find(key)
    return [] if found is None else [deleted_range(key, one) for one in sorted(found.logged())]


@planted(CommittedOffsets, "replay_pending_range")
def early_merge(self: CommittedOffsets, *arguments: Any) -> None:
    """A range counts when its transaction commits it, and not when the transaction is committed."""
    _, _, key, value, _, monotonic_of = arguments
    self.replay_range(key, value, monotonic_of)


@planted(ConsumerOffsetRules, "check_commit")
def commits_of_strangers(*_: object, **__: object) -> None:
    """Commits of members are not checked."""


@planted(committed_ranges._Change, "join")
def jumping_stable_offset(self: Any, joined: OffsetRange, parts: list[OffsetRange]) -> None:
    """A commit that leaves one offset out moves the stable offset past it."""
    if joined.first_offset == self.stable_offset + 2:
        joined = OffsetRange(self.stable_offset + 1, joined.last_offset)
    _join(self, joined, parts)


@planted(waiting_commits, "_touches")
def impatient_commits(*_: object) -> bool:
    """Commits in groups that commit in order are answered at once."""
    return True


@planted(ConsumerGroup, "is_owned_by_another")
def overlapping_shares(
    group: ConsumerGroup, member_id: str, topic_id: Any, partition: int, _: object
) -> bool:
    """A share is free as soon as no member has the whole partition."""
    return group._owners.get(topic_id, {}).get(partition, member_id) != member_id
