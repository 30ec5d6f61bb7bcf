"""Records of share groups that a producer acknowledges in its transactions: rules, lost connections, and
kills of members and the broker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from random import Random
from typing import Any

import pytest

from barnabas.client import (
    AcknowledgeError,
    AcknowledgeType,
    MisuseError,
    Producer,
    TransactionAbortedError,
    UnsupportedBrokerError,
)
from barnabas.coordinator.metadata import features
from tests.client.consumer_world import producer
from tests.client.consumer_world import values as copied_values
from tests.client.copier import OUT, Copier, committed_copies
from tests.client.virtual_world import TOPIC, Consumer, Records, World, eventually, take, values, virtually

LOCK_MS = 30_000


async def begun(world: World, stack: AsyncExitStack, **options: Any) -> tuple[Producer, Consumer, Records]:
    """A producer in a transaction, and a consumer that has read four records."""
    await world.topic(TOPIC, *"abcd")
    await world.topic(OUT)
    await world.group()
    writer = await stack.enter_async_context(producer(world, transactional_id="copier"))
    one = await stack.enter_async_context(world.consumer(prefetch_records=0, **options))
    await writer.init_transactions()
    records = await take(one, 4)
    writer.begin_transaction()
    return writer, one, records


async def lag_is(world: World, count: int) -> None:
    async def holds() -> bool:
        return await world.lag() == count

    await eventually(holds)


@virtually
async def test_records_and_acknowledgements_count_at_the_commit(world: World) -> None:
    async with AsyncExitStack() as stack:
        writer, one, records = await begun(world, stack)
        for record in records:
            await writer.send(OUT, record.value)
        await writer.acknowledge(records[:2])
        await writer.acknowledge(records[2:3], AcknowledgeType.REJECT)
        await writer.acknowledge(records[3:], AcknowledgeType.RELEASE)
        assert await world.lag() == 4
        await writer.commit_transaction()
        await lag_is(world, 1)
        (again,) = await take(one, 1)
        assert (again.value, again.delivery_count) == (b"d", 2)
        again.accept()
        assert not await one.commit() or not world.outcomes[-1].error


@virtually
async def test_after_an_abort_the_records_are_delivered_again(world: World) -> None:
    async with AsyncExitStack() as stack:
        writer, one, records = await begun(world, stack)
        await writer.acknowledge(records)
        await writer.abort_transaction()
        again = await take(one, 4)
        assert values(again) == list("abcd")
        assert {record.delivery_count for record in again} == {2}
        async with writer.transaction():
            await writer.acknowledge(again)
        await lag_is(world, 0)


@virtually
async def test_the_records_stay_locked_after_the_consumer_is_gone(world: World) -> None:
    async with AsyncExitStack() as stack:
        writer, one, records = await begun(world, stack)
        await writer.acknowledge(records)
        await one.close()
        await asyncio.sleep(2 * LOCK_MS / 1000 - 1)
        async with world.consumer() as other:
            assert await other.poll(timeout=2) == []
            await writer.commit_transaction()
            assert await other.poll(timeout=2) == []
        assert await world.lag() == 0


@virtually
async def test_a_record_that_is_lost_aborts_the_transaction(world: World) -> None:
    async with AsyncExitStack() as stack:
        writer, _, records = await begun(world, stack, renew_locks=False)
        await asyncio.sleep(LOCK_MS / 1000 + 1)
        with pytest.raises(AcknowledgeError, match="lock had ended"):
            await writer.acknowledge(records)
        with pytest.raises(TransactionAbortedError):
            await writer.commit_transaction()
        await writer.abort_transaction()


@virtually
async def test_a_record_has_one_acknowledgement(world: World) -> None:
    async with AsyncExitStack() as stack:
        writer, _, records = await begun(world, stack)
        await writer.acknowledge(records[:1])
        with pytest.raises(MisuseError, match="acknowledged before"):
            records[0].accept()
        with pytest.raises(AcknowledgeError, match="acknowledged before"):
            await writer.acknowledge(records[:1])


@pytest.mark.parametrize("is_killed", [False, True])
@virtually
async def test_a_lost_answer_leads_to_an_abort_and_a_new_epoch(world: World, is_killed: bool) -> None:
    async with AsyncExitStack() as stack:
        writer, one, records = await begun(world, stack)
        if is_killed:
            world.kill()
        acknowledging = asyncio.create_task(writer.acknowledge(records))
        await asyncio.sleep(0)
        if not is_killed:
            world.cut_connections()
        with pytest.raises(AcknowledgeError):
            await acknowledging
        if is_killed:
            await world.start()
        await writer.abort_transaction()
        again = await take(one, 4)
        async with writer.transaction():
            for record in again:
                await writer.send(OUT, record.value)
            await writer.acknowledge(again)
        await lag_is(world, 0)
    assert copied_values(await committed_copies(world)) == list("abcd")


@virtually
async def test_a_cancelled_call_aborts_the_transaction(world: World) -> None:
    async with AsyncExitStack() as stack:
        writer, one, records = await begun(world, stack)
        acknowledging = asyncio.create_task(writer.acknowledge(records))
        await asyncio.sleep(0)
        acknowledging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acknowledging
        with pytest.raises(TransactionAbortedError):
            await writer.commit_transaction()
        await writer.abort_transaction()
        assert values(await take(one, 4)) == list("abcd")


@virtually
async def test_misuse_is_refused_before_anything_is_sent(world: World) -> None:
    async with AsyncExitStack() as stack:
        writer, _, records = await begun(world, stack)
        with pytest.raises(MisuseError, match="accept, release or reject"):
            await writer.acknowledge(records, AcknowledgeType.RENEW)
        await writer.commit_transaction()
        with pytest.raises(MisuseError, match="no transaction is open"):
            await writer.acknowledge(records)
        async with producer(world) as plain:
            with pytest.raises(MisuseError, match="transactional_id"):
                await plain.acknowledge(records)


@virtually
async def test_an_implicit_consumer_has_no_records_for_a_transaction(world: World) -> None:
    async with AsyncExitStack() as stack:
        writer, _, records = await begun(world, stack, acknowledgement_mode="implicit")
        with pytest.raises(MisuseError, match="implicit"):
            await writer.acknowledge(records)


@pytest.fixture
def broker_without_the_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "EXTENSIONS", {})
    monkeypatch.setattr("barnabas.broker.handlers.api_versions.EXTENSIONS", {})


@pytest.mark.usefixtures("broker_without_the_feature")
@virtually
async def test_a_broker_without_the_feature_is_refused(world: World) -> None:
    async with AsyncExitStack() as stack:
        writer, _, records = await begun(world, stack)
        with pytest.raises(UnsupportedBrokerError, match="the feature share"):
            await writer.acknowledge(records)
        await writer.abort_transaction()
        assert all(record.is_held for record in records)


class ShareCopier(Copier):
    """Acknowledges the records of a share group in the transactions of their copies."""

    async def _copy(self) -> None:
        async with self._writer() as writer, self._world.consumer(max_records=4) as one:
            await writer.init_transactions()
            while not self._is_leaving:
                records = await one.poll(timeout=1)
                try:
                    async with writer.transaction():
                        await self._copy_batch(writer, records)
                except (ZeroDivisionError, AcknowledgeError, TransactionAbortedError):
                    for record in records:
                        if record.is_held:
                            record.release()

    async def _copy_batch(self, writer: Producer, records: Records) -> None:
        for record in records:
            await writer.send(OUT, record.value)
        await writer.acknowledge(records)
        await self._pause_or_fail(0.1)


async def copied_once(world: World, seed: int) -> None:
    """Twenty-five kills of copiers and the broker."""
    random = Random(seed)
    await world.topic(TOPIC, partition_count=2)
    await world.topic(OUT)
    await world.group(delivery_count_limit="10")
    copiers = [ShareCopier(world, f"c{number}", random) for number in range(3)]
    written: list[str] = []
    for kill in range(25):
        new = [f"{kill}-{number}" for number in range(random.randint(1, 20))]
        await world.write(TOPIC, *new, partition=random.randrange(2))
        written += new
        await asyncio.sleep(random.random() * 8)
        if random.random() < 0.4:
            world.kill()
            await world.start()
        else:
            number = random.randrange(3)
            copiers[number].kill()
            copiers[number] = ShareCopier(world, f"c{number}", random)
    await asyncio.sleep(240)
    for copier in copiers:
        await copier.leave()
    assert Counter(copied_values(await committed_copies(world))) == Counter(written)
    for partition in range(2):
        assert await world.lag(partition=partition) <= 0


@pytest.mark.parametrize("store", ["log", "topic"])
@pytest.mark.seeds(1)
def test_each_record_is_copied_once_despite_aborts_and_a_hundred_kills(seed: int, store: str) -> None:
    @virtually
    async def copy(world: World) -> None:
        await copied_once(world, seed)

    copy.settings = {"share.state.store": store}  # type: ignore[attr-defined]
    copy()
