"""The end of a run whose groups give their letters up: the records have to end although no member fetches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from barnabas.protocol.identity import SharePartitionKey
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from tests.simulation.administrator import Administrator
from tests.simulation.dead_letters import DeadLetters
from tests.simulation.model import Violation
from tests.simulation.world import World

_SECONDS_MAX = 30.0


async def give_letters_up(world: World, administrator: Administrator, letters: DeadLetters) -> None:
    """The members of groups with letters leave once nothing is left for them. Then the broker ends, and the
    groups do without letters before the next one has looked at them.

    No request about offsets may come meanwhile: like a fetch, it would have the leaders loaded. If records
    that wait for letters fill a window, the members stay, so that they get the other records.
    """
    if not world.scenario.letters.are_given_up:
        return
    await administrator.settle_topics()
    is_deserted = await _is_soon(world, _has_letters_only)
    if is_deserted:
        world.leaving.update(world.scenario.letters.group_ids)
        await asyncio.sleep(1)
    world.machine.kill()
    await letters.give_up()
    if is_deserted and not await _is_soon(world, _has_nothing):
        raise Violation(f"letters are not given up {_SECONDS_MAX} s after the groups do without them")


async def _is_soon(world: World, holds: Callable[[SharePartitionLeader], bool]) -> bool:
    """Whether this holds within some time for the leaders of all share-partitions of groups with letters."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_MAX):
            while not all(leader is not None and holds(leader) for leader in _leaders(world)):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
            return True
    return False


def _leaders(world: World) -> list[SharePartitionLeader | None]:
    """Those in memory."""
    broker = world.machine.broker
    if broker is None:
        return [None]
    return [
        broker.share_partitions.in_memory(SharePartitionKey(group_id, *partition))
        for group_id in world.scenario.letters.group_ids
        for topic in world.topics.values()
        for partition in topic.partitions
    ]


def _has_letters_only(leader: SharePartitionLeader) -> bool:
    """Whether all records that have not ended wait for their letters."""
    waiting = leader.core.archiving_ranges()
    count = sum(leader.core.record_count(one.base_offset, one.last_offset) for one in waiting)
    return leader.core.is_initialised and leader.lag() == count


def _has_nothing(leader: SharePartitionLeader) -> bool:
    return leader.lag() == 0
