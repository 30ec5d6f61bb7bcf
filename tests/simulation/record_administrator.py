"""An administrator looks at the records of a share group, and releases or archives some of them, also with a
dead letter.

A look must not show a record as unfinished that was confirmed as final before it was asked for. The change is
sent once. While its answer is missing, nothing is known about the locks on its records.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_inspection import DescribedState, RecordAction
from tests.conformance.share_member import REJECT
from tests.simulation.client import Disconnected
from tests.simulation.model import Fact, ShareModel, Violation
from tests.simulation.refused_changes import check_ended, open_transactions
from tests.simulation.world import World

_UNFINISHED: Final = (DescribedState.NEW, DescribedState.AVAILABLE, DescribedState.ACQUIRED)
_CHANGED_MAX: Final = 3

_PAUSE_SECONDS_MAX: Final = 0.6
_ABSENT: Final = 0.5
"""The share of the runs without this administrator."""


class RecordAdministrator:
    """One administrator, who does one thing at a time, in about half of the runs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random("record-administrator")
        self._client = world.client("record-administrator")

    async def run(self) -> None:
        """Until the last phase of the run."""
        if self._world.scenario.sharers or self._random.random() < _ABSENT:
            return
        while not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0, _PAUSE_SECONDS_MAX))
            try:
                await self._act()
            except Disconnected:
                self._client.disconnect()

    async def _act(self) -> None:
        """Looks at a partition of a group, and changes a few of its records."""
        topics = list(self._world.topics.values())
        if not topics:
            return
        partition = self._random.choice(self._random.choice(topics).partitions)
        group_id = self._random.choice(self._world.scenario.group_ids)
        found = await self._look(group_id, partition)
        if not found:
            return
        one = self._random.choice(found)
        last_offset = min(one.last_offset, one.first_offset + self._random.randrange(_CHANGED_MAX))
        action = self._action(group_id, DescribedState(one.state))
        await self._change(group_id, partition, action, range(one.first_offset, last_offset + 1))

    async def _look(self, group_id: str, partition: TopicIdPartition) -> list[Any]:
        """The described ranges that can be changed."""
        share = self._world.model.share(group_id, partition)
        final, generation = set(share.final), share.generation
        response = await self._client.ask(
            "describe_share_records",
            group_id=group_id,
            topic_id=partition.topic_id,
            partition_index=partition.partition,
            first_offset=self._random.choice((-1, -1, 0)),
            max_ranges=self._random.choice((1, 5, 100)),
            include_last_changes=True,
        )
        if response.error_code is not ErrorCode.none:
            return []
        if share.generation == generation:
            _check(share, final, response)
        changeable = (DescribedState.AVAILABLE, DescribedState.ACQUIRED)
        return [one for one in response.ranges if one.state in changeable]

    def _action(self, group_id: str, state: DescribedState) -> RecordAction:
        """In an order of keys, a release would also end locks on other records of the key."""
        if group_id in self._world.scenario.letters.group_ids and self._random.random() < 0.5:
            return RecordAction.DEAD_LETTER
        has_order = group_id in self._world.scenario.order.group_ids
        if has_order or state is DescribedState.AVAILABLE:
            return RecordAction.ARCHIVE
        return self._random.choice((RecordAction.RELEASE, RecordAction.RELEASE, RecordAction.ARCHIVE))

    async def _change(
        self, group_id: str, partition: TopicIdPartition, action: RecordAction, offsets: range
    ) -> None:
        share = self._world.model.share(group_id, partition)
        generation = share.generation
        waiting = open_transactions(self._world, group_id, [partition], offsets)
        releases = action is RecordAction.RELEASE
        share.begin_change(offsets, releases=releases)
        response = await self._client.ask(
            "alter_share_records",
            group_id=group_id,
            topic_id=partition.topic_id,
            partition_index=partition.partition,
            action=action,
            first_offset=offsets[0],
            last_offset=offsets[-1],
        )
        error = response.error_code
        share.end_change(offsets, self._world.now_ms, releases=releases)
        self._world.trace.event(
            f"the administrator wants to {action.name.lower()} {offsets[0]}-{offsets[-1]} of {share.name}: "
            f"{error.name}"
        )
        if error is ErrorCode.none:
            check_ended(self._world, waiting, f"changed {offsets} of {share.name}")
        if error is not ErrorCode.none or releases or share.generation != generation:
            return
        incarnation = self._world.group_incarnation(group_id)
        share.incarnation = share.incarnation if incarnation is None else incarnation
        fact = Fact(REJECT, self._world.now_ms, self._world.log_end_offset(partition))
        confirmed = self._world.model.partition(partition).confirmed
        share.final |= {offset: fact for offset in offsets if offset in confirmed}


def _check(share: ShareModel, final: set[int], response: Any) -> None:
    for one in response.ranges:
        if one.state in _UNFINISHED:
            for offset in range(one.first_offset, one.last_offset + 1):
                if offset in final:
                    state = DescribedState(one.state).name.lower()
                    raise Violation(f"{share.name}: {offset} was confirmed as final, but is shown as {state}")
