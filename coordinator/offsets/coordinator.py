"""The committed offsets' way in: OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete, topics that are
deleted, and the end of retention (KIP-211).

Every method runs on the loop's thread and answers at once or, where a record must be appended first, through
a `Completion`. Times passed in are monotonic; there are no timers here: ask `next_deadline_ms()`, call
`expire(now_ms)`. A partition must be loaded before anything is asked of its groups; `Groups` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import TypeVar
from uuid import UUID

from barnabas.coordinator.group.record_names import checked_group_id
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.runtimes import GroupRuntimes
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.offsets.commit import commit_records, storable
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.deletion import deletion_records
from barnabas.coordinator.offsets.expiry import expired_keys
from barnabas.coordinator.offsets.fetch import fetched_offsets
from barnabas.coordinator.offsets.interfaces import OffsetRules
from barnabas.coordinator.offsets.record_factory import deleted_offset
from barnabas.coordinator.offsets.requests import (
    NO_MEMBER_EPOCH,
    CommitRequest,
    FetchedOffset,
    TransactionalCommit,
)
from barnabas.coordinator.offsets.retention_rounds import RetentionRounds
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.coordinator.replay.steps import Operation, Write
from barnabas.protocol.classic_group_records import OffsetRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.runtime.completion import Completion

WRITE_RECORDS_MAX = 1_000
"""Records of one append that nobody waits for: what would be more is written in several."""

_Result = TypeVar("_Result")


class OffsetCoordinator:
    """All offsets that are committed with this broker."""

    def __init__(
        self,
        *,
        runtimes: GroupRuntimes,
        classic_groups: OffsetRules,
        consumer_groups: OffsetRules,
        settings: OffsetSettings,
        wall_ms: Callable[[], int],
        on_deadline: Callable[[], None],
    ) -> None:
        """`on_deadline` is called when `next_deadline_ms`, or that of a group's members, may have moved."""
        self._runtimes = runtimes
        self._settings = settings
        self._wall_ms = wall_ms
        self._classic_groups = classic_groups
        self._consumer_groups = consumer_groups
        self._on_deadline = on_deadline
        self._offsets = CommittedOffsets(runtimes.partition_of)
        self._rounds = RetentionRounds(
            settings.retention_check_interval_ms, self._group_ids, self._offsets.count_of_group
        )

    # Loading, and what operations have written

    def replay(self, record: OffsetRecord, log_offset: int) -> None:
        """Take over a record that has been appended, or is loaded."""
        self._offsets.replay(*record, log_offset)

    def replay_pending(
        self, log_partition: int, record: OffsetRecord, log_offset: int, producer_id: int
    ) -> None:
        """Take over a record of a producer's transaction; a tombstone deletes in any case."""
        key, value = record
        if value is None:
            self.replay(record, log_offset)
        else:
            self._offsets.replay_pending(log_partition, producer_id, key, value, log_offset)

    def replay_marker(self, log_partition: int, producer_id: int, *, commit: bool) -> None:
        """Take over the end of a producer's transaction."""
        self._offsets.end_transaction(log_partition, producer_id, commit=commit)

    def begin(self, now_ms: int) -> None:
        """A partition's records were all loaded."""
        self._rounds.begin(now_ms)

    def forget(self, partition: int) -> None:
        """Forget the offsets whose records are in that partition; they may be replayed anew."""
        self._offsets.forget_partition(partition)

    # Committing

    def commit(self, request: CommitRequest, *, now_ms: int) -> Completion[list[ErrorCode]]:
        """OffsetCommit: the outcome of each offset, in the request's order.

        INVALID_GROUP_ID; else what the group's type refuses it with, GROUP_ID_NOT_FOUND or ILLEGAL_GENERATION
        for a group that isn't there.
        """

        def operation() -> Steps[list[ErrorCode]]:
            rules = self._rules_of(checked_group_id(request.group_id))
            stored, codes = storable(request, self._settings.metadata_bytes_max)
            rules.check_commit(stored, in_transaction=False)
            rules.heard_from(request.group_id, request.identity.member_id, now_ms)
            yield from self._committing(stored, None)
            return codes

        return self._run_for_member(request.group_id, operation)

    def commit_in_transaction(self, commit: TransactionalCommit) -> Completion[list[ErrorCode]]:
        """TxnOffsetCommit: the outcome of each offset, in the request's order; it counts once the producer's
        transaction is committed.

        As `commit`, but for the group's state; INVALID_PRODUCER_EPOCH.
        """

        def operation() -> Steps[list[ErrorCode]]:
            # Only now, and with nothing between it and the append: the end comes through here, too.
            commit.check_transaction()
            rules = self._rules_of(checked_group_id(commit.request.group_id))
            stored, codes = storable(commit.request, self._settings.metadata_bytes_max)
            rules.check_commit(stored, in_transaction=True)
            yield from self._committing(stored, commit.producer)
            return codes

        return self._run(commit.request.group_id, operation)

    def _committing(self, request: CommitRequest, producer: ProducerIdentity | None) -> Steps[None]:
        records = commit_records(request, self._wall_ms())
        if records:
            yield Write(records, producer)

    # Fetching

    def fetch(
        self,
        group_id: str,
        wanted: Mapping[str, Sequence[int]] | None,
        *,
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = NO_MEMBER_EPOCH,
    ) -> list[FetchedOffset]:
        """OffsetFetch of one group, all there is for None; with `require_stable` no offset for which another
        one may be committed by a transaction that hasn't ended.

        INVALID_GROUP_ID, COORDINATOR_LOAD_IN_PROGRESS. A group that isn't there has committed nothing.
        Members of consumer groups name themselves and their epoch: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
        """
        self._runtimes.check_loaded(checked_group_id(group_id))
        self._rules_of(group_id).check_fetch(group_id, member_id, member_epoch)
        return list(fetched_offsets(self._offsets, group_id, wanted, require_stable=require_stable))

    def topics(self) -> set[tuple[str, UUID]]:
        """The names and ids (zero where it isn't known) of all topics for which anything is committed."""
        return self._offsets.topics()

    # Deleting

    def delete(self, group_id: str, keys: Sequence[tuple[str, int]]) -> Completion[list[ErrorCode]]:
        """OffsetDelete of (topic name, partition) pairs: the outcome of each.

        INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """

        def operation() -> Steps[list[ErrorCode]]:
            rules = self._rules_of(checked_group_id(group_id))
            rules.check_deletion(group_id)
            is_read = partial(rules.is_read, group_id)
            records, codes = deletion_records(group_id, self._offsets, keys, is_read)
            if records:
                yield Write(records)
            return codes

        return self._run(group_id, operation)

    def tombstones(self, group_id: str) -> list[OffsetRecord]:
        """What removes all that a group has committed."""
        return [deleted_offset(key) for key in self._offsets.all_keys_of_group(group_id)]

    def forget_topics(self, topics: Mapping[str, Set[UUID]]) -> None:
        """Topics (by name, their ids) are gone: so is what was committed for exactly these. Nobody waits for
        it.
        """
        for log_partition in range(self._runtimes.partition_count):
            runtime = self._runtimes.of_partition(log_partition)
            runtime.submit(partial(self._forgetting_topics, log_partition, topics))

    def _forgetting_topics(self, log_partition: int, topics: Mapping[str, Set[UUID]]) -> Steps[None]:
        # Only now: what is being committed belongs to it.
        keys = self._offsets.keys_of_topics(log_partition, topics)
        yield from _write_in_pieces([deleted_offset(key) for key in keys])

    # Retention

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None if there is nothing to wait for."""
        return self._rounds.next_deadline_ms()

    def expire(self, now_ms: int) -> None:
        """Drop offsets that have been kept long enough, of as many groups as are looked at in one go."""
        for group_id in self._rounds.take(now_ms):
            self._run(group_id, partial(self._expiring, group_id)).when_done(self._on_checked)

    def _expiring(self, group_id: str) -> Steps[None]:
        rules = self._rules_of(group_id)
        if not rules.exists(group_id):
            return
        since_ms = partial(rules.retained_since_ms, group_id)
        times = (self._wall_ms(), self._settings.retention_ms)
        records: list[AnyGroupRecord] = [
            deleted_offset(key) for key in expired_keys(group_id, self._offsets, since_ms, *times)
        ]
        is_all = len(records) == self._offsets.count_of_group(group_id)
        if is_all and not self._offsets.pending.has_group(group_id):
            records.extend(rules.unused_tombstones(group_id))
        yield from _write_in_pieces(records)

    def _on_checked(self, _: Completion[None]) -> None:
        if self._rounds.done():
            self._on_deadline()

    def _group_ids(self) -> list[str]:
        return [*self._classic_groups.group_ids(), *self._consumer_groups.group_ids()]

    # Operations

    def _rules_of(self, group_id: str) -> OffsetRules:
        is_consumer = self._consumer_groups.exists(group_id)
        return self._consumer_groups if is_consumer else self._classic_groups

    def _run_for_member(
        self, group_id: str, operation: Operation[AnyGroupRecord, _Result]
    ) -> Completion[_Result]:
        """Run an operation by which a member's session may have begun anew."""
        reply = self._run(group_id, operation)
        reply.when_done(lambda _: self._on_deadline())
        return reply

    def _run(self, group_id: str, operation: Operation[AnyGroupRecord, _Result]) -> Completion[_Result]:
        return self._runtimes.of_group(group_id).submit(operation)


def _write_in_pieces(records: Sequence[AnyGroupRecord]) -> Steps[None]:
    for start in range(0, len(records), WRITE_RECORDS_MAX):
        yield Write(records[start : start + WRITE_RECORDS_MAX])
