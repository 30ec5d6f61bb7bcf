"""All brokers that this consumer reads from: each assigned partition's leader, a task for each leader.

An assignment names partitions by topic id; the view of the cluster names their leaders. When either changes,
the partitions are distributed again. A partition without a known leader waits for the next metadata refresh.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final, Generic
from uuid import UUID

from barnabas.client.backoff import Backoff
from barnabas.client.errors import BrokerUnavailableError
from barnabas.client.record import KeyT, ValueT
from barnabas.client.share_exchange import ShareReading
from barnabas.client.share_leader import ShareLeader
from barnabas.client.signal import Signal
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

Start = Callable[[Coroutine[object, None, None]], "asyncio.Task[None]"]

_MS_PER_SECOND: Final = 1000
_NONE: Final[frozenset[TopicIdPartition]] = frozenset()


class ShareLeaders(Generic[KeyT, ValueT]):
    """The brokers by node id.

    A broker that leads no partition any more stays, for the records held from it.
    """

    def __init__(self, start: Start) -> None:
        """`start` runs a leader's task, and handles its end."""
        self._start = start
        self._leaders: dict[int, tuple[ShareLeader[KeyT, ValueT], asyncio.Task[None]]] = {}
        self._assignment: frozenset[TopicIdPartition] = frozenset()
        self._homes: dict[TopicIdPartition, int] = {}
        """The node from which each partition was last read."""
        self._stale = Signal()
        self._is_news = False
        """Whether the metadata is stale because of a new assignment, and not because it was wrong."""
        self._reading: ShareReading[KeyT, ValueT] | None = None

    def use(self, reading: ShareReading[KeyT, ValueT]) -> None:
        """Set the state that the leaders share; call it once, before the first assignment."""
        self._reading = reading

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
        """The intake may have room for records."""
        for leader, _ in self._leaders.values():
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
            node_id = self._used.cluster.view.leader(partition)
            if node_id is None:
                continue
            former = self._homes.get(partition)
            if former is not None and former != node_id and former in self._leaders:
                self._leaders[former][0].lose(partition)
            self._homes[partition] = node_id
            wanted.setdefault(node_id, set()).add(partition)
        self._homes = {one: home for one, home in self._homes.items() if one in self._assignment}
        for node_id in wanted.keys() - self._leaders.keys():
            leader = ShareLeader(node_id, self._used)
            self._leaders[node_id] = leader, self._start(leader.run())
        for node_id, (leader, _) in self._leaders.items():
            leader.read(frozenset(wanted.get(node_id, _NONE)))
        return sum(map(len, wanted.values())) == len(self._assignment)

    async def _look_at_metadata(self) -> bool:
        """Refresh the metadata. Returns whether all assigned partitions have a leader now."""
        try:
            await self._used.cluster.refresh(self._topic_ids())
        except BrokerUnavailableError as error:
            log.debug("The metadata refresh failed: %s", error)
            return False
        return self.deal_out()

    async def flush(self) -> None:
        """Return once all leaders have answered the acknowledgements made so far."""
        await asyncio.gather(*(leader.flush() for leader, _ in self._leaders.values()))

    async def finish(self) -> None:
        """Let every leader end its session, and wait for them."""
        for leader, _ in self._leaders.values():
            leader.finish()
        tasks = [task for _, task in self._leaders.values()]
        if tasks:
            await asyncio.wait(tasks)

    @property
    def _used(self) -> ShareReading[KeyT, ValueT]:
        assert self._reading is not None, "use() comes first"
        return self._reading

    def _topic_ids(self) -> list[UUID]:
        return sorted({partition.topic_id for partition in self._assignment})
