"""Commits of records whose share the consumer has lost meanwhile: they never count for the next share."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from barnabas.client import CommitFailedError, RebalanceListener, TopicPartition
from tests.client.consume.sharing import (
    drain,
    poll_each,
    sharer,
    stable_and_ranges,
    until_shared,
    write_keyed,
)
from tests.client.consumer_world import GROUP, BytesConsumer, Journal, Records, producer, take
from tests.client.virtual_world import TOPIC, World, virtually
from tests.simulation.simulated_network import Link

KEYS = [b"k%d" % number for number in range(40)]
OUT = "results"


async def link_of_commits(world: World, one: BytesConsumer) -> Link:
    """The connection over which the consumer commits; opens it with its first commit."""
    before = world.network.links
    await one.commit_ranges({TopicPartition(TOPIC, 0): [(1, 1)]})
    (link,) = (each for each in world.network.links if each not in before)
    return link


async def group_at_1(world: World) -> None:
    """The group has committed offset 0, so no member has to commit the position at which it begins."""
    await world.topic()
    await write_keyed(world, KEYS)
    async with sharer(world, enable_auto_commit=False) as early:
        await take(early, 40)
        await early.commit_ranges({TopicPartition(TOPIC, 0): [(0, 0)]})
        early.seek_to_committed()


async def remove(world: World, one: BytesConsumer) -> None:
    """Remove the member from its group, as the end of its session does."""
    await world.admin.ask(
        "consumer_group_heartbeat",
        group_id=GROUP,
        member_id=one.member_id,
        member_epoch=-1,
        rebalance_timeout_ms=-1,
    )


@virtually
async def test_a_commit_under_way_is_not_repeated_after_the_consumer_has_lost_its_share(world: World) -> None:
    await group_at_1(world)
    journal = Journal()
    async with sharer(world, enable_auto_commit=False, listener=journal) as first:
        await take(first, 39)
        link = await link_of_commits(world, first)
        link.server.pause_reading()
        committing = asyncio.create_task(first.commit())
        await asyncio.sleep(0.1)
        await remove(world, first)
        async with sharer(world, enable_auto_commit=False) as second:
            again: list[Records] = [[], []]
            async with asyncio.timeout(20):
                while journal.calls[1:] != [("lost", [0]), ("assigned", [0])]:
                    await poll_each([first, second], again)
            link.server.resume_reading()
            with pytest.raises(CommitFailedError, match="given up"):
                await committing
            assert await stable_and_ranges(world) == (1, [])
            for so_far, more in zip(again, await drain([first, second]), strict=True):
                so_far.extend(more)
            assert {record.offset for records in again for record in records} == set(range(2, 40))


@virtually
async def test_a_share_is_given_up_after_the_commit_that_the_listener_has_begun(world: World) -> None:
    await group_at_1(world)
    committing: list[asyncio.Task[None]] = []
    link: list[Link] = []

    class Committing(RebalanceListener):
        async def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
            if not committing:
                link[0].server.pause_reading()
                committing.append(asyncio.create_task(first.commit()))
                await asyncio.sleep(0.1)

    async with sharer(world, enable_auto_commit=False, listener=Committing()) as first:
        await take(first, 39)
        link.append(await link_of_commits(world, first))
        async with sharer(world, enable_auto_commit=False) as second:
            polling = asyncio.create_task(drain([first, second], seconds=60))
            async with asyncio.timeout(60):
                while not committing:  # noqa: ASYNC110  the listener is called inside of a poll
                    await asyncio.sleep(0.01)
            await asyncio.sleep(10)
            assert second.assignment() == frozenset()
            link[0].server.resume_reading()
            assert await polling == [[], []]
            await committing[0]
            assert await stable_and_ranges(world) == (39, [])


@virtually
async def test_ranges_that_were_taken_before_a_rebalance_are_refused_after_it(world: World) -> None:
    await world.topic()
    await write_keyed(world, KEYS)
    async with (
        producer(world, transactional_id="t") as writer,
        sharer(world, enable_auto_commit=False) as first,
    ):
        await writer.init_transactions()
        await take(first, 40)
        taken = first.take_ranges()
        async with sharer(world, enable_auto_commit=False) as second:
            await until_shared([first, second])
            with pytest.raises(CommitFailedError):
                async with writer.transaction():
                    await writer.send_offsets_to_transaction(taken, first.group_metadata())
            assert await stable_and_ranges(world) == (-1, [])


@virtually
async def test_ranges_that_were_taken_count_after_a_rebalance_that_leaves_the_share_alone(
    world: World,
) -> None:
    await world.topic(TOPIC, partition_count=2)
    await world.topic(OUT)
    await write_keyed(world, KEYS)
    async with (
        producer(world, transactional_id="t") as writer,
        sharer(world, enable_auto_commit=False) as first,
    ):
        await writer.init_transactions()
        await take(first, 40)
        before = first.group_metadata()
        taken = first.take_ranges()
        async with sharer(world, enable_auto_commit=False) as second:
            await until_shared([first, second])
            kept = TopicPartition(TOPIC, 0) in first.assignment()
            assert kept
            assert first.group_metadata().member_epoch > before.member_epoch
            async with writer.transaction():
                await writer.send_offsets_to_transaction(taken, first.group_metadata())
        await asyncio.sleep(1)
        assert await stable_and_ranges(world) == (39, [])
