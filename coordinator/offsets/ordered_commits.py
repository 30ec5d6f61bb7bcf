"""The purgatory of groups with `individual.commit.order=partition`: a transactional commit of ranges is
written and answered when it reaches the stable offset. See `waiting_commits` for the choice.

Each change of a group's offsets or members tries its waiting commits again. A commit leaves the purgatory
with an error if its producer is fenced or its transaction ends, if its member leaves the group or has to give
up one of the partitions, and at the end of its wait; once it is being written, only a failed write is an
error. Then the client aborts the transaction. A commit whose
client has gone is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.offsets.commit import ranges_of
from barnabas.coordinator.offsets.committed_offset import OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.requests import NO_START, CommitRequest, TransactionalCommit
from barnabas.coordinator.offsets.waiting_commits import (
    Ranges,
    Reach,
    WaitingCommit,
    WaitingCommits,
    next_to_answer,
)
from barnabas.coordinator.replay.partition_operations import being_loaded
from barnabas.protocol.committed_ranges import OffsetRange, merged
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadline_table import DeadlineTable


class CommitSteps(Protocol):
    """The steps of a transactional commit."""

    def checked(
        self, commit: TransactionalCommit, waiting_count: Callable[[OffsetKey], int]
    ) -> tuple[CommitRequest, list[ErrorCode]]:
        """The part that can be stored now besides this number of waiting ranges of a partition, and the
        outcome of each offset. Raises the ApiError of a commit that may not take place now.
        """
        ...

    def check_wait(self, request: CommitRequest) -> None:
        """Raises the ApiError of a commit that may not wait."""
        ...

    def written(self, stored: CommitRequest, commit: TransactionalCommit) -> Steps[None]:
        """Write the part that can be stored."""
        ...


class OrderedCommits:
    """The waiting commits of all groups."""

    def __init__(
        self,
        offsets: CommittedOffsets,
        steps: CommitSteps,
        run: Callable[[str, Callable[[], Steps[None]]], Completion[None]],
        partition_of: Callable[[str], int],
    ) -> None:
        """`run` runs an operation on the partition of a group, which `partition_of` returns."""
        self._offsets = offsets
        self._steps = steps
        self._run = run
        self._partition_of = partition_of
        self._queued = WaitingCommits()
        """Commits whose operation has not begun, because an append to the partition is under way."""
        self._waiting = WaitingCommits()
        self._deadlines: DeadlineTable[WaitingCommit] = DeadlineTable()
        self._retried: set[str] = set()
        """The groups whose commits are about to be tried again."""

    def __len__(self) -> int:
        """The number of waiting commits."""
        return len(self._deadlines)

    def commit(self, commit: TransactionalCommit) -> Completion[list[ErrorCode]]:
        """The outcome of each offset once the commit is written."""
        waiting = WaitingCommit(commit, _ranges_of(commit.request))
        self._queued.add(waiting)
        entered = self._run(waiting.group_id, partial(self._entering, waiting))
        entered.when_done(partial(self._on_entered, waiting))
        return waiting.reply

    def _entering(self, waiting: WaitingCommit) -> Steps[None]:
        if not self._queued.has(waiting):
            return  # withdrawn meanwhile
        self._queued.remove(waiting)
        stored, codes = self._steps.checked(waiting.commit, self._waiting.range_count)
        waiting.ranges = _ranges_of(stored)
        if not waiting.ranges:
            yield from self._steps.written(stored, waiting.commit)
            waiting.reply.complete(codes)
            return
        self._waiting.add(waiting)
        self._deadlines.restart(waiting, waiting.commit.wait_until_ms)
        yield from self._answering(waiting.group_id)
        if not waiting.may_wait and not waiting.reply.done:
            self._refuse(waiting, _has_request_behind())

    def _on_entered(self, waiting: WaitingCommit, entered: Completion[None]) -> None:
        self._queued.remove(waiting)
        if entered.error is not None and not waiting.reply.done:
            self._refuse(waiting, entered.error)

    def withdraw(self, commit: TransactionalCommit) -> None:
        """The client is gone: the commit does not take place, unless it is being written."""
        queued = self._queued.find(commit)
        if queued is not None:
            self._queued.remove(queued)
        waiting = self._waiting.find(commit)
        if waiting is not None:
            self._remove(waiting)

    def end_wait(self, commit: TransactionalCommit) -> None:
        """A request waits behind the commit: TRANSACTION_ABORTABLE, unless it need not wait."""
        queued = self._queued.find(commit)
        if queued is not None:
            queued.may_wait = False
        waiting = self._waiting.find(commit)
        if waiting is not None and not waiting.is_being_written:
            self._refuse(waiting, _has_request_behind())

    def try_again(self, group_id: str) -> None:
        """The offsets or the members of the group have changed."""
        if group_id not in self._waiting or group_id in self._retried:
            return
        self._retried.add(group_id)
        retried = self._run(group_id, partial(self._trying_again, group_id))
        # Also if the operation was refused. Then another change, or the end of the wait, answers the commits.
        retried.when_done(lambda _: self._retried.discard(group_id))

    def try_producer_again(self, producer_id: int) -> None:
        """A transaction of the producer has ended."""
        groups = {
            waiting.group_id
            for waiting in self._waiting
            if waiting.commit.producer.producer_id == producer_id
        }
        for group_id in groups:
            self.try_again(group_id)

    def _trying_again(self, group_id: str) -> Steps[None]:
        self._retried.discard(group_id)
        yield from self._answering(group_id)

    def _answering(self, group_id: str) -> Steps[None]:
        """Write and answer all commits that reach the stable offset."""
        for waiting in self._waiting.of_group(group_id):
            try:
                self._steps.checked(waiting.commit, _none_waits)
                self._steps.check_wait(waiting.commit.request)
            except ApiError as error:
                self._refuse(waiting, error)
        while (chosen := next_to_answer(self._waiting.of_group(group_id), self._reach)) is not None:
            yield from self._writing(chosen)

    def _writing(self, waiting: WaitingCommit) -> Steps[None]:
        try:
            stored, codes = self._steps.checked(waiting.commit, _none_waits)
            waiting.is_being_written = True
            yield from self._steps.written(stored, waiting.commit)
        except ApiError as error:
            self._refuse(waiting, error)
            return
        self._remove(waiting)
        if not waiting.reply.done:
            waiting.reply.complete(codes)

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None without a deadline."""
        return self._deadlines.next_deadline_ms()

    def expire(self, now_ms: int) -> None:
        """End the waits that are over: TRANSACTION_ABORTABLE."""
        for waiting in self._deadlines.expire(now_ms):
            if not waiting.is_being_written:
                message = "The offsets before these were not committed in time: abort the transaction."
                self._refuse(waiting, ApiError(ErrorCode.transaction_abortable, message))

    def forget(self, log_partition: int) -> None:
        """The groups of that partition are being loaded: COORDINATOR_LOAD_IN_PROGRESS."""
        for waiting in list(self._waiting):
            if self._partition_of(waiting.group_id) == log_partition:
                self._refuse(waiting, being_loaded())

    def _reach(self, key: OffsetKey, ranges: Sequence[OffsetRange]) -> Reach:
        found = ranges_of(key, NO_START, self._offsets).ranges
        pending = (pending.added for pending in self._offsets.individual.pending(key))
        return Reach(found.stable_offset, found.plan([*pending, *ranges]).stable_offset)

    def _refuse(self, waiting: WaitingCommit, error: Exception) -> None:
        self._remove(waiting)
        if not waiting.reply.done:
            waiting.reply.fail(error)

    def _remove(self, waiting: WaitingCommit) -> None:
        self._waiting.remove(waiting)
        self._deadlines.cancel(waiting)


def _ranges_of(request: CommitRequest) -> Ranges:
    ranges = {
        OffsetKey(request.group_id, offset.topic_name, offset.partition): merged(offset.ranges)
        for offset in request.offsets
        if offset.ranges is not None
    }
    return {key: ones for key, ones in ranges.items() if ones}


def _has_request_behind() -> ApiError:
    message = "A request waits behind the commit. Commit on a connection of its own."
    return ApiError(ErrorCode.transaction_abortable, message)


def _none_waits(_: OffsetKey) -> int:
    return 0
