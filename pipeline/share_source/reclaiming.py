"""Acquires the records of a batch again that a driver held before it died.

The end of its connection released the records, so any member of the group may have got them. After a broken
network the broker may still lock some for this member's id: these are released, so that they can be acquired
again. Only a record from a fetch is known to be held: a broker also accepts the renewal or the
acknowledgement of a record that the group has finished.

A fetch asks for no more than the missing records. Otherwise a query that fails again and again would use up
the deliveries of the records behind its batch.

A fetch delivers in the order of offsets. After a later record, no earlier one is available.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.client.errors import BrokerUnavailableError
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.group_member import GroupMember
from barnabas.pipeline.share_source.held_ranges import Batch
from barnabas.pipeline.share_source.leader_session import Fetched
from barnabas.pipeline.share_source.ranges import offset_count, partition_acquired, union
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

RECLAIM_MS_MAX: Final = 60_000
"""How long partitions may be unreadable until the query fails."""
RECLAIM_WAIT_MS: Final = 500
EMPTY_FETCHES: Final = 2
"""After this number of responses without a record, the other records are not available."""

_MS_PER_SECOND: Final = 1000

TakesIn = Callable[[Fetched], Awaitable[None]]
"""Gets all acquired ranges, which may be more than the wanted ones."""


async def reclaim(member: GroupMember, batch: Batch, take_in: TakesIn) -> Batch:
    """Acquires these ranges again; returns those that are not available.

    Raises `PipelineError` if partitions cannot be read, and `ConsumerError`.
    """
    search = _Search(batch)
    await _fetch_all(member, search, take_in, empty_count_max=1)
    if search.missing:
        await member.release(search.missing)
        search.begin_again()
        await _fetch_all(member, search, take_in, empty_count_max=EMPTY_FETCHES)
    return search.missing


async def _fetch_all(member: GroupMember, search: _Search, take_in: TakesIn, *, empty_count_max: int) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + RECLAIM_MS_MAX / _MS_PER_SECOND
    empty_count = 0
    while search.partitions and empty_count < empty_count_max:
        if loop.time() >= until:
            raise PipelineError(
                f"servers: some partitions could not be read for {RECLAIM_MS_MAX // 1000} s, so it isn't "
                "known which records of the last batch other members of the group have got meanwhile."
            )
        fetched = await _fetch(member, search)
        for answer in fetched:
            await take_in(answer)
            search.note(answer)
        if member.is_answered:
            empty_count = 0 if fetched else empty_count + 1


async def _fetch(member: GroupMember, search: _Search) -> list[Fetched]:
    try:
        return list(await member.fetch_from(search.partitions, search.missing_count, RECLAIM_WAIT_MS))
    except BrokerUnavailableError as error:
        log.info("Nothing can be acquired for the moment: %s", error)
        await asyncio.sleep(RECLAIM_WAIT_MS / _MS_PER_SECOND)
        return []


class _Search:
    """The wanted ranges, and the partitions that may still deliver them."""

    def __init__(self, batch: Batch) -> None:
        self.missing = {partition: list(ranges) for partition, ranges in batch.items() if ranges}
        self._is_passed: set[TopicIdPartition] = set()
        """Partitions whose last wanted offset was passed."""

    @property
    def partitions(self) -> frozenset[TopicIdPartition]:
        return frozenset(self.missing.keys() - self._is_passed)

    @property
    def missing_count(self) -> int:
        return sum(map(offset_count, self.missing.values()))

    def begin_again(self) -> None:
        """Passed offsets may be available again."""
        self._is_passed.clear()

    def note(self, fetched: Fetched) -> None:
        """Removes ranges that were acquired."""
        for partition, acquired in fetched.acquired.items():
            missing = self.missing.get(partition)
            if not missing:
                continue
            if acquired[-1].last_offset > missing[-1].last_offset:
                self._is_passed.add(partition)
            rest, _ = partition_acquired(missing, union(acquired))
            if rest:
                self.missing[partition] = rest
            else:
                del self.missing[partition]
