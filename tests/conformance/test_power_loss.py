"""A loss of power under each policy: log.flush=always loses no confirmed data, no policy loses metadata."""

import pytest

from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.dead_lettering import offsets_of_letters, use_dead_letters
from tests.conformance.harness import Lab, batch, open_lab, produce_fields, settle
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE, ShareMember


def producer_batch(lab: Lab, sequence: int, size: int) -> bytes:
    """A batch of producer 7 with this sequence."""
    return batch(size, lab.clock.wall_ms(), producer_id=7, producer_epoch=0, base_sequence=sequence)


async def send(stage: Stage, records: bytes) -> tuple[int, int]:
    """(error code, base offset) of a Produce."""
    fields = produce_fields(stage.partition.topic_id, 0, records)
    response = await stage.lab.admin.ask("produce", **fields)
    answer = response.responses[0].partition_responses[0]
    return int(answer.error_code), answer.base_offset


async def test_with_flush_always_confirmed_data_survives() -> None:
    async with open_lab(log__flush="always") as lab:
        stage = await make_stage(lab)
        await stage.produce(10)
        member = stage.member()
        await member.fetch(max_wait=0)  # Starts to record the group's start offset.
        await settle()
        await member.take()
        await member.acknowledge([(0, 3, ACCEPT), (5, 5, RELEASE)])
        await lab.lose_power()
        assert await stage.offsets() == (4, 6)
        assert await stage.member().take() == [(4, 4, 1), (5, 5, 2), (6, 9, 1)]


async def test_a_topic_with_flush_messages_1_is_as_safe_while_others_are_not() -> None:
    async with open_lab(share__state__store="log", log__flush="never") as lab:
        for topic_id in (
            await lab.create_topic("safe", flush__messages="1"),
            await lab.create_topic("fast"),
        ):
            await lab.produce(topic_id, 5)
        await lab.lose_power()
        topics = lab.broker.metadata.image.topics_by_name
        logs = [await lab.broker.logs.open(topics[name], 0) for name in ("safe", "fast")]
        assert [log.log_end_offset for log in logs] == [5, 0]


async def test_with_flush_always_a_retry_over_a_power_cut_is_recognised() -> None:
    async with open_lab(log__flush="always") as lab:
        stage = await make_stage(lab)
        assert await send(stage, producer_batch(lab, 0, 3)) == (0, 0)
        await lab.lose_power()
        assert await send(stage, producer_batch(lab, 0, 3)) == (0, 0)
        assert await send(stage, producer_batch(lab, 3, 1)) == (0, 3)


async def test_a_dead_letter_is_on_disk_before_its_record_is_archived() -> None:
    """Under any `log.flush`: here the source topic is safe, and the topic of the letters is not."""
    async with open_lab(share__state__store="log", log__flush="never") as lab:
        partition = TopicIdPartition(await lab.create_topic("t", flush__messages="1"), 0)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        await use_dead_letters(lab)
        member = ShareMember(lab.client(), [partition])
        await member.join("t")
        await lab.produce(partition.topic_id, 2)
        await member.take(max_wait=0)  # Starts to record the group's start offset.
        await settle()
        acquired = await member.take()
        first_offset = acquired[0][0]
        await lab.answered(member.start_acknowledge([(first_offset, first_offset, REJECT)]))
        while not (found := await offsets_of_letters(lab)):
            await settle()
        await settle()
        await lab.lose_power()
        assert await offsets_of_letters(lab) == found == [first_offset]


@pytest.mark.parametrize("flush", ["interval", "always", "never"])
async def test_a_retry_over_a_kill_is_recognised_under_each_policy(flush: str) -> None:
    async with open_lab(log__flush=flush) as lab:
        stage = await make_stage(lab)
        assert await send(stage, producer_batch(lab, 0, 3)) == (0, 0)
        assert await send(stage, producer_batch(lab, 3, 2)) == (0, 3)
        await lab.crash()
        assert await send(stage, producer_batch(lab, 3, 2)) == (0, 3)
        assert await send(stage, producer_batch(lab, 5, 1)) == (0, 5)


@pytest.mark.parametrize("flush", ["interval", "never"])
async def test_a_retry_of_a_batch_lost_in_a_power_cut_is_appended_again(flush: str) -> None:
    async with open_lab(log__flush=flush) as lab:
        stage = await make_stage(lab)
        assert await send(stage, producer_batch(lab, 0, 3)) == (0, 0)
        await lab.lose_power()
        assert await send(stage, producer_batch(lab, 0, 3)) == (0, 0)
        assert await send(stage, producer_batch(lab, 3, 1)) == (0, 3)


@pytest.mark.parametrize("flush", ["interval", "always", "never"])
async def test_topics_epochs_and_producer_ids_are_never_taken_back(flush: str) -> None:
    async with open_lab(log__flush=flush) as lab:
        await lab.create_topic("t")
        epoch = lab.broker.metadata.node_epoch
        first = await lab.admin.ask("init_producer_id", transactional_id=None, transaction_timeout=0)
        await lab.lose_power()
        assert "t" in lab.broker.metadata.image.topics_by_name
        assert lab.broker.metadata.node_epoch > epoch
        second = await lab.admin.ask("init_producer_id", transactional_id=None, transaction_timeout=0)
        assert second.producer_id > first.producer_id


async def test_data_left_unsynced_by_a_kill_is_synced_before_it_is_visible() -> None:
    """With log.flush=always a consumer must not see data that a loss of power could still remove."""
    async with open_lab(share__state__store="log") as lab:
        stage = await make_stage(lab)
        await stage.produce(5)
        lab.given["log.flush"] = "always"
        await lab.crash()
        member = ShareMember(lab.client(), [stage.partition])
        await member.fetch(max_wait=0)  # Starts to record the group's start offset.
        await settle()
        seen = await member.take()
        await lab.lose_power()
        again = ShareMember(lab.client(), [stage.partition])
        assert seen == [(0, 4, 1)]
        assert await again.take() == seen
