"""Start offsets and lags of groups (wire sheet, section 7)."""

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.conftest import Stage
from tests.conformance.harness import Lab, partitions_of, settle
from tests.conformance.share_member import ACCEPT, GAP, GROUP, REJECT, RELEASE, ShareMember, fetched

HOUR_MS = 3_600_000


async def joined(lab: Lab, reset: str | None, *, group_id: str = GROUP) -> ShareMember:
    """A member of a group with this reset policy, in topic `t`."""
    if reset is not None:
        await lab.configure_group(group_id, auto_offset_reset=reset)
    topic = lab.broker.metadata.image.topics_by_name["t"]
    member = ShareMember(lab.client(), [TopicIdPartition(topic.topic_id, 0)], group_id=group_id)
    await member.join("t")
    return member


class TestBeginning:
    @pytest.mark.parametrize("reset", ["latest", None], ids=["latest", "default"])
    async def test_latest_begins_after_the_last_record(self, lab: Lab, reset: str | None) -> None:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 3)
        member = await joined(lab, reset)
        assert await member.take() == []
        await lab.produce(topic_id, 2)
        ((first, last, count),) = await member.take()
        assert (last - first, count) == (1, 1)
        assert first >= 3

    async def test_earliest_begins_at_the_log_start(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 5)
        await lab.delete_records("t", 2)
        assert await (await joined(lab, "earliest")).take() == [(2, 4, 1)]

    async def test_by_duration_begins_at_the_first_record_that_is_young_enough(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 2)
        await lab.advance(2 * HOUR_MS)
        await lab.produce(topic_id, 3)
        await lab.advance(HOUR_MS // 2)
        assert await (await joined(lab, "by_duration:PT1H")).take(max_wait=100) == [(2, 4, 1)]

    async def test_by_duration_waits_for_a_young_record_with_an_error_at_the_end_of_each_wait(
        self, lab: Lab
    ) -> None:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 2)
        await lab.advance(2 * HOUR_MS)
        member = await joined(lab, "by_duration:PT1H")
        for _ in range(2):
            pending = member.start_fetch(max_wait=100)
            await lab.advance(99)
            assert not pending.done
            await lab.advance(1)
            assert fetched(pending.response()).errors == [ErrorCode.offset_not_available]
        pending = member.start_fetch(max_wait=100)
        await settle()
        await lab.produce(topic_id, 1)
        assert fetched(pending.response()).acquired == [(2, 2, 1)]

    async def test_the_start_is_undecided_until_the_first_fetch(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 3)
        member = await joined(lab, "earliest")
        (partition,) = member.partitions
        assert await lab.offsets(GROUP, partition) == (-1, -1)
        await member.take(0)
        assert await lab.offsets(GROUP, partition) == (-1, -1)
        await member.take(1)
        assert await lab.offsets(GROUP, partition) == (0, 3)

    async def test_records_that_arrive_after_the_first_fetch_are_never_skipped(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        member = await joined(lab, "latest")
        assert await member.take() == []
        await lab.produce(topic_id, 3)
        await lab.crash()
        again = ShareMember(lab.client(), member.partitions)
        ((first, last, count),) = await again.take()
        assert (last - first, count) == (2, 1)

    async def test_partitions_added_later_are_read_from_their_beginning(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        member = await joined(lab, "latest")
        await member.take()
        await lab.admin.ask("create_partitions", topics=[{"name": "t", "count": 2, "assignments": None}])
        await lab.produce(topic_id, 3, partition=1)
        await lab.advance(1000)
        await member.heartbeat(2)
        added = TopicIdPartition(topic_id, 1)
        got = await member.fetch(add=[added])
        assert sum(last - first + 1 for first, last, _ in got.partitions[added].acquired) == 3

    async def test_a_changed_policy_has_no_effect_on_a_group_that_has_begun(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 3)
        member = await joined(lab, "earliest")
        await member.take()
        await lab.configure_group(GROUP, auto_offset_reset="latest")
        await lab.restart()
        assert await ShareMember(lab.client(), member.partitions).take() == [(0, 2, 1)]


class TestStartOffsetAndLag:
    @pytest.mark.parametrize(
        ("acks", "expected"),
        [
            ([(0, 1, ACCEPT)], (2, 8)),
            ([(0, 9, ACCEPT)], (10, 0)),
            ([(5, 9, ACCEPT)], (0, 5)),
            ([(0, 0, REJECT), (1, 1, GAP), (2, 2, RELEASE)], (2, 8)),
            ([(0, 9, RELEASE)], (0, 10)),
            ([(1, 1, ACCEPT), (3, 3, ACCEPT)], (0, 8)),
        ],
    )
    async def test_follow_the_final_records(
        self, stage: Stage, acks: list[tuple[int, ...]], expected: tuple[int, int]
    ) -> None:
        await stage.produce(10)
        member = stage.member()
        await member.take()
        await member.acknowledge(acks)
        assert await stage.offsets() == expected

    async def test_a_closed_prefix_moves_the_start_over_all_final_records(self, stage: Stage) -> None:
        await stage.produce(10)
        member = stage.member()
        await member.take()
        await member.accept(3, 6)
        assert await stage.offsets() == (0, 6)
        await member.accept(0, 2)
        assert await stage.offsets() == (7, 3)

    async def test_records_that_wait_count_as_lag_and_share_state_does_not(self, stage: Stage) -> None:
        await stage.produce(4)
        member = stage.member()
        await member.take()
        await member.accept(0, 3)
        assert await stage.offsets() == (4, 0)
        await stage.produce(3)
        start, lag = await stage.offsets()
        assert lag == 3
        await member.take()
        assert (await stage.offsets())[1] == 3
        assert start >= 4

    async def test_the_high_watermark_of_consumers_stands_still_while_state_is_written(
        self, stage: Stage
    ) -> None:
        await stage.produce(4)
        member = stage.member()
        await member.take()
        for offset in range(4):
            await member.accept(offset, offset)
        log = stage.lab.broker.logs.get(stage.lab.broker.metadata.image.topics_by_name["t"], 0)
        assert log is not None
        assert (log.high_watermark, log.log_end_offset) == (4, 9 if stage.lab.store == "log" else 4)

    async def test_groups_have_independent_positions(self, stage: Stage) -> None:
        await stage.produce(3)
        await stage.lab.configure_group("other", auto_offset_reset="earliest")
        other = ShareMember(stage.lab.client(), [stage.partition], group_id="other")
        await other.join("t")
        await other.take()
        await other.accept(0, 2)
        assert await stage.member().take() == [(0, 2, 1)]
        assert await stage.lab.offsets("other", stage.partition) == (3, 0)
        assert await stage.offsets() == (0, 3)


class TestTopics:
    async def test_deletion_removes_the_state_from_all_groups(self, stage: Stage) -> None:
        await stage.produce(3)
        await stage.member().take()
        await stage.lab.delete_topic("t")
        described = await stage.lab.admin.ask(
            "describe_share_group_offsets", groups=[{"group_id": GROUP, "topics": None}]
        )
        assert described.groups[0].topics == ()

    async def test_a_new_topic_of_an_old_name_is_another(self, stage: Stage) -> None:
        await stage.produce(3)
        member = stage.member()
        await member.take()
        await member.accept(0, 2)
        await stage.lab.delete_topic("t")
        (partition,) = partitions_of(await stage.lab.create_topic("t"), 1)
        await stage.lab.advance(1000)
        await member.heartbeat(2)
        await stage.lab.produce(partition.topic_id, 2)
        again = ShareMember(stage.lab.client(), [partition])
        assert await again.take() == [(0, 1, 1)]
