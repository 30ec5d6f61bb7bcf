"""The parts that both consumers have: the cluster, the background tasks, and the course of a poll.

The parts of a share consumer are in `share.parts`, those of an ordinary consumer in `consume.parts`.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from barnabas.client.cluster.opening import find_cluster, new_cluster, retries_of
from barnabas.client.cluster.topics import Isolation, Topics
from barnabas.client.errors import WakeupError
from barnabas.client.group.group_options import GroupSettings
from barnabas.client.group.missing_topics import warn_of_missing_topics
from barnabas.client.group.poll_watch import PollWatch
from barnabas.client.group.tasks import Tasks
from barnabas.client.network.address import Address
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.waiting.loop_turn import LoopTurn
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

RecordT = TypeVar("RecordT")

_MS_PER_SECOND: Final = 1000


class Identity(NamedTuple):
    """The member of a group, and the bootstrap brokers."""

    bootstrap: Sequence[Address]
    group_id: str
    member_id: str


class GroupParts(ABC, Generic[RecordT]):
    """The parts of one consumer. Call `start` once and `close` once."""

    def __init__(self, identity: Identity, settings: GroupSettings) -> None:
        self.group_id = identity.group_id
        self.cluster = new_cluster(identity.bootstrap, settings)
        # A cluster of its own, because a view keeps only the leaders of the topics asked for last.
        self._queries = new_cluster(identity.bootstrap, settings)
        self.topics = Topics(self._queries, retries_of(settings))
        self._group_settings = settings
        self._watch = PollWatch(settings.max_poll_interval_ms, self._leave_for_now)
        self._turn = LoopTurn()
        self._is_woken = False
        self._tasks = Tasks(self._end)
        self._background: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Find the cluster and start reading.

        Raises `BrokerUnavailableError` if no broker is found in time, and `UnsupportedBrokerError`.
        """
        try:
            await find_cluster(self.cluster, self._group_settings)
            await self._check_broker()
        except BaseException:
            self.cluster.close()
            raise
        work = (*self._background_work(), self._watch.run(self.group_id))
        self._background = [self._tasks.start(coroutine) for coroutine in work]

    async def close(self, timeout_ms: int) -> None:
        """Give everything up, leave the group, and end every task.

        After `timeout_ms` the connections are closed without waiting for the broker.
        """
        try:
            async with asyncio.timeout(timeout_ms / _MS_PER_SECOND):
                await self._leave()
        except TimeoutError:
            log.warning("Leaving the group %s timed out", self.group_id)
        finally:
            await self._tasks.cancel()
            self._close_connections()
            self.topics.close()
            self._queries.close()
            self.cluster.close()

    async def next(self, count_max: int) -> list[RecordT]:
        """Wait for records; the course of every poll."""
        self._watch.begin()
        if self._turn.is_over():
            await asyncio.sleep(0)
        try:
            self._begin_poll()
            while True:
                if self._is_woken:
                    self._is_woken = False
                    raise WakeupError("The consumer was woken up.")
                await self._prepare()
                if records := self._take(count_max):
                    return records
                await self._wait(count_max)
        finally:
            self._watch.end()

    def wakeup(self) -> None:
        """End the poll under way, or else the next one, with `WakeupError`."""
        self._is_woken = True
        self._wake_readers()

    async def offsets(
        self,
        partitions: Collection[TopicPartition],
        at: int,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, int]:
        """The offsets of these partitions at `EARLIEST` or `LATEST`.

        Raises `UnknownTopicError`, and the errors of `Topics.offsets`.
        """
        by_id = await self._identified(partitions)
        found = await self.topics.offsets(list(by_id), at, isolation)
        return {name: found[partition] or 0 for partition, name in by_id.items()}

    async def _identified(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicIdPartition, TopicPartition]:
        names = sorted({partition.topic for partition in partitions})
        ids = {topic.name: topic.topic_id for topic in await self.topics.find(names)}
        return {
            TopicIdPartition(ids[partition.topic], partition.partition): partition for partition in partitions
        }

    def _check_topics(self, topics: Sequence[str]) -> None:
        if topics:
            self._tasks.start(warn_of_missing_topics(self.cluster, topics))

    def metrics(self) -> dict[str, float]:
        """The counters of this consumer, under Kafka's names where Kafka has them."""
        return {"last-poll-seconds-ago": self._watch.idle_seconds, **self._counters()}

    async def _check_broker(self) -> None:
        """Raises `UnsupportedBrokerError` if the broker cannot serve an option."""

    @abstractmethod
    def _background_work(self) -> Sequence[Coroutine[Any, Any, None]]:
        """The work that goes on until the consumer is closed."""

    @abstractmethod
    def _begin_poll(self) -> None:
        """The application asks for more: it has processed the records returned before."""

    async def _prepare(self) -> None:
        """The work of a poll before it returns records."""

    @abstractmethod
    def _take(self, count_max: int) -> list[RecordT]:
        """Records that have arrived; raises the error that ended the consumer, once no record is left."""

    @abstractmethod
    async def _wait(self, count_max: int) -> None:
        """Return when there is news for a reader."""

    @abstractmethod
    def _wake_readers(self) -> None: ...

    @abstractmethod
    def _leave_for_now(self) -> bool:
        """The application does not poll: leave the group until the next poll.

        Returns whether the consumer was in the group, or about to join.
        """

    @abstractmethod
    async def _leave(self) -> None: ...

    @abstractmethod
    def _end(self, error: BaseException) -> None:
        """A task has failed: readers get the error."""

    @abstractmethod
    def _close_connections(self) -> None: ...

    @abstractmethod
    def _counters(self) -> dict[str, float]: ...
