"""Moves a consumer from the partitions that it has to those that the group assigns (KIP-848).

    revoked: stop reading -> commit processed records -> `on_revoked` -> give up
    added:   `on_assigned` -> read
    acknowledge with the owned partitions -> the next assignment
    lost:    give up -> `on_lost` -> join again

One step follows the other in a task of its own, so that the timeout of a poll does not cut it in the middle.
Polls start it and wait for it: the application's callbacks run only while a poll waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, Generic

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consume.assignment import AssignedPartition, Assignment
from barnabas.client.consume.consumer_membership import ConsumerMembership
from barnabas.client.consume.consumer_options import ConsumerSettings
from barnabas.client.consume.individual_progress import IndividualProgress
from barnabas.client.consume.ownership import Ownership
from barnabas.client.consume.rebalance_listener import RebalanceListener
from barnabas.client.errors import BrokerUnavailableError, MisuseError
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.counted import counted

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000


@dataclass(frozen=True, slots=True)
class Reconciling(Generic[KeyT, ValueT]):
    """The parts that a reconciliation needs."""

    settings: ConsumerSettings
    cluster: Cluster
    membership: ConsumerMembership
    assignment: Assignment[KeyT, ValueT]
    counts: Counter[str]
    commit: Callable[[Collection[AssignedPartition[KeyT, ValueT]]], Awaitable[None]]
    """Commits the processed records of partitions, as far as that is automatic; errors are only logged."""
    new_progress: Callable[[Ownership], IndividualProgress | None]
    """For partitions whose offsets are committed individually."""
    on_progress: Callable[[], None]
    """Called when the membership has news for the coordinator, or other partitions are to be read."""


class Reconciliation(Generic[KeyT, ValueT]):
    """The reconciliation of one consumer."""

    def __init__(self, parts: Reconciling[KeyT, ValueT]) -> None:
        self.listener = RebalanceListener()
        self._parts = parts
        self._membership = parts.membership
        self._assignment = parts.assignment
        self._task: asyncio.Task[None] | None = None
        self._unknown: frozenset[Ownership] = frozenset()
        """Assigned partitions of topics without a name: they were deleted, or the metadata is older."""
        self._error: Exception | None = None
        """The error of a callback, for the next poll."""

    @property
    def is_due(self) -> bool:
        """Whether there is a step to take."""
        membership = self._membership
        if membership.is_out:
            return True
        return membership.is_member and membership.assignment - self._unknown != membership.owned

    async def run(self) -> None:
        """Take the steps that are due; a cancelled caller does not cancel them.

        Raises the first error of a callback.
        """
        if self._task is not None and self._task is asyncio.current_task():
            raise MisuseError("A rebalance listener may not poll.")
        while self.is_due or self._task is not None:
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._run())
            await asyncio.shield(self._task)
            self._raise_error()
        self._raise_error()

    async def give_up_all(self) -> None:
        """The consumer leaves: revoke its partitions, or lose those that it has lost already."""
        if self._task is not None and self._task is asyncio.current_task():
            raise MisuseError("A rebalance listener may neither unsubscribe nor close the consumer.")
        if self._task is not None:
            await asyncio.shield(self._task)
        if self._membership.is_member:
            await self._revoke(list(self._assignment))
        else:
            await self._lose()
        self._raise_error()

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancel the task, and return it."""
        if self._task is None:
            return []
        self._task.cancel()
        return [self._task]

    async def _run(self) -> None:
        try:
            while self.is_due:
                if self._membership.is_out:
                    await self._lose()
                    self._membership.rejoin()
                    self._parts.on_progress()
                else:
                    await self._reconcile()
        except Exception as error:
            self._error = self._error or error
        finally:
            self._task = None

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def _reconcile(self) -> None:
        membership, assignment = self._membership, self._assignment
        life, target = membership.life, membership.assignment
        await self._learn_names(target)
        target -= self._unknown
        revoked = [partition for partition in assignment if partition.ownership not in target]
        if revoked:
            await self._revoke(revoked)
        added = [self._new(ownership) for ownership in sorted(target - assignment.owned)]
        if membership.life != life:
            return
        assignment.add(added)
        if added:
            await self._call(self.listener.on_assigned, added)
        for partition in added:
            partition.is_held = False
        self._parts.counts["rebalance-total"] += 1
        if membership.life == life:
            membership.acknowledge(assignment.owned)
            self._parts.on_progress()

    async def _revoke(self, revoked: Collection[AssignedPartition[KeyT, ValueT]]) -> None:
        """Commit, call back, and give up the partitions."""
        for partition in revoked:
            partition.is_held = True
        if self._membership.is_member:
            await self._parts.commit(revoked)
        if not self._membership.is_member:
            return
        if revoked:
            await self._call(self.listener.on_revoked, revoked)
            await self._commit_late(revoked)
        self._assignment.remove([partition for partition in revoked if partition in list(self._assignment)])

    async def _commit_late(self, revoked: Collection[AssignedPartition[KeyT, ValueT]]) -> None:
        """Commit single records that were processed while the listener waited for them.

        That also waits for a commit that the application has begun meanwhile. It would be refused later.
        """
        if any(partition.individual is not None for partition in revoked):
            await self._parts.commit(revoked)

    async def _lose(self) -> None:
        lost = list(self._assignment)
        self._assignment.remove(lost)
        if lost:
            partitions = counted(len(lost), "partition")
            log.warning("The group %s has taken %s away", self._membership.group_id, partitions)
            await self._call(self.listener.on_lost, lost)

    async def _learn_names(self, target: frozenset[Ownership]) -> None:
        """Ask for topics without a name; those that stay unknown are looked at again later."""
        view, backoff = self._parts.cluster.view, self._parts.settings.backoff()

        def nameless() -> frozenset[Ownership]:
            return frozenset(
                ownership for ownership in target if view.topic_name(ownership.partition.topic_id) is None
            )

        while nameless() and target == self._membership.assignment:
            try:
                await self._parts.cluster.refresh({ownership.partition.topic_id for ownership in target})
                break
            except BrokerUnavailableError as error:
                log.debug("The names of assigned topics are not known yet: %s", error)
                await asyncio.sleep(backoff.next_ms() / _MS_PER_SECOND)
        self._unknown = nameless()
        if self._unknown:
            delay = self._parts.settings.retry_backoff_max_ms / _MS_PER_SECOND
            asyncio.get_running_loop().call_later(delay, self._forget_unknown)

    def _forget_unknown(self) -> None:
        self._unknown = frozenset()
        self._parts.on_progress()

    def _new(self, ownership: Ownership) -> AssignedPartition[KeyT, ValueT]:
        topic = self._parts.cluster.view.topic_name(ownership.partition.topic_id)
        assert topic is not None, "the names were learned before"
        return AssignedPartition(ownership, topic, self._parts.new_progress(ownership))

    async def _call(
        self,
        callback: Callable[[Collection[TopicPartition]], Awaitable[None]],
        partitions: Collection[AssignedPartition[KeyT, ValueT]],
    ) -> None:
        try:
            await callback([partition.name for partition in partitions])
        except Exception as error:
            log.exception("The rebalance listener failed")
            self._error = self._error or error
