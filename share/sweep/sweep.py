"""Looks after the share-partitions of groups whose records expire, or that have dead letters.

The leaders of such groups have work although no member fetches: records grow too old, and an earlier broker
process may have left letters that are due. So the sweep leads each of their share-partitions once after a
start, and those with a time to live whenever a record may have expired. Leaders that it has no more use for
are dropped as idle ones.

Groups without these settings have such work only if they had dead letters before (`left_letters`). So their
share-partitions are looked at once after a start, unless a member has fetched from them. After that they cost
nothing. A share-partition that was led for its lag (`lag_looks`) is led again for the expiry of its records,
and not for its letters.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage, ResourceType
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import Clock, moment
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.moment import Moment
from barnabas.share.fetch.share_group_config import ShareGroupConfig, ShareGroupConfigs
from barnabas.share.leader.expiry import expire_some
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.sweep.left_letters import LeftLetters
from barnabas.share.sweep.looks import Looks
from barnabas.share.sweep.shared_partitions import SharedPartitions, share_partitions_of
from barnabas.storage.log.partition_log import PartitionLog

SWEEP_INTERVAL_MS: Final = 10_000
"""From one sweep to the next."""
PARTITIONS_PER_SWEEP_MAX: Final = 200
"""The share-partitions that one sweep looks at; the next sweep goes on with the others."""
LEFT_PER_SWEEP_MAX: Final = 100
"""As many more, of groups without these settings. The logs of idle share-partitions are opened at twice this
speed after a start (`IdleLogs`).
"""


class _NextLook(NamedTuple):
    """When a record of a share-partition may expire next, by the time to live of then.

    The clock that gets there first counts. Records expire by the time of day, but new ones of a wall clock
    that was set back expire earlier than this time of day says.
    """

    ttl_ms: int
    at: Moment


class Sweep(Looks):
    """The sweeps of one broker, until `close`."""

    def __init__(
        self,
        clock: Clock,
        deadlines: Deadlines,
        image: MetadataImage,
        configs: ShareGroupConfigs,
        groups: SharedPartitions,
        logs: PartitionLogs,
        leaders: SharePartitions,
        load: Callable[[SharePartitionKey], Awaitable[SharePartitionLeader]],
    ) -> None:
        """`load` returns the leader of a share-partition, loaded if need be; it raises ApiError or
        StorageError.
        """
        super().__init__(clock, deadlines)
        self._image = image
        self._configs = configs
        self._groups = groups
        self._logs = logs
        self._leaders = leaders
        self._load = load
        self._queue: deque[SharePartitionKey] = deque()
        """The share-partitions that this round has not looked at."""
        self._led: dict[SharePartitionKey, PartitionLog] = {}
        """The log over which each share-partition was led last, so that its letters were resumed."""
        self._next_looks: dict[SharePartitionKey, _NextLook] = {}
        self._left = LeftLetters(groups)
        self._swept: set[str] = set()
        """The groups to look after."""
        self._with_letters: set[str] = set()
        self._note_settings(image.configured_names(ResourceType.GROUP))
        self._begin_if_needed()

    def metadata_changed(self, changes: MetadataChanges) -> None:
        """Settings may have changed."""
        changed = {name for kind, name in changes.configs if kind == ResourceType.GROUP}
        if changes.features:
            changed.update(self._swept, self._image.configured_names(ResourceType.GROUP))
        if changed:
            self._left.add(sorted(self._note_settings(changed)))
            self._begin_if_needed()

    def _begin_if_needed(self) -> None:
        if self._next_at_ms is None and self._is_needed():
            self._look_in(SWEEP_INTERVAL_MS)

    def _pause_ms(self) -> int | None:
        return SWEEP_INTERVAL_MS if self._is_needed() else None

    def _is_needed(self) -> bool:
        return bool(self._swept) or not self._left.is_empty

    def _note_settings(self, group_ids: Iterable[str]) -> set[str]:
        """Note which of these groups are to be looked after; returns those that no longer have letters. Both
        settings are a group's own, so no other group has changed.
        """
        without_letters: set[str] = set()
        for group_id in group_ids:
            limits = self._configs.of(group_id).limits
            has_letters = limits.letter_place is not None
            if group_id in self._with_letters and not has_letters:
                without_letters.add(group_id)
            _put(self._with_letters, group_id, is_in=has_letters)
            _put(self._swept, group_id, is_in=has_letters or limits.timing.ttl_ms > 0)
        return without_letters

    async def _look(self) -> None:
        if not self._queue:
            self._begin_round()
        for _ in range(min(len(self._queue), PARTITIONS_PER_SWEEP_MAX)):
            await self._try(self._look_after, self._queue.popleft())
        for key in self._left.next_keys(LEFT_PER_SWEEP_MAX):
            await self._try(self._settle_left, key)

    def _begin_round(self) -> None:
        keys = [
            key for group_id in sorted(self._swept) for key in share_partitions_of(self._groups, group_id)
        ]
        self._queue.extend(keys)
        present = set(keys)
        for key in (self._led.keys() | self._next_looks.keys()) - present:
            self._led.pop(key, None)
            self._next_looks.pop(key, None)

    async def _look_after(self, key: SharePartitionKey) -> None:
        config = self._configs.of(key.group_id)
        ttl_ms = config.limits.timing.ttl_ms
        must_expire = bool(ttl_ms) and self._may_have_expired(key, ttl_ms)
        if not must_expire and self._was_led(key):
            return
        leader = await self._lead(key)
        self._led[key] = leader.log
        if must_expire and leader.core.is_initialised:
            self._next_looks[key] = await self._expire(leader, config)

    async def _settle_left(self, key: SharePartitionKey) -> None:
        """Has the letters of a group without a topic given up; its leader has begun that if it leads."""
        if self._leaders.went_idle(key) or not (await self._lead(key)).core.archiving_ranges():
            self._left.settle(key)

    async def _lead(self, key: SharePartitionKey) -> SharePartitionLeader:
        """The leader, over a log that serves."""
        leader = self._leaders.in_memory(key)
        if leader is None or leader.log.offline is not None:
            leader = await self._load(key)
        return leader

    def _was_led(self, key: SharePartitionKey) -> bool:
        """Whether it was led since its log was opened, by the sweep or for its lag (`lag_looks`): a log that
        failed ends its leaders.
        """
        topic = self._image.topics_by_id.get(key.topic_id)
        if topic is None or self._leaders.went_idle(key):
            return True
        led = self._led.get(key)
        return led is not None and self._logs.get(topic, key.partition) is led

    def _may_have_expired(self, key: SharePartitionKey, ttl_ms: int) -> bool:
        look, now = self._next_looks.get(key), moment(self._clock)
        if look is None or look.ttl_ms != ttl_ms:
            return True
        return now.now_ms >= look.at.now_ms or now.wall_ms >= look.at.wall_ms

    async def _expire(self, leader: SharePartitionLeader, config: ShareGroupConfig) -> _NextLook:
        """Archives the expired records, step by step."""
        ttl_ms = config.limits.timing.ttl_ms
        now = moment(self._clock)
        earliest_ms = now.wall_ms
        offset: int | None = leader.core.spso
        while offset is not None and not leader.closed:
            step = expire_some(leader, config.limits, offset, read_committed=config.read_committed)
            offset = step.next_offset
            if step.earliest_ms is not None:
                earliest_ms = min(earliest_ms, step.earliest_ms)
            await asyncio.sleep(0)
        wait_ms = 0 if _is_unsettled(leader) else earliest_ms + ttl_ms - now.wall_ms
        return _NextLook(ttl_ms, Moment(now.now_ms + wait_ms, now.wall_ms + wait_ms))


def _is_unsettled(leader: SharePartitionLeader) -> bool:
    """Whether more may expire by the next sweep: a record that is held now, one that waits for room among the
    letters, or one whose expiry is not recorded.
    """
    return leader.closed or leader.log.offline is not None or not leader.is_idle


def _put(group_ids: set[str], group_id: str, *, is_in: bool) -> None:
    if is_in:
        group_ids.add(group_id)
    else:
        group_ids.discard(group_id)
