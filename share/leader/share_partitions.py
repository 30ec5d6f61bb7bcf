"""The share-partitions that this broker leads, each loaded when it is first asked for.

A group that reads a thousand partitions costs nothing here until it fetches from them, and a leader in
which nothing is in flight can be dropped at any time, because its state is in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.identity import Place, SharePartitionKey, TopicIdPartition
from barnabas.runtime.clock import Clock
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger
from barnabas.runtime.purgatory import Purgatory
from barnabas.share.leader.backlog import Backlog
from barnabas.share.leader.delivery_limit_reports import DeliveryLimitReports
from barnabas.share.leader.idle_lags import IdleLags
from barnabas.share.leader.idle_leaders import IdleLeaders
from barnabas.share.leader.share_counts import ShareCounts
from barnabas.share.leader.share_partition_leader import (
    DeadLetterWriter,
    LeaderServices,
    SharePartitionLeader,
)
from barnabas.share.leader.state_store import ShareStateStore
from barnabas.share.partition.limits import ShareLimits
from barnabas.storage.errors import StorageError
from barnabas.storage.format.share_image import UNDECIDED_OFFSET, ShareStateImage
from barnabas.storage.log.partition_log import PartitionLog


class GroupFacts(Protocol):
    """The facts about share groups that leaders need."""

    def group_incarnation(self, group_id: str) -> int | None:
        """Tells a group from an earlier one of the same name; None if there is no such group."""
        ...

    def group_epoch(self, group_id: str) -> int: ...

    def starts_at_zero(self, key: SharePartitionKey) -> bool:
        """Whether the group begins at offset 0 unless its share state says otherwise."""
        ...


FAILURE_TOLD_MS: Final = 5_000
"""The error of a failed load answers the next request for this time, which most fetches do not wait for."""


logger = get_logger("share")

_NO_LEADERS: Final[Mapping[str, SharePartitionLeader]] = {}


class _FailedLoad(NamedTuple):
    error: ApiError | StorageError
    told_until_ms: int
    """Monotonic, exclusive."""


class Transactions(Protocol):
    """The transactions in which records of share-partitions are acknowledged."""

    def acknowledgements_found(self, leader: SharePartitionLeader) -> None:
        """A new leader has acknowledgements that wait for the ends of transactions."""
        ...

    def has_acknowledgements(self, key: SharePartitionKey) -> bool:
        """Whether acknowledgements in the share-partition may wait for the end of a transaction."""
        ...


class _NoTransactions:
    def acknowledgements_found(self, leader: SharePartitionLeader) -> None: ...

    def has_acknowledgements(self, key: SharePartitionKey) -> bool:
        return False


class SharePartitions:
    """All leaders of one broker, by key and by partition. Used on the loop's thread only."""

    def __init__(
        self,
        *,
        clock: Clock,
        deadlines: Deadlines,
        purgatory: Purgatory,
        groups: GroupFacts,
        limits: Callable[[str], ShareLimits],
        random: Callable[[], float],
        has_topic: Callable[[UUID], bool],
        store: ShareStateStore,
        reopen: Callable[[TopicIdPartition], None],
        dead_letters: DeadLetterWriter,
    ) -> None:
        """`limits` are a group's as they are now; `random` returns numbers from 0 (inclusive) to 1
        (exclusive); `has_topic` tells whether there is a topic; `reopen` begins to open a log that went
        offline.
        """
        self.clock = clock
        self.limits = limits
        self.counts = ShareCounts(has_topic)
        self.transactions: Transactions = _NoTransactions()
        """Set once they are there, before the first leader is loaded."""
        self._deadlines = deadlines
        self._purgatory = purgatory
        self._groups = groups
        self._store = store
        self._leaders: dict[SharePartitionKey, SharePartitionLeader] = {}
        self.idle_lags = IdleLags()
        self._idle_leaders = IdleLeaders(self._leaders, self._forget_idle)
        self._delivery_limits = DeliveryLimitReports(clock, deadlines)
        self._services = LeaderServices(
            clock,
            deadlines,
            purgatory,
            self.counts,
            self._delivery_limits,
            limits,
            random,
            reopen,
            dead_letters,
        )
        self._by_partition: dict[Place, dict[str, SharePartitionLeader]] = {}
        """By group. Ordered, so that the writes for several groups have the same order in every run."""
        self._resets: dict[SharePartitionKey, Completion[None]] = {}
        self._loads: dict[SharePartitionKey, Completion[None]] = {}
        self._failed_loads: dict[SharePartitionKey, _FailedLoad] = {}
        """The reason why a state could not be loaded, until it is reported or the next load begins."""

    def __iter__(self) -> Iterator[SharePartitionLeader]:
        return iter(self._leaders.values())

    def backlogs(self) -> Iterator[Backlog]:
        """Also of share-partitions whose leader is gone; without those whose start is undecided."""
        for leader in self:
            if leader.core.is_initialised:
                yield leader.backlog()
        yield from self.idle_lags

    def known_lag(self, key: SharePartitionKey) -> int | None:
        """The records that are not final; None if that is not in memory, or the start is undecided."""
        leader = self.in_memory(key)
        if leader is None:
            return self.idle_lags.lag_of(key)
        return leader.lag() if leader.core.is_initialised else None

    def get(self, key: SharePartitionKey) -> SharePartitionLeader | None:
        """The leader, if it has been loaded."""
        leader = self._leaders.get(key)
        if leader is None:
            return None
        if leader.closed:  # its store has fenced it: another one is loaded
            self.forget(key)
            return None
        leader.used = True
        return leader

    def in_memory(self, key: SharePartitionKey) -> SharePartitionLeader | None:
        """The leader, if it has been loaded; an idle one stays idle."""
        leader = self._leaders.get(key)
        return None if leader is None or leader.closed else leader

    def lead(self, key: SharePartitionKey, log: PartitionLog) -> SharePartitionLeader | None:
        """The leader, loaded if need be; None while its state is being loaded or reset, see `under_way`.

        The group exists, and `log` is the partition's open log. Raises StorageError, or ApiError.
        """
        leader = self.get(key)
        if leader is None and self.under_way(key) is None:
            leader = self._load(key, log)
        return leader

    def forget(self, key: SharePartitionKey) -> None:
        """Stop leading: the state was reset or deleted, its topic was deleted, or the leader is idle. Waiting
        fetches look again.
        """
        self._loads.pop(key, None)
        self._failed_loads.pop(key, None)
        self.idle_lags.forget(key)
        leader = self._leaders.pop(key, None)
        if leader is not None:
            place = key.topic_id_partition.place
            of_partition = self._by_partition[place]
            of_partition.pop(key.group_id, None)
            if not of_partition:
                del self._by_partition[place]
            leader.closed = True
            self.counts.leader_ended(key.group_id)
            self._deadlines.cancel(leader)
            self.wake_fetches(key)

    def put_away(self, key: SharePartitionKey) -> None:
        """The leader was loaded for its lag alone: it goes again, unless it has something to do."""
        leader = self.in_memory(key)
        if leader is not None and leader.is_idle:
            self._forget_idle(key)

    def went_idle(self, key: SharePartitionKey) -> bool:
        """Whether the last leader went because it had nothing to do; no record waits for a dead letter then.
        False also if that is not known (`IDLE_LAGS_MAX`).
        """
        return key in self.idle_lags

    def _forget_idle(self, key: SharePartitionKey) -> None:
        leader = self._leaders[key]
        self.forget(key)
        self.idle_lags.note(leader)

    def hold_back(self, key: SharePartitionKey, reset: Completion[None]) -> None:
        """Stop leading until `reset` has ended: a leader loaded before that would begin from the old state.

        The latest reset counts.
        """
        self._resets[key] = reset
        self.forget(key)
        reset.when_done(lambda ended: self._reset_ended(key, ended))

    def under_way(self, key: SharePartitionKey) -> Completion[None] | None:
        """The reset or the load that must end before the leader can be asked for; None if there is none."""
        return self._resets.get(key) or self._loads.get(key)

    def forget_topic(self, topic_id: UUID, partition_count: int) -> None:
        """The topic is gone, and its logs with it."""
        self.counts.forget_topic(topic_id)
        for index in range(partition_count):
            self.forget_partition(TopicIdPartition(topic_id, index))

    def forget_partition(self, partition: TopicIdPartition) -> None:
        """The log that the leaders worked on is no more."""
        for leader in list(self._by_partition.get(partition.place, _NO_LEADERS).values()):
            self.forget(leader.key)
        loads = [*self._loads, *self._failed_loads]
        for key in [key for key in loads if key.topic_id_partition == partition]:
            self.forget(key)
        self._by_partition.pop(partition.place, None)
        self.idle_lags.forget_partition(partition)
        self._store.forget_partition(partition)

    def log_moved(self, place: Place, log: PartitionLog) -> None:
        """The log's high watermark or start has moved."""
        leaders = self._by_partition.get(place)
        if leaders:
            log_start_offset = log.state.log_start_offset
            for leader in list(leaders.values()):
                if leader.core.window.spso < log_start_offset and not leader.closed:
                    leader.follow_log_start()

    def wake_fetches(self, key: SharePartitionKey) -> None:
        """A leader was loaded or has ended, or a search is over: the fetches that wait for it look again."""
        self._purgatory.wake(key.place)

    def close(self) -> None:
        """The broker ends: log now the lines that would come later."""
        self._delivery_limits.expire(self.clock.monotonic_ms())

    def _reset_ended(self, key: SharePartitionKey, ended: Completion[None]) -> None:
        if self._resets.get(key) is ended:
            del self._resets[key]
            self.wake_fetches(key)

    def _load(self, key: SharePartitionKey, log: PartitionLog) -> SharePartitionLeader | None:
        failed = self._failed_loads.pop(key, None)
        if failed is not None and self.clock.monotonic_ms() < failed.told_until_ms:
            raise without_frames(failed.error)
        incarnation = self._groups.group_incarnation(key.group_id)
        assert incarnation is not None, f"{key.group_id} is asked for after it was deleted"
        # Asked now: the group's own records may be out of reach when the load ends.
        starts_at_zero = self._groups.starts_at_zero(key)
        began_ms = self.clock.monotonic_ms()
        loading = self._store.load(key, log, incarnation, self._groups.group_epoch(key.group_id))
        loading.when_done(lambda _: self.counts.load_ms.observe(self.clock.monotonic_ms() - began_ms))
        if loading.done:
            return self._begin_to_lead(key, log, loading.result(), starts_at_zero=starts_at_zero)
        load = self._loads[key] = Completion()
        loading.when_done(partial(self._loaded, key, log, load, starts_at_zero))
        return None

    def _loaded(
        self,
        key: SharePartitionKey,
        log: PartitionLog,
        load: Completion[None],
        starts_at_zero: bool,
        loading: Completion[ShareStateImage],
    ) -> None:
        """Nothing comes of a load that a reset has overtaken, or the end of its log."""
        if self._loads.get(key) is load:
            del self._loads[key]
            try:
                self._begin_to_lead(key, log, loading.result(), starts_at_zero=starts_at_zero)
            except Exception as error:
                # Told at the end of their waits: woken now, those who wait would load again, and again fail.
                told_until_ms = self.clock.monotonic_ms() + FAILURE_TOLD_MS
                self._failed_loads[key] = _FailedLoad(_as_told(key, error), told_until_ms)
            else:
                self.wake_fetches(key)
        load.complete(None)

    def _begin_to_lead(
        self, key: SharePartitionKey, log: PartitionLog, image: ShareStateImage, *, starts_at_zero: bool
    ) -> SharePartitionLeader:
        partition = key.topic_id_partition
        if image.start_offset == UNDECIDED_OFFSET and starts_at_zero:
            log.control_runs.know_from(0)
            image.begin_at_zero()
        store = self._store.decisions_of(partition, log)
        leader = SharePartitionLeader(key, log, image, store, self._services)
        self._leaders[key] = leader
        self.idle_lags.forget(key)
        self.counts.leader_began(key.group_id)
        self._deadlines.schedule(self._idle_leaders, self._idle_leaders.loaded(self.clock.monotonic_ms()))
        self._by_partition.setdefault(partition.place, {})[key.group_id] = leader
        if leader.core.is_initialised:
            leader.follow_log_start()
        leader.resume_letters()
        if leader.core.pending_acknowledgements:
            self.transactions.acknowledgements_found(leader)
        return leader


def _as_told(key: SharePartitionKey, error: Exception) -> ApiError | StorageError:
    """The error of a failed load, as fetches and other callers get it."""
    if isinstance(error, ApiError | StorageError):
        return without_frames(error)
    logger.error(
        "the state of a share partition could not be loaded",
        group=key.group_id,
        topic_id=str(key.topic_id),
        partition=key.partition,
        exc_info=error,
    )
    return ApiError(ErrorCode.unknown_server_error, "The state of the share partition could not be loaded.")
