"""The parts of a share consumer: construction, start and close.

    queue <- leader -> exchange -> connection        one leader for each broker that leads
                `-> ledger   |-> session
                             `-> record_reader -> record
    leaders                                           each partition's leader, a task for each
    heartbeats -> membership                          the assignment

Every part can be used without the others.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, Generic

from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.cluster.leader_requests import LeaderRequests
from barnabas.client.cluster.opening import retries_of
from barnabas.client.errors import AcknowledgeError, ConsumerClosedError, MisuseError
from barnabas.client.group.group_parts import GroupParts, Identity
from barnabas.client.group.heartbeats import Heartbeats
from barnabas.client.group.share_positions import fetch_end_offsets, fetch_start_offsets
from barnabas.client.record_content import Deserializers, KeyT, ValueT
from barnabas.client.share.callback_guard import CallbackGuard
from barnabas.client.share.exchange import ShareReading
from barnabas.client.share.leader import ShareLeader
from barnabas.client.share.leaders import ShareLeaders
from barnabas.client.share.membership import Membership
from barnabas.client.share.options import Settings
from barnabas.client.share.prefetch_queue import PrefetchQueue
from barnabas.client.share.record import Outcome, ShareRecord
from barnabas.client.share.record_reader import RecordReader
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.client.consumer_apis import SHARE_GROUP_HEARTBEAT

log = logging.getLogger(__name__)


class ShareParts(GroupParts[ShareRecord[KeyT, ValueT]], Generic[KeyT, ValueT]):
    """The parts of one share consumer."""

    def __init__(
        self,
        identity: Identity,
        topics: Sequence[str],
        settings: Settings,
        deserializers: Deserializers[KeyT, ValueT],
    ) -> None:
        super().__init__(identity, settings)
        self._settings = settings
        self.guard = CallbackGuard("on_outcome")
        self.leaders = ShareLeaders[KeyT, ValueT](self.cluster, self._tasks.start, self._new_leader)
        self.queue = PrefetchQueue[KeyT, ValueT](settings, self.leaders.look_again)
        self._reading = ShareReading(
            group_id=identity.group_id,
            member_id=identity.member_id,
            settings=settings,
            cluster=self.cluster,
            reader=RecordReader(deserializers, settings.unreadable),
            queue=self.queue,
            guard=self.guard,
            on_outcome=self._note_outcome,
            on_stale_metadata=self.leaders.note_stale_metadata,
            on_leader_changed=self._note_leader_changed,
        )
        self._membership = Membership(identity.group_id, identity.member_id, topics, settings.rack_id)
        self.heartbeats = Heartbeats(
            self.cluster, SHARE_GROUP_HEARTBEAT, self._membership, settings.backoff(), self._note_assignment
        )
        self._coordinators = Coordinators(self.cluster)
        self._leader_requests = LeaderRequests(self._queries, retries_of(settings))
        self._delivered: list[ShareRecord[KeyT, ValueT]] = []
        """In implicit mode, the records that the last poll returned."""
        self._outcomes: dict[TopicPartition, AcknowledgeError | None] = {}
        self._counts: Counter[str] = Counter()

    async def start(self) -> None:
        await super().start()
        self._check_topics(self._membership.topics)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read other topics from now on. Raises `ConsumerClosedError` after a stop."""
        if self.queue.has_ended:
            raise ConsumerClosedError("The consumer reads no further records.")
        self._membership.subscribe(topics)
        self._membership.rejoin()
        self.heartbeats.hurry()
        self._check_topics(topics)

    async def unsubscribe(self) -> None:
        """Leave the group until the next `subscribe`: acknowledge, release the other records."""
        self._membership.subscribe(())
        self._leave_for_now()
        await self.leaders.flush()

    def stop(self) -> None:
        """Leave the group for good. Readers get no further record, and may acknowledge those they hold."""
        self._leave_for_now()
        self.queue.stop()

    @property
    def subscription(self) -> frozenset[str]:
        return frozenset(self._membership.topics)

    async def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """By partition, the offset from which the group reads; -1 if the group has not begun to read it."""
        return await fetch_start_offsets(self._coordinators, self.group_id, partitions)

    async def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """By partition, up to where the group has acquired records (exclusive); -1 if it has not begun."""
        by_id = await self._identified(partitions)
        ends = await fetch_end_offsets(self._leader_requests, self.group_id, by_id)
        return {name: ends[partition] for partition, name in by_id.items()}

    def accept_delivered(self) -> None:
        """In implicit mode, accept the records that the reader has received since the last call."""
        delivered, self._delivered = self._delivered, []
        for record in delivered:
            record.accept_delivered()

    def take_outcomes(self) -> dict[TopicPartition, AcknowledgeError | None]:
        """By partition, the result of the acknowledgements since the last call: the first error, or None."""
        outcomes, self._outcomes = self._outcomes, {}
        return outcomes

    def _background_work(self) -> Sequence[Coroutine[Any, Any, None]]:
        metadata = self.leaders.keep_metadata(self._settings.backoff(), self._settings.metadata_max_age_ms)
        return metadata, self.heartbeats.run()

    def _begin_poll(self) -> None:
        self.accept_delivered()
        if self.queue.has_ended:
            return  # `_take` raises the reason
        if not self._membership.topics:
            raise MisuseError("The consumer is subscribed to no topic.")
        if self._membership.is_away:
            self._membership.rejoin()
            self.heartbeats.hurry()

    def _take(self, count_max: int) -> list[ShareRecord[KeyT, ValueT]]:
        records = self.queue.take(count_max)
        self._counts["records-consumed-total"] += len(records)
        if self._settings.is_implicit:
            self._delivered += records
        return records

    async def _wait(self, count_max: int) -> None:
        await self.queue.wait(count_max)

    def _wake_readers(self) -> None:
        self.queue.wake_readers()

    def _leave_for_now(self) -> bool:
        """Waiting records go back at once; records that the application holds stay locked for it."""
        leaves = self._membership.suspend()
        self.leaders.assign(self._membership.assignment)
        for record in self.queue.drop():
            record.release_unread()
        self.heartbeats.hurry()
        return leaves

    async def _leave(self) -> None:
        self.queue.end()
        await self.leaders.finish()
        await self._tasks.cancel(self._background)
        await self.heartbeats.leave()

    def _end(self, error: BaseException) -> None:
        self.queue.end(error)

    def _close_connections(self) -> None:
        self.queue.end()
        self._coordinators.close()
        self._leader_requests.close()
        self.heartbeats.drop_connection()

    def _counters(self) -> dict[str, float]:
        return {
            "assigned-partitions": len(self._membership.assignment),
            "heartbeat-total": self.heartbeats.count,
            "records-held": sum(leader.held_count for leader in self.leaders),
            "records-waiting": self.queue.count,
            "records-consumed-total": 0,
            "acknowledgements-send-total": 0,
            "acknowledgements-error-total": 0,
            **self._counts,
        }

    def _new_leader(self, node_id: int) -> ShareLeader[KeyT, ValueT]:
        return ShareLeader(node_id, self._reading)

    def _note_assignment(self) -> None:
        self.leaders.assign(self._membership.assignment)

    def _note_leader_changed(self) -> None:
        self.leaders.deal_out()

    def _note_outcome(self, outcome: Outcome) -> None:
        partition = TopicPartition(outcome.topic, outcome.partition)
        self._outcomes[partition] = self._outcomes.get(partition) or outcome.error
        self._counts["acknowledgements-send-total"] += len(outcome.offsets)
        if outcome.error is not None:
            self._counts["acknowledgements-error-total"] += len(outcome.offsets)
            log.warning("%s", outcome.error)
        if self._settings.on_outcome is None:
            return
        try:
            with self.guard:
                self._settings.on_outcome(outcome)
        except Exception as error:
            log.exception("on_outcome failed; the consumer ends")
            self.queue.end(error)
