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

from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger
from barnabas.share.leader.idle_lags import IDLE_LAGS_MAX
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.sweep.shared_partitions import SharedPartitions, share_partitions_of
from barnabas.storage.errors import StorageError

log = get_logger("share")

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


class LagLooks:
    """The looks of one broker, on the loop's thread (`deadlines.Expirable`), from `begin` to `close`."""

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
        self._clock = clock
        self._deadlines = deadlines
        self._groups = groups
        self._leaders = leaders
        self._load = load
        self._next_at_ms: int | None = None
        self._queue: deque[SharePartitionKey] = deque()
        """The share-partitions of this round that were not led yet."""
        self._not_begun: set[SharePartitionKey] = set()
        """Those that had no start offset in one of the last rounds."""
        self._round_count = 0
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The first look is now."""
        now_ms = self._clock.monotonic_ms()
        self.expire(now_ms)
        self._look_again_at(now_ms + ROUND_INTERVAL_MS)

    async def close(self) -> None:
        """Stop. A leader that is being loaded stays."""
        self._deadlines.cancel(self)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def next_deadline_ms(self) -> int | None:
        """See `deadlines.Expirable`."""
        return self._next_at_ms

    def expire(self, now_ms: int) -> None:
        """See `deadlines.Expirable`: begins a look, unless the last one is still under way."""
        self._next_at_ms = now_ms + ROUND_INTERVAL_MS
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())

    def _look_again_at(self, at_ms: int) -> None:
        self._next_at_ms = at_ms
        self._deadlines.schedule(self, at_ms)

    async def _look(self) -> None:
        if not self._queue:
            await self._begin_round()
        for _ in range(min(len(self._queue), PARTITIONS_PER_LOOK_MAX)):
            key = self._queue.popleft()
            if not self._is_known(key):
                await self._learn(key)
                await asyncio.sleep(0)
        if self._queue:
            self._look_again_at(self._clock.monotonic_ms() + LOOK_INTERVAL_MS)

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
        try:
            leader = await self._load(key)
        except (ApiError, StorageError) as error:
            # The next round tries again; a client that fetches is told the error itself.
            log.debug("a lag could not be learnt", group=key.group_id, error=str(error))
        except Exception:
            log.exception("learning a lag failed", group=key.group_id)
        else:
            if not leader.core.is_initialised:
                self._not_begun.add(key)
            self._leaders.put_away(key)
