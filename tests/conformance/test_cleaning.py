"""Share groups over cleaned logs: compacted topics with holes, and share state that is removed (wire sheet,
sections 5 and 6, on gaps).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import build_batch
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import Lab, open_lab, produce_fields, settle
from tests.conformance.share_member import ACCEPT, GAP, GROUP, RELEASE, ShareMember

SEGMENT_MS = 1_000


@pytest.fixture
async def lab(share_state_store: str) -> AsyncIterator[Lab]:
    async with open_lab(share__coordinator__snapshot__update__records__per__snapshot="5") as lab:
        yield lab


async def compacted_topic(lab: Lab) -> UUID:
    return await lab.create_topic(
        cleanup__policy="compact", segment__ms=str(SEGMENT_MS), min__cleanable__dirty__ratio="0.001"
    )


async def produce_keys(lab: Lab, topic_id: UUID, *keys: bytes) -> None:
    """One batch of records with these keys."""
    batch = build_batch(
        0, [(key, b"value") for key in keys], leader_epoch=-1, timestamp_ms=lab.clock.wall_ms()
    )
    response = await lab.admin.ask("produce", **produce_fields(topic_id, 0, batch))
    assert response.responses[0].partition_responses[0].error_code is ErrorCode.none
    await settle()


async def clean(lab: Lab, topic_id: UUID) -> PartitionLog:
    """Makes the active segment old enough to roll with the next record, and runs the cleaner."""
    log = log_of(lab, topic_id)
    await log.flush()
    await lab.broker.log_directory.cleaner.clean_due()
    await settle()
    return log


def log_of(lab: Lab, topic_id: UUID) -> PartitionLog:
    log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_id[topic_id], 0)
    assert log is not None
    return log


async def joined(lab: Lab, topic_id: UUID, group_id: str = GROUP) -> ShareMember:
    await lab.configure_group(group_id, auto_offset_reset="earliest")
    member = ShareMember(lab.client(), [TopicIdPartition(topic_id, 0)], group_id=group_id)
    await member.join("t")
    return member


async def consume(member: ShareMember) -> list[int]:
    """As a client does: accepts the records present, and acknowledges GAP for the offsets without records."""
    got = await member.fetch()
    assert got.error == 0
    there = {offset for partition in got.partitions.values() for offset in partition.offsets}
    acquired = [offset for first, last, _ in got.acquired for offset in range(first, last + 1)]
    acks = [(offset, offset, ACCEPT if offset in there else GAP) for offset in acquired]
    result = await member.acknowledge(acks)
    assert result.errors in ([0], [])
    return [offset for offset in acquired if offset in there]


async def consume_all(member: ShareMember) -> list[int]:
    consumed: list[int] = []
    while some := await consume(member):
        consumed += some
    return consumed


class TestCompaction:
    async def test_a_consumer_passes_over_batches_that_are_gone(self, lab: Lab) -> None:
        topic_id = await compacted_topic(lab)
        for _ in range(5):
            await produce_keys(lab, topic_id, b"a")
        await produce_keys(lab, topic_id, b"b")
        await lab.advance(2 * SEGMENT_MS)
        await produce_keys(lab, topic_id, b"a")
        await clean(lab, topic_id)
        member = await joined(lab, topic_id)
        assert await consume_all(member) == [4, 5, 6]
        assert await lab.offsets(GROUP, member.partitions[0]) == (7, 0)

    async def test_a_consumer_says_gap_of_records_that_are_gone_within_a_batch(self, lab: Lab) -> None:
        topic_id = await compacted_topic(lab)
        await produce_keys(lab, topic_id, b"a", b"b", b"a", b"c", b"b", b"d")
        await lab.advance(2 * SEGMENT_MS)
        await produce_keys(lab, topic_id, b"e")
        await clean(lab, topic_id)
        member = await joined(lab, topic_id)
        got = await member.fetch()
        assert [offset for one in got.partitions.values() for offset in one.offsets] == [2, 3, 4, 5]
        assert got.acquired == [(0, 5, 1)], "whole batches are acquired, holes and all"
        assert (await member.acknowledge([(0, 1, GAP), (2, 5, ACCEPT)])).errors == [0]
        assert len(await consume_all(member)) == 1
        assert await lab.offsets(GROUP, member.partitions[0]) == (7, 0)

    async def test_records_cleaned_while_they_wait_for_redelivery_do_not_delay_others(self, lab: Lab) -> None:
        topic_id = await compacted_topic(lab)
        for key in (b"a", b"a", b"b", b"a"):
            await produce_keys(lab, topic_id, key)
        member = await joined(lab, topic_id)
        assert await member.take() == [(0, 3, 1)]
        assert (await member.acknowledge([(0, 3, RELEASE)])).errors == [0]
        await lab.advance(2 * SEGMENT_MS)
        await produce_keys(lab, topic_id, b"c")
        await clean(lab, topic_id)
        assert len(await consume_all(member)) == 3
        _, lag = await lab.offsets(GROUP, member.partitions[0])
        assert lag == 0

    async def test_records_cleaned_while_they_are_locked_can_be_acknowledged(self, lab: Lab) -> None:
        topic_id = await compacted_topic(lab)
        for key in (b"a", b"a", b"b"):
            await produce_keys(lab, topic_id, key)
        member = await joined(lab, topic_id)
        await member.take()
        await lab.advance(2 * SEGMENT_MS)
        await produce_keys(lab, topic_id, b"c")
        await clean(lab, topic_id)
        await member.accept(0, 2)
        assert len(await consume_all(member)) == 1
        assert (await lab.offsets(GROUP, member.partitions[0]))[1] == 0

    async def test_a_restart_knows_the_records_consumed_before_the_compaction(self, lab: Lab) -> None:
        topic_id = await compacted_topic(lab)
        for _ in range(4):
            await produce_keys(lab, topic_id, b"a")
        member = await joined(lab, topic_id)
        await member.take(max_records=2)
        await member.accept(0, 1)
        await lab.advance(2 * SEGMENT_MS)
        await produce_keys(lab, topic_id, b"b")
        await clean(lab, topic_id)
        await lab.crash()
        member = await joined(lab, topic_id)
        consumed = await consume_all(member)
        assert len(consumed) == 2, "the latest of each key"
        assert (await lab.offsets(GROUP, member.partitions[0]))[1] == 0


@with_log_store_only
class TestShareState:
    async def test_unneeded_state_is_removed_without_an_effect_on_groups(self, lab: Lab) -> None:
        topic_id = await lab.create_topic(segment__ms=str(SEGMENT_MS))
        member, idle = await joined(lab, topic_id), await joined(lab, topic_id, "idle")
        await lab.produce(topic_id, 1)
        assert await consume(idle) == [0]
        log = await self._work(lab, topic_id, member, 900)
        await lab.advance(2 * SEGMENT_MS)
        await lab.produce(topic_id, 1)
        await consume(member)
        size_bytes, high_watermark = log.size_bytes, log.high_watermark
        before = await lab.offsets(GROUP, member.partitions[0]), await lab.offsets("idle", idle.partitions[0])
        await clean(lab, topic_id)
        await clean(lab, topic_id)
        assert log.size_bytes < 0.65 * size_bytes
        for restarted in (False, True):
            if restarted:
                await lab.crash()
                member, idle = await joined(lab, topic_id), await joined(lab, topic_id, "idle")
                await consume(member)
            after = (
                await lab.offsets(GROUP, member.partitions[0]),
                await lab.offsets("idle", idle.partitions[0]),
            )
            assert after == before
            assert log_of(lab, topic_id).high_watermark == high_watermark
        assert len(await consume_all(idle)) == 901

    async def _work(self, lab: Lab, topic_id: UUID, member: ShareMember, count: int) -> PartitionLog:
        """Records that are consumed one by one, so that each has its own control record and mark."""
        for _ in range(count):
            await lab.produce(topic_id, 1)
            await consume(member)
        return log_of(lab, topic_id)
