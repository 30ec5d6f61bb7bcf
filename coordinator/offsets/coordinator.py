"""Committed offsets: OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete, deleted topics, and the end
of retention (KIP-211). For threads, times and timers see `group_coordinator`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from uuid import UUID

from barnabas.coordinator.group.group_coordinator import OperationRunner
from barnabas.coordinator.group.group_operations import GroupOperations
from barnabas.coordinator.group.record_names import checked_group_id, storable_group_id
from barnabas.coordinator.group.records import AnyGroupRecord, AnyOffsetRecord
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.offsets.commit import amending_records, commit_records, storable
from barnabas.coordinator.offsets.committed_offset import OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.deletion import deletion_records, tombstones_of
from barnabas.coordinator.offsets.expiry import expired_keys
from barnabas.coordinator.offsets.fetch import fetched_offsets
from barnabas.coordinator.offsets.interfaces import OffsetConfigs, OffsetRules
from barnabas.coordinator.offsets.ordered_commits import OrderedCommits
from barnabas.coordinator.offsets.requests import (
    NO_MEMBER_EPOCH,
    CommitRequest,
    FetchedOffset,
    TransactionalCommit,
)
from barnabas.coordinator.offsets.retention_rounds import RetentionRounds
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.replay.steps import Write, WriteMarker
from barnabas.protocol.classic_group_records import OffsetRecord
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.offset_range_records import OffsetRangeRecord
from barnabas.runtime.completion import Completion
from barnabas.runtime.logging import get_logger
from barnabas.runtime.moment import Moment, MonotonicOf

log = get_logger("coordinator")

WRITE_RECORDS_MAX = 1_000
"""Records of one append in the background; more records are written in several appends."""


class OffsetCoordinator(OperationRunner):
    """All offsets that are committed with this broker."""

    def __init__(
        self,
        *,
        operations: GroupOperations,
        classic_groups: OffsetRules,
        consumer_groups: OffsetRules,
        configs: OffsetConfigs,
        settings: OffsetSettings,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        on_deadline: Callable[[], None],
    ) -> None:
        """`on_deadline` is called when `next_deadline_ms`, or that of a group's members, may have moved."""
        super().__init__(operations, on_deadline)
        self._configs = configs
        self._settings = settings
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._classic_groups = classic_groups
        self._consumer_groups = consumer_groups
        self._offsets = CommittedOffsets(operations.partition_of)
        self._ordered = OrderedCommits(self._offsets, self, self._run, operations.partition_of)
        self._rounds = RetentionRounds(
            settings.retention_check_interval_ms, self._group_ids, self._offsets.count_of_group
        )

    # Replay

    def replay(self, record: OffsetRecord, log_offset: int, monotonic_of: MonotonicOf) -> None:
        """Apply a record that was loaded or appended."""
        self._offsets.replay(*record, log_offset, monotonic_of)

    def replay_pending(
        self,
        log_partition: int,
        record: OffsetRecord,
        log_offset: int,
        producer_id: int,
        monotonic_of: MonotonicOf,
    ) -> None:
        """Apply a record of a producer's transaction; a tombstone deletes at once."""
        key, value = record
        if value is None:
            self.replay(record, log_offset, monotonic_of)
        else:
            self._offsets.replay_pending(log_partition, producer_id, key, value, log_offset, monotonic_of)

    def replay_range(self, record: OffsetRangeRecord, monotonic_of: MonotonicOf) -> None:
        """Apply the record of a range that was loaded or appended."""
        self._offsets.replay_range(*record, monotonic_of)

    def replay_pending_range(
        self,
        log_partition: int,
        record: OffsetRangeRecord,
        log_offset: int,
        producer_id: int,
        monotonic_of: MonotonicOf,
    ) -> None:
        """Apply the record of a range in a producer's transaction; a tombstone deletes at once."""
        key, value = record
        if value is None:
            self.replay_range(record, monotonic_of)
        else:
            self._offsets.replay_pending_range(
                log_partition, producer_id, key, value, log_offset, monotonic_of
            )

    def replay_marker(self, log_partition: int, producer_id: int, *, commit: bool) -> None:
        """Apply the end of a producer's transaction."""
        self._offsets.end_transaction(log_partition, producer_id, commit=commit)

    def begin(self, now_ms: int) -> None:
        """A partition's records were all loaded."""
        self._rounds.begin(now_ms)

    def forget(self, partition: int) -> None:
        """Forget the offsets whose records are in that partition; they may be replayed again."""
        self._offsets.forget_partition(partition)
        self._ordered.forget(partition)

    def note_membership(self, group_id: str) -> None:
        """The members of a group, or their partitions, have changed."""
        self._ordered.try_again(group_id)

    # Committing

    def commit(self, request: CommitRequest, *, now_ms: int) -> Completion[list[ErrorCode]]:
        """OffsetCommit: the outcome of each offset, in the request's order.

        INVALID_GROUP_ID (too long); otherwise the refusal of the group's type, GROUP_ID_NOT_FOUND or
        ILLEGAL_GENERATION for an unknown group.
        """
        return self._run(request.group_id, partial(self._committing_now, request, now_ms))

    def _committing_now(self, request: CommitRequest, now_ms: int) -> Steps[list[ErrorCode]]:
        rules = self._rules_of(storable_group_id(request.group_id))
        stored, codes = storable(request, self._offsets, self._settings, in_transaction=False)
        rules.check_commit(stored, in_transaction=False)
        rules.heard_from(request.group_id, request.identity.member_id, now_ms)
        yield from self._committing(stored, None)
        self._ordered.try_again(request.group_id)
        return codes

    def commit_in_transaction(self, commit: TransactionalCommit) -> Completion[list[ErrorCode]]:
        """TxnOffsetCommit: the outcome of each offset, in the request's order. The offsets count once the
        producer's transaction is committed. In a group that commits in order, ranges wait until they reach
        the stable offset; call `withdraw` when the client is gone.

        The errors of `commit`, except those of the group's state; INVALID_GROUP_ID also if the id is empty;
        INVALID_PRODUCER_EPOCH. After a wait also TRANSACTION_ABORTABLE.
        """
        group_id = commit.request.group_id
        is_individual = any(offset.ranges is not None for offset in commit.request.offsets)
        if is_individual and self._configs.commits_in_order(group_id):
            return self._ordered.commit(commit)
        return self._run(group_id, partial(self._committing_in_transaction, commit))

    def _committing_in_transaction(self, commit: TransactionalCommit) -> Steps[list[ErrorCode]]:
        stored, codes = self.checked(commit)
        yield from self.written(stored, commit)
        self._ordered.try_again(commit.request.group_id)
        return codes

    def end_wait(self, commit: TransactionalCommit) -> None:
        """The commit must not wait any longer: TRANSACTION_ABORTABLE if it does."""
        self._ordered.end_wait(commit)

    @property
    def waiting_count(self) -> int:
        """The commits that wait for the stable offset."""
        return len(self._ordered)

    def withdraw(self, commit: TransactionalCommit) -> None:
        """The client of a commit is gone: it does not wait any longer."""
        self._ordered.withdraw(commit)

    # Transactional commits, step by step

    def checked(
        self, commit: TransactionalCommit, waiting_count: Callable[[OffsetKey], int] = lambda _: 0
    ) -> tuple[CommitRequest, list[ErrorCode]]:
        """See `CommitSteps`."""
        # Checked here, directly before the append: the end of the transaction passes through the same queue.
        commit.check_transaction()
        rules = self._rules_of(checked_group_id(commit.request.group_id))
        stored, codes = storable(
            commit.request,
            self._offsets,
            self._settings,
            in_transaction=True,
            waiting_count=waiting_count,
        )
        rules.check_commit(stored, in_transaction=True)
        return stored, codes

    def check_wait(self, request: CommitRequest) -> None:
        """See `CommitSteps`."""
        self._rules_of(request.group_id).check_wait(request)

    def written(self, stored: CommitRequest, commit: TransactionalCommit) -> Steps[None]:
        """See `CommitSteps`."""
        yield from self._committing(stored, commit.producer)

    def _committing(self, request: CommitRequest, producer: ProducerIdentity | None) -> Steps[None]:
        in_transaction = producer is not None
        records = commit_records(request, self._offsets, self._moment(), in_transaction=in_transaction)
        if records:
            yield Write(records, producer)

    def ending(self, log_partition: int, marker: TransactionMarker) -> Steps[None]:
        """Write the end of a producer's transaction, and merge the ranges that it has committed."""
        individual = self._offsets.individual
        keys = individual.keys_of_transaction(log_partition, marker.producer.producer_id)
        yield WriteMarker(marker)
        for group_id in {key.group_id for key in keys}:
            self._ordered.try_again(group_id)
        self._ordered.try_producer_again(marker.producer.producer_id)
        wall_ms = self._wall_ms()
        records = [record for key in keys for record in amending_records(key, self._offsets, wall_ms)]
        if not records:
            return
        try:
            yield Write(records)
        except ApiError as error:
            # The ranges are committed. The next commit of the partition writes these records.
            log.warning("the ranges of a transaction could not be merged", reason=str(error))

    # Fetching

    def fetch(
        self,
        group_id: str,
        wanted: Mapping[str, Sequence[int]] | None,
        *,
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = NO_MEMBER_EPOCH,
        with_ranges: bool = False,
    ) -> list[FetchedOffset]:
        """OffsetFetch of one group; all of its offsets if `wanted` is None. `require_stable` leaves out
        offsets that an open transaction may replace, and those of partitions for which a former owner, or the
        member itself, has ranges in an open transaction. `with_ranges` adds the ranges that were committed
        individually.

        INVALID_GROUP_ID (too long), COORDINATOR_LOAD_IN_PROGRESS. An unknown group has committed nothing.
        Members of consumer groups send their id and epoch: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
        """
        self._operations.check_loaded(storable_group_id(group_id))
        rules = self._rules_of(group_id)
        rules.check_fetch(group_id, member_id, member_epoch)
        is_apart = partial(_is_apart, rules, group_id, member_id) if require_stable else None
        found = fetched_offsets(self._offsets, group_id, wanted, is_apart, with_ranges=with_ranges)
        return list(found)

    def topics(self) -> set[tuple[str, UUID]]:
        """The names and ids (zero if unknown) of all topics with committed offsets."""
        return self._offsets.topics()

    def pending_committers(self, group_id: str, topic_name: str, topic_id: UUID, partition: int) -> set[str]:
        """The ids of the members with ranges for the partition in open transactions."""
        pending = self._offsets.individual.pending(OffsetKey(group_id, topic_name, partition))
        return {pending_range.member_id for pending_range in pending if pending_range.topic_id == topic_id}

    # Deleting

    def delete(self, group_id: str, keys: Sequence[tuple[str, int]]) -> Completion[list[ErrorCode]]:
        """OffsetDelete of (topic name, partition) pairs: the outcome of each.

        INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """

        return self._run(group_id, partial(self._deleting, group_id, keys))

    def _deleting(self, group_id: str, keys: Sequence[tuple[str, int]]) -> Steps[list[ErrorCode]]:
        rules = self._rules_of(checked_group_id(group_id))
        rules.check_deletion(group_id)
        is_read = partial(rules.is_read, group_id)
        records, codes = deletion_records(group_id, self._offsets, keys, is_read)
        if records:
            yield Write(records)
        self._ordered.try_again(group_id)
        return codes

    def tombstones(self, group_id: str) -> list[AnyOffsetRecord]:
        """The records that delete all offsets of a group."""
        keys = self._offsets.all_keys_of_group(group_id)
        return [tombstone for key in keys for tombstone in tombstones_of(key, self._offsets)]

    def forget_topics(self, topics: Mapping[str, Set[UUID]]) -> None:
        """Delete the offsets of topics that are gone, by their names and ids. The caller does not wait."""
        for log_partition in range(self._operations.partition_count):
            operation = partial(self._forgetting_topics, log_partition, topics)
            self._operations.submit(log_partition, operation)

    def _forgetting_topics(self, log_partition: int, topics: Mapping[str, Set[UUID]]) -> Steps[None]:
        # Read here, so that offsets committed in earlier operations are deleted too.
        keys = self._offsets.keys_of_topics(log_partition, topics)
        yield from _write_in_pieces(
            [tombstone for key in keys for tombstone in tombstones_of(key, self._offsets)]
        )

    # Retention

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None without a deadline."""
        deadlines_ms = (self._rounds.next_deadline_ms(), self._ordered.next_deadline_ms())
        return min((deadline_ms for deadline_ms in deadlines_ms if deadline_ms is not None), default=None)

    def expire(self, now_ms: int) -> None:
        """Delete the offsets whose retention is over, in the groups of the next part of the round, and end
        the waits that are over.
        """
        self._ordered.expire(now_ms)
        for group_id in self._rounds.take(now_ms):
            self._run(group_id, partial(self._expiring, group_id)).when_done(self._on_checked)

    def _expiring(self, group_id: str) -> Steps[None]:
        rules = self._rules_of(group_id)
        if not rules.exists(group_id):
            return
        since_ms = partial(rules.retained_since_ms, group_id)
        retention_ms = self._settings.retention_ms
        keys = list(expired_keys(group_id, self._offsets, since_ms, self._moment(), retention_ms))
        records: list[AnyGroupRecord] = [
            tombstone for key in keys for tombstone in tombstones_of(key, self._offsets)
        ]
        is_all = len(keys) == self._offsets.count_of_group(group_id)
        if is_all and not self._offsets.has_pending(group_id):
            records.extend(rules.unused_tombstones(group_id))
        yield from _write_in_pieces(records)

    def _on_checked(self, _: Completion[None]) -> None:
        if self._rounds.done():
            self._on_deadline()

    def _group_ids(self) -> list[str]:
        return [*self._classic_groups.group_ids(), *self._consumer_groups.group_ids()]

    def _moment(self) -> Moment:
        return Moment(self._now_ms(), self._wall_ms())

    # Operations

    def _rules_of(self, group_id: str) -> OffsetRules:
        is_consumer = self._consumer_groups.exists(group_id)
        return self._consumer_groups if is_consumer else self._classic_groups


def _is_apart(
    rules: OffsetRules,
    group_id: str,
    reader_id: str | None,
    committer_id: str,
    topic_id: UUID,
    partition: int,
) -> bool:
    """Whether ranges in an open transaction do not concern the member that reads offsets: its own do, because
    it may have joined again since it committed them.
    """
    return committer_id != reader_id and rules.is_owner(group_id, committer_id, topic_id, partition)


def _write_in_pieces(records: Sequence[AnyGroupRecord]) -> Steps[None]:
    for start in range(0, len(records), WRITE_RECORDS_MAX):
        yield Write(records[start : start + WRITE_RECORDS_MAX])
