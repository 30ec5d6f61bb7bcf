"""The share sessions of one member: one with each broker that leads a partition that it reads.

A lost session loses its locks: they are removed from `held_ranges`, and a later fetch opens another session.
This module does not renew locks, and does not decide about acquired records.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from random import random
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerUnavailableError, ConsumerError
from barnabas.client.share.session_errors import SessionLostError
from barnabas.client.waiting.backoff import Backoff
from barnabas.pipeline.share_requests import AckBatches
from barnabas.pipeline.share_source.held_ranges import HeldRanges
from barnabas.pipeline.share_source.leader_session import Fetched, LeaderSession, Refusal
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.settling import Unsettled, settle
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

BACKOFF_MS: Final = 100
BACKOFF_MAX_MS: Final = 1_000
FETCHES_PER_LOCK: Final = 6
"""While locks are held, a fetch waits no longer than this part of a lock's duration: on Apache Kafka the
renewals wait behind it."""

_MS_PER_SECOND: Final = 1000

_Partitions = frozenset[TopicIdPartition]


class ShareSessions:
    """One member's sessions. `end` them once."""

    def __init__(
        self, cluster: Cluster, group_id: str, member_id: str, held_ranges: HeldRanges, metrics: ShareMetrics
    ) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._member_id = member_id
        self._held_ranges = held_ranges
        self._metrics = metrics
        self._sessions: dict[int, LeaderSession] = {}
        """By the leader's node id."""
        self._homes: dict[TopicIdPartition, int] = {}
        """By partition, the node id of the broker with its locks."""
        self._backoff = Backoff(BACKOFF_MS, BACKOFF_MAX_MS, random)
        self.is_reading = False
        """Whether every leader of the wanted partitions responded to the last fetch."""
        self.is_refused = False
        """Whether a leader refused a partition in the last fetch."""
        self._is_view_stale = True
        self._look_again_at = 0.0
        """The time of the loop's clock before which failed connections are not tried again."""

    @property
    def lock_ms(self) -> int | None:
        """The shortest duration of a lock; None before one is known."""
        return min((session.lock_ms for session in self._sessions.values() if session.lock_ms), default=None)

    @property
    def can_renew(self) -> bool:
        return all(session.can_renew for session in self._sessions.values())

    def note_assignment(self) -> None:
        """The partitions have changed: the next fetch looks up their leaders at once."""
        self._is_view_stale = True
        self._look_again_at = 0.0

    async def fetch(
        self, wanted: _Partitions, record_count: int, max_wait_ms: int, *, is_exact: bool
    ) -> list[Fetched]:
        """Acquires about `record_count` records of these partitions from their leaders.

        `is_exact` as in `LeaderSession.fetch`, for each leader's share. Waits for the first records, for at
        most `max_wait_ms`. Logs temporary errors; raises `ConsumerError` for permanent ones.
        """
        by_leader = await self._deal_out(wanted)
        self.is_reading = sum(map(len, by_leader.values())) == len(wanted)
        self.is_refused = False
        if not by_leader:
            await asyncio.sleep(max_wait_ms / _MS_PER_SECOND)
            return []
        share = -(-record_count // len(by_leader))
        # With several leaders, one that has nothing must not hold up the others.
        waits_ms = (0, max_wait_ms) if len(by_leader) > 1 and max_wait_ms else (max_wait_ms,)
        for wait_ms in waits_ms:
            fetching = [
                self._fetch_from(node, ones, share, wait_ms, is_exact) for node, ones in by_leader.items()
            ]
            answers = await asyncio.gather(*fetching)
            fetched = [answer for answer in answers if answer is not None]
            self.is_reading &= len(fetched) == len(answers)
            self.is_refused |= any(answer.refusals for answer in fetched)
            if any(answer.acquired for answer in fetched):
                return fetched
        return []

    async def settle(self, settlement: AckBatches) -> list[Unsettled]:
        """Acknowledges ranges; returns the refused and unconfirmed ones. Raises `BrokerError`."""
        by_node: dict[int | None, dict[TopicIdPartition, Sequence[AckBatch]]] = {}
        for partition, batches in settlement.items():
            by_node.setdefault(self._homes.get(partition), {})[partition] = batches
        answered = await asyncio.gather(*(self._settle_at(node, part) for node, part in by_node.items()))
        return [unsettled for of_node in answered for unsettled in of_node]

    def look_for_locks(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Lets `settle` release locks that the broker may hold for this member since before a crash."""
        for partition in partitions:
            leader = self._cluster.view.leader(partition)
            if leader is not None and leader in self._sessions:
                self._homes.setdefault(partition, leader)

    async def end(self) -> None:
        """Ends all sessions: the brokers release their records at once. Failures are only logged."""
        await asyncio.gather(*(self._end_session(node_id) for node_id in list(self._sessions)))

    # Leaders and sessions.

    async def _deal_out(self, wanted: _Partitions) -> dict[int, _Partitions]:
        """By leader, an open session and the partitions to fetch with it."""
        await self._look_up_leaders(wanted)
        by_leader: dict[int, set[TopicIdPartition]] = {}
        for partition in wanted:
            node_id = self._cluster.view.leader(partition)
            if node_id is not None:
                by_leader.setdefault(node_id, set()).add(partition)
                if self._homes.get(partition, node_id) != node_id:
                    self._lose(partition)
        await self._end_unused(by_leader.keys())
        ready = [node_id for node_id in by_leader if await self._ensure_session(node_id)]
        return {node_id: frozenset(by_leader[node_id]) for node_id in ready}

    async def _look_up_leaders(self, wanted: _Partitions) -> None:
        view = self._cluster.view
        is_missing = any(view.leader(partition) is None for partition in wanted)
        if not (is_missing or self._is_view_stale) or self._is_too_early():
            return
        try:
            await self._cluster.refresh({partition.topic_id for partition in wanted})
            self._is_view_stale = False
        except BrokerUnavailableError as error:
            log.debug("The leaders cannot be looked up: %s", error)
            self._wait_a_while()

    async def _ensure_session(self, node_id: int) -> bool:
        session = self._sessions.get(node_id)
        if session is not None:
            if session.is_open:
                return True
            self._lose_session(session, "the connection is lost")
        if self._is_too_early():
            return False
        try:
            connection = await self._cluster.open(self._cluster.view.brokers[node_id])
        except BrokerUnavailableError as error:
            log.debug("Node %d cannot be reached: %s", node_id, error)
            self._is_view_stale = True
            self._wait_a_while()
            return False
        self._sessions[node_id] = LeaderSession(connection, self._group_id, self._member_id)
        return True

    def _is_too_early(self) -> bool:
        return asyncio.get_running_loop().time() < self._look_again_at

    def _wait_a_while(self) -> None:
        pause = self._backoff.next_ms() / _MS_PER_SECOND
        self._look_again_at = asyncio.get_running_loop().time() + pause

    async def _fetch_from(
        self, node_id: int, partitions: _Partitions, record_count: int, max_wait_ms: int, is_exact: bool
    ) -> Fetched | None:
        session = self._sessions[node_id]
        if session.lock_ms and self._held_ranges.partitions:
            max_wait_ms = min(max_wait_ms, session.lock_ms // FETCHES_PER_LOCK)
        try:
            fetched = await session.fetch(partitions, record_count, max_wait_ms, is_exact=is_exact)
        except (BrokerUnavailableError, SessionLostError) as error:
            self._lose_session(session, error)
            self._wait_a_while()
            return None
        self._backoff.reset()
        self._homes.update(dict.fromkeys(fetched.acquired, node_id))
        for refusal in fetched.refusals:
            self._note_refusal(refusal)
        return fetched

    async def _settle_at(self, node_id: int | None, settlement: AckBatches) -> list[Unsettled]:
        session = None if node_id is None else self._sessions.get(node_id)
        if session is not None:
            try:
                return await settle(session, settlement)
            except (BrokerUnavailableError, SessionLostError) as error:
                self._lose_session(session, error)
        return list(_all_unsettled(settlement))

    async def _end_unused(self, used: Collection[int]) -> None:
        held_at = {self._homes.get(partition) for partition in self._held_ranges.partitions}
        for node_id in self._sessions.keys() - used - held_at:
            await self._end_session(node_id)

    async def _end_session(self, node_id: int) -> None:
        session = self._sessions.pop(node_id)
        try:
            await session.end()
        except (SessionLostError, ConsumerError) as error:
            log.debug("The share session with node %d did not end in order: %s", node_id, error)
        finally:
            session.close()

    def _lose_session(self, session: LeaderSession, reason: object) -> None:
        """Two requests of a session may both find it lost: the second one changes nothing."""
        for node_id in [node_id for node_id, known in self._sessions.items() if known is session]:
            del self._sessions[node_id]
            session.close()
            log.warning("The share session with node %d is lost, with all its locks: %s", node_id, reason)
            self._is_view_stale = True
            for partition in [partition for partition, home in self._homes.items() if home == node_id]:
                self._lose(partition)

    def _lose(self, partition: TopicIdPartition) -> None:
        del self._homes[partition]
        self._metrics.expired += self._held_ranges.lose(partition)

    def _note_refusal(self, refusal: Refusal) -> None:
        log.debug("%s cannot be fetched from: %s", refusal.partition, refusal.code.name)
        if not self._cluster.view.note_leader(refusal.partition, refusal.leader, refusal.endpoints):
            self._is_view_stale = True
            self._wait_a_while()


def _all_unsettled(settlement: AckBatches) -> Iterator[Unsettled]:
    for partition, batches in settlement.items():
        for batch in batches:
            yield Unsettled(partition, batch, ErrorCode.network_exception)
