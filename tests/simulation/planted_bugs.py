"""Bugs that the broker does not have, planted to test whether the simulation finds them.

Each changes one behaviour of the real code, like a programming mistake would.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
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
from barnabas.share.partition import administration, locks
from barnabas.storage.filesystem import File
from barnabas.storage.log.appender import Appender
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.pending_append import AppendGroup

# pyright: reportPrivateUsage=false

_join: Callable[[Any, OffsetRange, list[OffsetRange]], None] = committed_ranges._Change.join
_end_transaction = CommittedOffsets.end_transaction
_commit_records: Callable[..., list[Any]] = commit.commit_records
_load_record: Callable[[Groups, int, Any], None] = Groups._load
_reconcile: Callable[[Any, Any, reconciliation.Surroundings], Any] = reconciliation.reconcile
_write_markers: Callable[[DecidedTransactions, Any], None] = DecidedTransactions._write
_plan: Callable[[StateAppend, AppendGroup], None] = StateAppend.plan
_record: Callable[[StateAppend, Any, Any, Any, int], ShareCheckpoint | ShareDelta] = StateAppend._record


@contextmanager
def dropped_fsync() -> Generator[None]:
    """With log.flush=always an append is answered once it is written, before it is synced."""

    def write(self: Appender, group: AppendGroup, files: Sequence[File], **_: object) -> int:
        return self._write(group, files[-1])

    with patch.object(Appender, "_write_and_sync", write):
        yield


@contextmanager
def swapped_control_records() -> Generator[None]:
    """The share records of two groups in one append are written in the other order than the leaders
    believe.
    """

    def plan(self: StateAppend, group: AppendGroup) -> None:
        _plan(self, group)
        newest = {id(one.image): index for index, one in enumerate(self._written)}
        if len(newest) == 2:
            first, second = newest.values()
            written = self._written
            written[first], written[second] = (
                written[first]._replace(offset=written[second].offset),
                written[second]._replace(offset=written[first].offset),
            )

    with patch.object(StateAppend, "plan", plan):
        yield


@contextmanager
def forgotten_back_offset() -> Generator[None]:
    """The first delta after a checkpoint does not link to the checkpoint."""

    def record(
        self: StateAppend, leader: Any, image: Any, decisions: Any, leader_epoch: int
    ) -> ShareCheckpoint | ShareDelta:
        made = _record(self, leader, image, decisions, leader_epoch)
        if isinstance(made, ShareDelta) and image.delta_count == 0:
            return made._replace(back_offset=-1)
        return made

    with patch.object(StateAppend, "_record", record):
        yield


@contextmanager
def archive_of_available_only() -> Generator[None]:
    """An administrator's archive leaves records that a member holds as they are."""

    def give_up(*arguments: Any) -> None:
        in_flight, decision, first_offset, last_offset, cause, _ = arguments
        locks.archive(in_flight, decision, first_offset, last_offset, RecordState.AVAILABLE, cause)

    with patch.object(administration, "give_up", give_up):
        yield


@contextmanager
def forgotten_marker() -> Generator[None]:
    """The last partition of a committed transaction gets no marker if there are others."""

    def write(self: DecidedTransactions, decided: Any) -> None:
        partitions = [one for one in decided.remaining if isinstance(one, TopicNamePartition)]
        if len(partitions) > 1 and decided.transaction.commits:
            decided.remaining.discard(max(partitions))
        _write_markers(self, decided)

    with patch.object(DecidedTransactions, "_write", write):
        yield


@contextmanager
def forged_markers() -> Generator[None]:
    """Clients may end transactions that the coordinator holds open."""

    def check(*_: object) -> None:
        """Refuses no request."""

    with patch.object(client_markers, "_check_known_producer", check):
        yield


@contextmanager
def unstable_offset() -> Generator[None]:
    """Readers of committed records may read up to the high watermark."""
    with patch.object(PartitionLog, "last_stable_offset", PartitionLog.high_watermark):
        yield


@contextmanager
def offsets_of_aborted() -> Generator[None]:
    """An offset committed in a transaction counts, even if the transaction aborts."""

    def end(self: CommittedOffsets, log_partition: int, producer_id: int, *, commit: bool) -> None:
        _end_transaction(self, log_partition, producer_id, commit=True)

    with patch.object(CommittedOffsets, "end_transaction", end):
        yield


@contextmanager
def unwritten_commit() -> Generator[None]:
    """Committed offsets are in force and confirmed without being written."""

    def commit_records(*arguments: Any, **options: Any) -> list[Any]:
        return _commit_records(*arguments, **options)[:-1]

    with patch.object(offset_coordinator, "commit_records", commit_records):
        yield


@contextmanager
def generation_begun_anew() -> Generator[None]:
    """A classic group that is loaded starts to count its generations again."""

    def load(self: Groups, partition: int, stored: Any) -> None:
        _load_record(self, partition, stored)
        for group in self.classic._registry:
            group.generation_id = min(group.generation_id, 1)

    with patch.object(Groups, "_load", load):
        yield


@contextmanager
def two_owners() -> Generator[None]:
    """A KIP-848 group gives a member partitions that another member has not given up yet."""

    def is_owned(*_: Any) -> bool:
        return False

    def reconcile(member: Any, target: Any, around: reconciliation.Surroundings) -> Any:
        return _reconcile(member, target, around._replace(is_owned=is_owned))

    with patch.object(member_change, "reconcile", reconcile):
        yield


@contextmanager
def hasty_handover() -> Generator[None]:
    """A share goes to its new owner while the old owner's transaction is open."""

    def is_taken(_: Handover, group: Any, member_id: str, *share: Any) -> bool:
        return bool(group.is_owned_by_another(member_id, *share))

    with patch.object(Handover, "is_taken", is_taken):
        yield


@contextmanager
def forgotten_tombstones() -> Generator[None]:
    """An ordinary commit leaves the ranges of open transactions alone."""

    def range_tombstones(key: Any, offsets: CommittedOffsets) -> list[Any]:
        found = offsets.individual.find(key)
        return [] if found is None else [deleted_range(key, one) for one in sorted(found.logged())]

    with patch.object(commit, "range_tombstones", range_tombstones):
        yield


@contextmanager
def early_merge() -> Generator[None]:
    """A range counts when its transaction commits it, and not when the transaction is committed."""

    def replay(self: CommittedOffsets, *arguments: Any) -> None:
        _, _, key, value, _ = arguments
        self.replay_range(key, value)

    with patch.object(CommittedOffsets, "replay_pending_range", replay):
        yield


@contextmanager
def commits_of_strangers() -> Generator[None]:
    """Commits of members are not checked."""

    def check_commit(*_: object, **__: object) -> None:
        """Refuses no commit."""

    with patch.object(ConsumerOffsetRules, "check_commit", check_commit):
        yield


@contextmanager
def jumping_stable_offset() -> Generator[None]:
    """A commit that leaves one offset out moves the stable offset past it."""

    def join(self: Any, joined: OffsetRange, parts: list[OffsetRange]) -> None:
        if joined.first_offset == self.stable_offset + 2:
            joined = OffsetRange(self.stable_offset + 1, joined.last_offset)
        _join(self, joined, parts)

    with patch.object(committed_ranges._Change, "join", join):
        yield


@contextmanager
def impatient_commits() -> Generator[None]:
    """Commits in groups that commit in order are answered at once."""

    def touches(*_: object) -> bool:
        return True

    with patch.object(waiting_commits, "_touches", touches):
        yield


@contextmanager
def overlapping_shares() -> Generator[None]:
    """A share is free as soon as no member has the whole partition."""

    def is_owned(group: ConsumerGroup, member_id: str, topic_id: Any, partition: int, _: object) -> bool:
        return group._owners.get(topic_id, {}).get(partition, member_id) != member_id

    with patch.object(ConsumerGroup, "is_owned_by_another", is_owned):
        yield
