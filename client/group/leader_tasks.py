"""The brokers that lead a consumer's partitions: a task for each, and the metadata that names them.

An assignment names partitions by topic id; the view of the cluster names their leaders. When either changes,
the partitions are distributed again. A partition without a known leader waits for the next metadata refresh.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Final, Generic, Protocol, TypeVar
from uuid import UUID

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerUnavailableError
from barnabas.client.waiting.backoff import Backoff
from barnabas.client.waiting.signal import Signal
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

Start = Callable[[Coroutine[object, None, None]], "asyncio.Task[None]"]

_MS_PER_SECOND: Final = 1000
_NONE: Final[frozenset[TopicIdPartition]] = frozenset()


class LeaderTask(Protocol):
    """The use of one broker."""

    async def run(self) -> None:
        """Raises `BrokerError` for a lasting error."""
        ...

    def read(self, wanted: frozenset[TopicIdPartition]) -> None:
        """Read exactly these partitions from now on."""
        ...

    def lose(self, partition: TopicIdPartition) -> None:
        """Another broker leads this partition now."""
        ...

    def look_again(self) -> None:
        """There may be room for records."""
        ...


LeaderT = TypeVar("LeaderT", bound=LeaderTask)


class LeaderTasks(Generic[LeaderT]):
    """The brokers by node id.

    A broker that leads no partition any more stays, because its task may have outstanding work.
    """

    def __init__(self, cluster: Cluster, start: Start, new_leader: Callable[[int], LeaderT]) -> None:
        """`start` runs a leader's task, and handles its end. `new_leader` makes the leader of a node id."""
        self._cluster = cluster
        self._start = start
        self._new_leader = new_leader
        self._leaders: dict[int, tuple[LeaderT, asyncio.Task[None]]] = {}
        self._assignment: frozenset[TopicIdPartition] = frozenset()
        self._homes: dict[TopicIdPartition, int] = {}
        """The node from which each partition was last read."""
        self._stale = Signal()
        self._is_news = False
        """Whether the metadata is stale because of a new assignment, and not because it was wrong."""

    def __iter__(self) -> Iterator[LeaderT]:
        return (leader for leader, _ in self._leaders.values())

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [task for _, task in self._leaders.values()]

    def assign(self, assignment: frozenset[TopicIdPartition]) -> None:
        """Read these partitions from now on."""
        self._assignment = assignment
        if not self.deal_out():
            self._is_news = True
            self._stale.set()

    def note_stale_metadata(self) -> None:
        """Request a metadata refresh."""
        self._stale.set()

    def look_again(self) -> None:
        """There may be room for records."""
        for leader in self:
            leader.look_again()

    async def keep_metadata(self, backoff: Backoff, max_age_ms: int) -> None:
        """Refresh the metadata when it is stale or too old, until cancelled.

        While refreshes bring no improvement, the intervals between them grow.
        """
        while True:
            await self._stale.wait(max_age_ms)
            self._stale.clear()
            if self._is_news:
                backoff.reset()
                self._is_news = False
            if not await self._look_at_metadata():
                await asyncio.sleep(backoff.next_ms() / _MS_PER_SECOND)
                self._stale.set()

    def deal_out(self) -> bool:
        """Give each leader its partitions. Returns whether all assigned partitions have a leader."""
        wanted: dict[int, set[TopicIdPartition]] = {}
        for partition in self._assignment:
            node_id = self._cluster.view.leader(partition)
            if node_id is None:
                continue
            former = self._homes.get(partition)
            if former is not None and former != node_id and former in self._leaders:
                self._leaders[former][0].lose(partition)
            self._homes[partition] = node_id
            wanted.setdefault(node_id, set()).add(partition)
        self._homes = {
            partition: home for partition, home in self._homes.items() if partition in self._assignment
        }
        for node_id in wanted.keys() - self._leaders.keys():
            leader = self._new_leader(node_id)
            self._leaders[node_id] = leader, self._start(leader.run())
        for node_id, (leader, _) in self._leaders.items():
            leader.read(frozenset(wanted.get(node_id, _NONE)))
        return sum(map(len, wanted.values())) == len(self._assignment)

    async def _look_at_metadata(self) -> bool:
        """Refresh the metadata. Returns whether all assigned partitions have a leader now."""
        try:
            await self._cluster.refresh(self._topic_ids())
        except BrokerUnavailableError as error:
            log.debug("The metadata refresh failed: %s", error)
            return False
        return self.deal_out()

    def _topic_ids(self) -> list[UUID]:
        return sorted({partition.topic_id for partition in self._assignment})
