"""Share groups with `share.order=key` over compacted logs: compaction may remove records whose keys are known
already.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import build_batch
from tests.conformance.conftest import Stage
from tests.conformance.harness import produce_fields, settle
from tests.conformance.share_member import GROUP, ShareMember

SEGMENT_MS = 1_000


class Compacted:
    """A compacted topic, and two members of a group in the order of keys."""

    def __init__(self, stage: Stage, partition: TopicIdPartition) -> None:
        self._lab = stage.lab
        self._partition = partition
        self.one, self.other = (
            ShareMember(stage.lab.client(), [partition], member_id=f"member-{number}") for number in (1, 2)
        )

    async def produce(self, *keys: bytes, producer_id: int = -1) -> int:
        """One batch of records with these keys; its base offset."""
        producer = {} if producer_id < 0 else {"producer_id": producer_id, "producer_epoch": 0}
        wall_ms = self._lab.clock.wall_ms()
        base_sequence = 0 if producer else -1
        data = build_batch(
            0,
            [(key, b"value") for key in keys],
            leader_epoch=-1,
            timestamp_ms=wall_ms,
            base_sequence=base_sequence,
            **producer,
        )
        response = await self._lab.admin.ask("produce", **produce_fields(self._partition.topic_id, 0, data))
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code is ErrorCode.none, answer
        await settle()
        base_offset: int = answer.base_offset
        return base_offset

    async def compact(self) -> None:
        """Closes the present segment with a record of another key, and compacts it."""
        await self._lab.advance(2 * SEGMENT_MS)
        await self.produce(b"other key")
        topic = self._lab.broker.metadata.image.topics_by_id[self._partition.topic_id]
        log = self._lab.broker.logs.get(topic, 0)
        assert log is not None
        await log.flush()
        await self._lab.broker.log_directory.cleaner.clean_due()
        await settle()


async def compacted(stage: Stage) -> Compacted:
    topic_id = await stage.lab.create_topic(
        "compacted",
        cleanup__policy="compact",
        segment__ms=str(SEGMENT_MS),
        min__cleanable__dirty__ratio="0.001",
    )
    await stage.lab.configure_group(GROUP, order="key")
    topic = Compacted(stage, TopicIdPartition(topic_id, 0))
    for member in (topic.one, topic.other):
        await member.join("compacted")
        await member.take()
    return topic


async def taken(member: ShareMember, *, fetches: int) -> list[int]:
    """The offsets that these fetches acquire, one record each."""
    acquired: list[int] = []
    for _ in range(fetches):
        for first, last, _ in await member.take(max_records=1, share_acquire_mode=1):
            acquired += range(first, last + 1)
    return acquired


async def test_a_batch_that_compaction_has_emptied_is_passed_over(stage: Stage) -> None:
    topic = await compacted(stage)
    producer_id = (await stage.lab.admin.ask("init_producer_id", transaction_timeout=1000)).producer_id
    base = await topic.produce(b"a", b"b", b"c", producer_id=producer_id)
    assert await topic.one.take(max_records=1, share_acquire_mode=1) == [(base, base, 1)]
    last = await topic.produce(b"a", b"b", b"c")
    await topic.compact()
    assert await taken(topic.other, fetches=4) == [last + 1, last + 2, last + 3]
    await topic.one.accept(base, base)
    assert await taken(topic.one, fetches=1) == [last]


async def test_a_record_that_compaction_has_removed_frees_its_key(stage: Stage) -> None:
    topic = await compacted(stage)
    base = await topic.produce(b"a", b"b", b"c", b"d")
    assert await topic.one.take(max_records=1, share_acquire_mode=1) == [(base, base, 1)]
    last = await topic.produce(b"b", b"c")
    await topic.compact()
    assert await taken(topic.other, fetches=4) == [base + 3, last, last + 1, last + 2]
