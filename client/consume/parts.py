"""The parts of an ordinary consumer: construction, start and close.

    fetch_buffer <- fetch_leader -> connection       one fetch_leader for each broker that leads
         `-> fetched_slice                           decodes the records
    heartbeats -> consumer_membership                the assigned partitions
    reconciliation -> assignment                     the partitions that the consumer has
    positions, offset_commits -> progress            where each is read, and committed
    range_commits -> individual_progress             the same for offsets that are committed individually

Every part can be used without the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any, Generic

from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.cluster.opening import retries_of
from barnabas.client.cluster.topics import Topics
from barnabas.client.consume.assignment import AssignedPartition, Assignment
from barnabas.client.consume.consumer_membership import ConsumerMembership, MemberProfile, Subscription
from barnabas.client.consume.consumer_options import ConsumerSettings
from barnabas.client.consume.consumer_record import ConsumerRecord
from barnabas.client.consume.fetch_buffer import FetchBuffer
from barnabas.client.consume.fetch_leader import Fetching, FetchLeader
from barnabas.client.consume.group_beginnings import GroupBeginnings
from barnabas.client.consume.individual_commits import GivenRanges, IndividualCommits
from barnabas.client.consume.offset_commits import OffsetCommits
from barnabas.client.consume.positions import Positions
from barnabas.client.consume.range_commits import RangeCommits
from barnabas.client.consume.rebalance_listener import RebalanceListener
from barnabas.client.consume.reconciliation import Reconciliation, Reconciling
from barnabas.client.errors import ConsumerClosedError, MisuseError, UnsupportedBrokerError
from barnabas.client.group.group_parts import GroupParts, Identity
from barnabas.client.group.heartbeats import Heartbeats
from barnabas.client.group.leader_tasks import LeaderTasks
from barnabas.client.group.offsets import CommittedOffset, fetch_group_offsets
from barnabas.client.group.ranges import TakenRanges
from barnabas.client.record_content import Deserializers, KeyT, ValueT
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.client.consumer_apis import CONSUMER_GROUP_HEARTBEAT
from barnabas.protocol.client.individual_apis import HEARTBEAT_OF_SHARER
from barnabas.protocol.errors import ErrorCode


class ConsumerParts(GroupParts[ConsumerRecord[KeyT, ValueT]], Generic[KeyT, ValueT]):
    """The parts of one consumer."""

    def __init__(
        self,
        identity: Identity,
        subscription: Subscription,
        listener: RebalanceListener | None,
        settings: ConsumerSettings,
        deserializers: Deserializers[KeyT, ValueT] | None,
    ) -> None:
        super().__init__(identity, settings)
        self._settings = settings
        self._counts: Counter[str] = Counter()
        profile = MemberProfile(
            identity.group_id,
            identity.member_id,
            settings.max_poll_interval_ms,
            settings.group_instance_id,
            settings.rack_id,
            settings.server_assignor,
            settings.allow_individual_commit,
        )
        self.membership = ConsumerMembership(profile, subscription)
        self.assignment = Assignment[KeyT, ValueT](self._look_again)
        self._buffer = FetchBuffer[KeyT, ValueT](settings, self.assignment, self._counts)
        self._leaders = LeaderTasks[FetchLeader[KeyT, ValueT]](
            self.cluster, self._tasks.start, self._new_leader
        )
        self._heartbeats = Heartbeats(
            self.cluster,
            HEARTBEAT_OF_SHARER if settings.allow_individual_commit else CONSUMER_GROUP_HEARTBEAT,
            self.membership,
            settings.backoff(),
            self._buffer.news.set,
            self._note_answer,
        )
        self._make_offset_parts()
        self._make_rebalance_parts(listener)
        self._make_fetch_parts(deserializers)
        self._is_polled = False
        self._is_quiet = False
        """Whether nothing has changed in the membership since the last poll."""
        self._has_failed = False

    def _make_offset_parts(self) -> None:
        settings = self._settings
        retries = retries_of(settings)
        self._coordinators = Coordinators(self.cluster, retries)
        self.commits = OffsetCommits(
            self._coordinators,
            self.membership,
            self.assignment,
            retries,
            self._counts,
            self._heartbeats.hurry,
        )
        self._range_commits = RangeCommits(
            self._coordinators,
            self.commits,
            self.assignment,
            settings,
            retries,
            self._counts,
            self.look_again,
        )
        self.individual = IndividualCommits(settings, self.assignment, self._range_commits)
        # Each round of searches tries once, so that an unavailable partition does not delay the others.
        once = Retries(give_up_ms=0)
        self._eager_topics = Topics(self._queries, once)
        self._eager_coordinators = Coordinators(self.cluster, once)
        beginnings = GroupBeginnings(
            self._eager_coordinators,
            self._eager_topics,
            self.commits,
            self._range_commits,
            settings.isolation,
        )
        self.positions = Positions(
            self.assignment,
            self.commits,
            self._eager_coordinators,
            self._eager_topics,
            beginnings,
            settings,
            self._buffer.news.set,
        )

    def _make_rebalance_parts(self, listener: RebalanceListener | None) -> None:
        self.reconciliation = Reconciliation(
            Reconciling(
                self._settings,
                self.cluster,
                self.membership,
                self.assignment,
                self._counts,
                self._commit_processed,
                self.individual.new_progress,
                self._note_progress,
            )
        )
        self.reconciliation.listener = listener or RebalanceListener()

    def _make_fetch_parts(self, deserializers: Deserializers[KeyT, ValueT] | None) -> None:
        self._fetching = Fetching(
            self._settings,
            self.cluster,
            self.assignment,
            self._buffer,
            deserializers,
            self._counts,
            self.positions.reset_out_of_range,
            self._leaders.note_stale_metadata,
            self._note_leader_changed,
        )

    async def start(self) -> None:
        await super().start()
        self._check_topics(self.membership.subscription.topics)

    def subscribe(self, subscription: Subscription, listener: RebalanceListener | None) -> None:
        """Read other topics from now on; a listener of None keeps the last one."""
        if listener is not None:
            self.reconciliation.listener = listener
        self.membership.subscribe(subscription)
        self._heartbeats.hurry()
        self._check_topics(subscription.topics)

    def stop(self) -> None:
        """End polls with `ConsumerClosedError`; see `Consumer.stop`."""
        self._buffer.end(ConsumerClosedError("The consumer is stopped."))

    async def unsubscribe(self) -> None:
        """Give up the partitions, and leave the group until the next `subscribe`."""
        self._settle()
        try:
            await self.reconciliation.give_up_all()
        finally:
            self.membership.subscribe(Subscription())
            self.membership.acknowledge(())
            self._note_progress()

    async def next(self, count_max: int) -> list[ConsumerRecord[KeyT, ValueT]]:
        if self._is_polled:
            raise MisuseError("Another task is polling this consumer.")
        self._is_polled = True
        try:
            return await super().next(count_max)
        finally:
            self._is_polled = False

    def next_decoded(self) -> ConsumerRecord[KeyT, ValueT] | None:
        """The next record, if it is decoded and a poll has nothing else to do; otherwise use `next`."""
        if self._is_woken or not self._is_quiet or self._is_polled or self._turn.is_over():
            return None
        self._settle()
        record = self._buffer.take_decoded()
        if record is not None:
            self._watch.note_poll()
        return record

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset] | None) -> None:
        """Commit these offsets, or those of all records that were delivered."""
        if self._settings.allow_individual_commit:
            if offsets is not None:
                raise MisuseError("Other consumers may read records below an offset; use commit_ranges.")
            await self.individual.commit()
            return
        if offsets is None:
            self.assignment.settle()
            found = self.assignment.to_commit()
            offsets = {name: CommittedOffset(offset, "") for name, offset in found.items()}
        await self.commits.commit(offsets)

    async def commit_ranges(self, given: GivenRanges) -> None:
        """Commit the records of these ranges, once the group's offsets are known."""
        self.individual.check(given)
        for name in given:
            await self.positions.wait(self.assignment.named(name))
        await self.individual.commit_ranges(given)

    def take_ranges(self, names: Collection[TopicPartition] | None) -> TakenRanges:
        """The ranges to commit in a transaction."""
        return TakenRanges(self.individual.take_ranges(names), self.membership.member_epoch)

    async def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The group's committed offsets; None for a partition without one."""
        found = await fetch_group_offsets(self._coordinators, self.commits.reader_metadata, partitions)
        return {TopicPartition(*partition): found.get(TopicPartition(*partition)) for partition in partitions}

    def go_back(self, names: Collection[TopicPartition] | None) -> None:
        """Deliver the records that the group has not committed once more."""
        for partition in self.assignment.select(names):
            partition.go_back()
        self.look_again()

    def look_again(self) -> None:
        """A partition was resumed or sought."""
        self._look_again()
        self._buffer.news.set()

    def note_failure(self) -> None:
        """The application failed: records of the last poll are not processed, and not committed."""
        self._has_failed = True

    def _background_work(self) -> Sequence[Coroutine[Any, Any, None]]:
        settings = self._settings
        work = [
            self._leaders.keep_metadata(settings.backoff(), settings.metadata_max_age_ms),
            self._heartbeats.run(),
            self.positions.run(),
        ]
        if settings.allow_individual_commit:
            work.append(self._range_commits.run())
        elif settings.enable_auto_commit:
            work.append(self.commits.commit_at_intervals(settings.auto_commit_interval_ms))
        return work

    def _begin_poll(self) -> None:
        self._settle()
        self._buffer.check_open()
        if self.membership.subscription.is_empty:
            raise MisuseError("The consumer is subscribed to no topic.")
        self.individual.check_delivered()

    def _settle(self) -> None:
        if self._settings.settles_at_polls:
            self.assignment.settle()

    async def _commit_processed(self, partitions: Collection[AssignedPartition[KeyT, ValueT]]) -> None:
        if self._settings.allow_individual_commit:
            await self._range_commits.commit_quietly(partitions)
        elif self._settings.enable_auto_commit:
            await self.commits.commit_quietly(self.assignment.to_commit(partitions))

    async def _check_broker(self) -> None:
        if self._settings.allow_individual_commit and not await self.cluster.supports(HEARTBEAT_OF_SHARER):
            raise UnsupportedBrokerError(
                ErrorCode.unsupported_version,
                "The broker does not have the feature individual.commit, which is an extension by Barnabas. "
                "Connect to Barnabas, or leave out allow_individual_commit.",
            )

    async def _prepare(self) -> None:
        self._buffer.check_open()
        await self.reconciliation.run()
        self._is_quiet = True
        self._buffer.news.clear()

    def _take(self, count_max: int) -> list[ConsumerRecord[KeyT, ValueT]]:
        return self._buffer.take(count_max)

    async def _wait(self, count_max: int) -> None:
        await self._buffer.news.wait(None)

    def _wake_readers(self) -> None:
        self._buffer.news.set()

    def _leave_for_now(self) -> bool:
        self._is_quiet = False
        leaves = self.membership.suspend()
        self._heartbeats.hurry()
        return leaves

    async def _leave(self) -> None:
        self._buffer.end(ConsumerClosedError("The consumer is closed."))
        if not self._has_failed:
            self._settle()
        try:
            await self.reconciliation.give_up_all()
        finally:
            await self._tasks.cancel(self._background)
            await self._heartbeats.leave()

    def _end(self, error: BaseException) -> None:
        self._buffer.end(error)

    def _close_connections(self) -> None:
        self._buffer.end(ConsumerClosedError("The consumer is closed."))
        self.reconciliation.cancel()
        self._eager_topics.close()
        self._eager_coordinators.close()
        self._coordinators.close()
        self._heartbeats.drop_connection()

    def _counters(self) -> dict[str, float]:
        lags = [partition.lag for partition in self.assignment if partition.lag is not None]
        return {
            "assigned-partitions": len(self.assignment),
            "buffered-bytes": self._buffer.size_bytes,
            "heartbeat-total": self._heartbeats.count,
            "records-lag": sum(lags),
            "records-lag-max": max(lags, default=0),
            "bytes-consumed-total": 0,
            "commit-total": 0,
            "ranges-to-commit": self._range_commits.waiting_count,
            "fetch-total": 0,
            "rebalance-total": 0,
            "records-consumed-total": 0,
            **self._counts,
        }

    def _new_leader(self, node_id: int) -> FetchLeader[KeyT, ValueT]:
        return FetchLeader(node_id, self._fetching)

    def _look_again(self) -> None:
        self._leaders.look_again()
        self.positions.look_again()

    def _note_answer(self) -> None:
        self._is_quiet = False
        if self.reconciliation.is_due:
            self._buffer.news.set()

    def _note_progress(self) -> None:
        self._is_quiet = False
        self._leaders.assign(self.assignment.fetched)
        self._look_again()
        self._heartbeats.hurry()
        self._buffer.news.set()

    def _note_leader_changed(self) -> None:
        self._leaders.deal_out()
