"""A query as a member of its group: heartbeats, sessions, renewals and held records together (KIP-932).

    heartbeats -> membership                   the assigned partitions
    sessions -> leader_session                 acquires and settles records
    renewals                                   renews the locks of held records

This module knows nothing of batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import random
from typing import Final
from uuid import UUID

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.group.heartbeats import Heartbeats
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.client.share.membership import Membership
from barnabas.client.waiting.backoff import Backoff
from barnabas.client.waiting.signal import Signal
from barnabas.pipeline.share_requests import AckBatches
from barnabas.pipeline.share_source.held_ranges import Batch, HeldRanges
from barnabas.pipeline.share_source.leader_session import Fetched
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.ranges import union
from barnabas.pipeline.share_source.renewals import Renewals
from barnabas.pipeline.share_source.sessions import BACKOFF_MAX_MS, BACKOFF_MS, ShareSessions
from barnabas.pipeline.share_source.settling import Unsettled
from barnabas.protocol.client.consumer_apis import SHARE_GROUP_HEARTBEAT
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.identity import TopicIdPartition

_MS_PER_SECOND = 1000
_RELEASE: Final = (int(AcknowledgeType.RELEASE),)


class GroupMember:
    """One member of one group. `join` it once, `leave` it once; the cluster stays open."""

    def __init__(
        self,
        cluster: Cluster,
        membership: Membership,
        metrics: ShareMetrics,
        *,
        renew_locks: bool,
    ) -> None:
        self.held_ranges = HeldRanges()
        """The locked records. After a fetch, the caller adds the ranges to hold, and calls `keep`."""
        self._cluster = cluster
        self._membership = membership
        self._sessions = ShareSessions(
            cluster, membership.group_id, membership.member_id, self.held_ranges, metrics
        )
        self._settling = asyncio.Lock()
        self._renewals = (
            Renewals(self._sessions, self.held_ranges, metrics, self._settling) if renew_locks else None
        )
        self._heartbeats = Heartbeats(
            cluster,
            SHARE_GROUP_HEARTBEAT,
            membership,
            Backoff(BACKOFF_MS, BACKOFF_MAX_MS, random),
            self._note_assignment,
        )
        self._beating: asyncio.Task[None] | None = None
        self._news = Signal()

    @property
    def assignment(self) -> frozenset[TopicIdPartition]:
        """The partitions that this member reads."""
        return self._membership.assignment

    @property
    def is_reading(self) -> bool:
        """Whether the last fetch reached every partition of the assignment."""
        return bool(self.assignment) and self._sessions.is_reading

    def topic_name(self, topic_id: UUID) -> str | None:
        return self._cluster.view.topic_name(topic_id)

    def join(self) -> None:
        """Joins the group, in the background."""
        self._beating = asyncio.get_running_loop().create_task(self._heartbeats.run())
        self._beating.add_done_callback(lambda _: self._news.set())

    async def leave(self) -> None:
        """Ends the sessions, which releases every lock at once, and leaves the group, if that is possible."""
        if self._renewals is not None:
            self._renewals.stop()
        try:
            await self._sessions.end()
            if self._beating is not None:
                self._beating.cancel()
                await asyncio.wait([self._beating])
                await self._heartbeats.leave()
        finally:
            self._heartbeats.drop_connection()

    async def wait_for_assignment(self, timeout_ms: float) -> None:
        """Returns when there are partitions to read, or after `timeout_ms`. Raises the errors of `fetch`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / _MS_PER_SECOND
        while not self.assignment and loop.time() < deadline:
            self._raise_failure()
            self._news.clear()
            await self._news.wait((deadline - loop.time()) * _MS_PER_SECOND)

    async def fetch(self, record_count: int, max_wait_ms: int) -> Sequence[Fetched]:
        """Acquires about `record_count` records of the assignment; see `ShareSessions.fetch`.

        Raises `ConsumerError` for permanent errors, such as a group that is no share group.
        """
        self._raise_failure()
        if not self.assignment:
            await self.wait_for_assignment(max_wait_ms)
        if not self.assignment:
            return []
        # Without renewals a surplus would wait under locks that end. It would be delivered again and again,
        # until the delivery limit.
        is_exact = self._renewals is None or self._renewals.is_hopeless
        return await self._sessions.fetch(self.assignment, record_count, max_wait_ms, is_exact=is_exact)

    async def fetch_from(
        self, partitions: frozenset[TopicIdPartition], record_count: int, max_wait_ms: int
    ) -> Sequence[Fetched]:
        """Like `fetch`, but exactly, and from partitions that need not be assigned to this member."""
        self._raise_failure()
        return await self._sessions.fetch(partitions, record_count, max_wait_ms, is_exact=True)

    @property
    def is_answered(self) -> bool:
        """Whether the last fetch got a response for every partition."""
        return self._sessions.is_reading and not self._sessions.is_refused

    async def release(self, batch: Batch) -> None:
        """Releases records that the broker may still lock for this member since before a crash. Records that
        it does not lock for this member stay unchanged."""
        self._sessions.look_for_locks(batch)
        async with self._settling:
            await self._sessions.settle(
                {
                    partition: [AckBatch(first, last, _RELEASE) for first, last in union(batch[partition])]
                    for partition in batch
                }
            )

    def keep(self) -> None:
        """Renews the locks of held records, if that is wanted and possible."""
        if self._renewals is not None:
            self._renewals.begin()

    async def settle(self, settlement: AckBatches) -> list[Unsettled]:
        """Acknowledges ranges, which must not be held any more; returns the refused and unconfirmed ones."""
        async with self._settling:
            return await self._sessions.settle(settlement)

    def _raise_failure(self) -> None:
        if self._beating is not None and self._beating.done() and not self._beating.cancelled():
            self._beating.result()
        if self._renewals is not None:
            self._renewals.raise_failure()

    def _note_assignment(self) -> None:
        self._sessions.note_assignment()
        self._news.set()
