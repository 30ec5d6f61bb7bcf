"""Commits of a consumer's offsets, one after the other (KIP-848, "OffsetCommit").

The coordinator accepts a commit only from a member with its current epoch. If the epoch has moved on
meanwhile, the commit is repeated with the new one. If the member was removed, the commit fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Generic, TypeVar

from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.consume.assignment import Assignment
from barnabas.client.consume.consumer_membership import ConsumerMembership, ConsumerState
from barnabas.client.errors import BrokerError, CommitFailedError, ConsumerError
from barnabas.client.group.offsets import CommittedOffset, GroupMetadata, commit_group_offsets
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000
_REMOVED: Final = frozenset(
    {
        ErrorCode.unknown_member_id,
        ErrorCode.fenced_member_epoch,
        ErrorCode.fenced_instance_id,
        ErrorCode.illegal_generation,
    }
)
_REASONS: Final = {
    ConsumerState.FENCED: "the coordinator has removed the consumer from the group",
    ConsumerState.AWAY: "the consumer has left the group, because the application did not poll in time",
    ConsumerState.UNSUBSCRIBED: "the consumer is subscribed to no topic",
}


_Result = TypeVar("_Result")


class OffsetCommits(Generic[KeyT, ValueT]):
    """The commits of one consumer."""

    def __init__(
        self,
        coordinators: Coordinators,
        membership: ConsumerMembership,
        assignment: Assignment[KeyT, ValueT],
        retries: Retries,
        counts: Counter[str],
        hurry: Callable[[], None],
    ) -> None:
        """`hurry` sends the next heartbeat now."""
        self._coordinators = coordinators
        self._membership = membership
        self._assignment = assignment
        self._retries = retries
        self._counts = counts
        self._hurry = hurry
        self._turn = asyncio.Lock()

    @property
    def is_member(self) -> bool:
        return self._membership.is_member

    @property
    def group_metadata(self) -> GroupMetadata:
        """The member as the coordinator knows it now."""
        profile = self._membership.profile
        epoch = self._membership.member_epoch
        return GroupMetadata(profile.group_id, epoch, profile.member_id, profile.instance_id)

    @property
    def reader_metadata(self) -> GroupMetadata:
        """Like `group_metadata`, for reading offsets, which a client that is no member may do, too."""
        member = self.group_metadata
        return member if self._membership.is_member else GroupMetadata(member.group_id)

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit after the earlier commits.

        Raises `CommitFailedError`, `BrokerError` for another lasting error, and `BrokerUnavailableError` for
        a temporary error that lasts too long.
        """
        if not offsets:
            return
        async with self._turn:
            await self.as_member(lambda member: commit_group_offsets(self._coordinators, member, offsets))
        self._counts["commit-total"] += 1
        for name, committed in offsets.items():
            self._assignment.note_committed(TopicPartition(*name), committed.offset)

    async def commit_quietly(self, offsets: Mapping[TopicPartition, int]) -> None:
        """A commit without a caller that waits: an error is only logged."""
        try:
            await self.commit({name: CommittedOffset(offset, "") for name, offset in offsets.items()})
        except ConsumerError as error:
            log.warning("The automatic commit of the group %s failed: %s", self._membership.group_id, error)

    async def commit_at_intervals(self, interval_ms: int) -> None:
        """Commit all records that are processed, until cancelled."""
        while True:
            await asyncio.sleep(interval_ms / _MS_PER_SECOND)
            if self._membership.is_member:
                await self.commit_quietly(self._assignment.to_commit())

    async def as_member(self, commit: Callable[[GroupMetadata], Awaitable[_Result]]) -> _Result:
        """The result of a commit by this member, which is repeated if the epoch has moved on.

        Raises the errors of `commit`.
        """
        patience = self._retries.patience()
        while True:
            member = self._member()
            try:
                return await commit(member)
            except BrokerError as error:
                if error.code in _REMOVED:
                    self._hurry()
                    raise CommitFailedError(member.group_id, f"the answer is {error.code.name}") from error
                if error.code is not ErrorCode.stale_member_epoch:
                    raise
                if self._membership.member_epoch == member.member_epoch:
                    self._hurry()
                    failure = f"the member's epoch {member.member_epoch} is not the coordinator's"
                    await patience.pause(CommitFailedError(member.group_id, failure))

    def _member(self) -> GroupMetadata:
        membership = self._membership
        if not membership.is_member:
            reason = _REASONS.get(membership.state, "the consumer is no member of the group at the moment")
            raise CommitFailedError(membership.group_id, reason)
        return self.group_metadata
