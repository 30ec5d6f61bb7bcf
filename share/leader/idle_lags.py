"""The lags of share-partitions whose leaders were idle, and are gone from memory: for metrics and lists.

Nothing changes such a state until its leader is loaded again, so the lag grows only with the log. A group
without consumers is the one whose lag matters most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.share.leader.backlog import Backlog
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.storage.log.partition_log import PartitionLog

IDLE_LAGS_MAX: Final = 10_000
"""The most share-partitions whose lag is kept; that of a further one is unknown while its leader is gone."""


class _AtTheEnd(NamedTuple):
    """The state when the leader went."""

    log: PartitionLog
    start_offset: int
    high_watermark: int
    lag: int
    unfinished: Sequence[tuple[int, int]]
    """The records that were delivered and are not final, as ascending ranges, both ends inclusive."""
    next_offset: int
    """The first record that was not delivered."""


class IdleLags:
    """All of them. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._by_partition: dict[TopicIdPartition, dict[str, _AtTheEnd]] = {}
        """By group."""
        self._count = 0

    def __iter__(self) -> Iterator[Backlog]:
        for of_partition in self._by_partition.values():
            for group_id, state in of_partition.items():
                yield Backlog(group_id, state.log, state.start_offset, _lag_now(state))

    def __contains__(self, key: SharePartitionKey) -> bool:
        return key.group_id in self._by_partition.get(key.topic_id_partition, ())

    def lag_of(self, key: SharePartitionKey) -> int | None:
        """None if it is not known here."""
        state = self._by_partition.get(key.topic_id_partition, {}).get(key.group_id)
        return None if state is None else _lag_now(state)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another share-partition."""
        return self._count >= IDLE_LAGS_MAX

    def note(self, leader: SharePartitionLeader) -> None:
        """The leader goes from memory, because it is idle."""
        if not self.is_full and leader.core.is_initialised:
            log = leader.log
            state = _AtTheEnd(
                log,
                leader.core.spso,
                log.high_watermark,
                leader.lag(),
                leader.core.unfinished_ranges(),
                leader.core.speo,
            )
            self._by_partition.setdefault(leader.key.topic_id_partition, {})[leader.group_id] = state
            self._count += 1

    def forget(self, key: SharePartitionKey) -> None:
        """The leader is loaded again, or the state has changed without it."""
        of_partition = self._by_partition.get(key.topic_id_partition)
        if of_partition is not None and of_partition.pop(key.group_id, None) is not None:
            self._count -= 1
            if not of_partition:
                del self._by_partition[key.topic_id_partition]

    def forget_partition(self, partition: TopicIdPartition) -> None:
        """The log is no more."""
        self._count -= len(self._by_partition.pop(partition, ()))


def _lag_now(state: _AtTheEnd) -> int:
    """The log may have moved on without a leader, at both ends."""
    log, data_count = state.log, state.log.control_runs.data_count
    last_offset = log.high_watermark - 1
    if log.log_start_offset <= state.start_offset:
        return state.lag + data_count(state.high_watermark, last_offset)
    ranges = [*state.unfinished, (state.next_offset, last_offset)]
    return sum(data_count(max(first, log.log_start_offset), min(last, last_offset)) for first, last in ranges)
