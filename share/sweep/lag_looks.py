"""Learns the lags of share-partitions that no member has fetched from, for metrics.

After a start there are no leaders, and a group whose consumers are all down loads none. Its lag is the one
that matters most. So each of these share-partitions is led once, which reads its newest checkpoint and the
changes behind it, and its leader goes at once. From then on `IdleLags` follows the log. This does not delay
the start, and keeps only those leaders in memory that have something to do. It runs only while the metrics
are served.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines
from barnabas.share.leader.idle_lags import IDLE_LAGS_MAX
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.sweep.looks import Looks
from barnabas.share.sweep.shared_partitions import SharedPartitions, share_partitions_of

ROUND_INTERVAL_MS: Final = 60_000
"""From the beginning of a round to the next one, at least. A round finds the share-partitions whose lag is
unknown: all after a start, later those whose state was reset or could not be read.
"""
PARTITIONS_PER_LOOK_MAX: Final = 100
"""The share-partitions that are led in one look, one after the other."""
LOOK_INTERVAL_MS: Final = 1_000
"""From one look of a round to the next."""
ROUNDS_WITHOUT_BEGINNING: Final = 10
"""The rounds for which a share-partition without a start offset is left alone: it has no lag yet, and most
begin with a fetch.
"""


class LagLooks(Looks):
    """The looks of one broker, from `begin` to `close`."""

    def __init__(
        self,
        clock: Clock,
        deadlines: Deadlines,
        groups: SharedPartitions,
        leaders: SharePartitions,
        load: Callable[[SharePartitionKey], Awaitable[SharePartitionLeader]],
    ) -> None:
        """`load` returns the leader of a share-partition, loaded if need be; it raises ApiError or
        StorageError.
        """
        super().__init__(clock, deadlines)
        self._groups = groups
        self._leaders = leaders
        self._load = load
        self._queue: deque[SharePartitionKey] = deque()
        """The share-partitions of this round that were not led yet."""
        self._not_begun: set[SharePartitionKey] = set()
        """Those that had no start offset in one of the last rounds."""
        self._round_count = 0

    def begin(self) -> None:
        """The first look is now."""
        self.expire(self._clock.monotonic_ms())
        self._look_in(ROUND_INTERVAL_MS)

    def _pause_ms(self) -> int:
        return ROUND_INTERVAL_MS

    async def _look(self) -> None:
        if not self._queue:
            await self._begin_round()
        for _ in range(min(len(self._queue), PARTITIONS_PER_LOOK_MAX)):
            key = self._queue.popleft()
            if not self._is_known(key):
                await self._try(self._learn, key)
        if self._queue:
            self._look_in(LOOK_INTERVAL_MS)

    async def _begin_round(self) -> None:
        self._round_count += 1
        if self._round_count % ROUNDS_WITHOUT_BEGINNING == 0:
            self._not_begun.clear()
        for group in self._groups.list_groups():
            if len(self._queue) >= IDLE_LAGS_MAX or self._leaders.idle_lags.is_full:
                break
            keys = share_partitions_of(self._groups, group.group_id)
            self._queue.extend(key for key in keys if not self._is_known(key))
            await asyncio.sleep(0)  # there may be thousands of groups

    def _is_known(self, key: SharePartitionKey) -> bool:
        """Whether metrics have the lag, or have no room for it, or there is none yet."""
        lags = self._leaders.idle_lags
        is_in_memory = self._leaders.in_memory(key) is not None
        return is_in_memory or key in lags or key in self._not_begun or lags.is_full

    async def _learn(self, key: SharePartitionKey) -> None:
        leader = await self._load(key)
        if not leader.core.is_initialised:
            self._not_begun.add(key)
        self._leaders.put_away(key)
