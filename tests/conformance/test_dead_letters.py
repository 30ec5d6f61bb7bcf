"""Dead letters of share groups (KIP-1191), request by request, with both stores of share state."""

from __future__ import annotations

import asyncio
import errno

import pytest

from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.dead_lettering import (
    COPIES_HEADERS,
    COPIES_RECORDS,
    CREATES_TOPICS,
    ENABLE,
    LETTER_TOPIC,
    ON_FAILURE,
    REJECTED,
    TOO_OFTEN,
    TOPIC_NAME,
    letters,
    offsets_of_letters,
    use_dead_letters,
)
from tests.conformance.harness import open_lab, produce_fields, settle
from tests.conformance.share_member import ACCEPT, GAP, GROUP, REJECT, RELEASE, ShareMember

LOCK_MS = 30_000


async def taken(stage: Stage, count: int = 4) -> ShareMember:
    """A member that has just got the first `count` records."""
    await stage.produce(count)
    member = stage.member()
    assert await member.take() == [(0, count - 1, 1)]
    return member


async def produce_records(stage: Stage, records: list[Record], codec: Compression = Compression.NONE) -> None:
    data = encode_records(records, compression=codec)
    response = await stage.lab.admin.ask("produce", **produce_fields(stage.partition.topic_id, 0, data))
    assert response.responses[0].partition_responses[0].error_code == 0, response
    await settle()


async def broker_setting(stage: Stage, name: str, value: str) -> None:
    await configure(stage, 4, "", name, value)


async def configure(stage: Stage, resource_type: int, resource: str, name: str, value: str) -> int:
    """The error code of a changed setting."""
    config = {"name": name, "config_operation": 0, "value": value}
    response = await stage.lab.admin.ask(
        "incremental_alter_configs",
        resources=[{"resource_type": resource_type, "resource_name": resource, "configs": [config]}],
    )
    await settle()
    return int(response.responses[0].error_code)


class TestLetters:
    async def test_a_rejected_record_gets_a_letter(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab)
        member = await taken(stage)
        result = await member.acknowledge([(1, 2, REJECT)])
        assert result.errors == [0]
        found = await letters(stage.lab)
        assert [one[:7] for one in found] == [(0, "t", 0, offset, GROUP, 1, REJECTED) for offset in (1, 2)]
        assert [(one.record.key, one.record.value) for one in found] == [(None, None)] * 2
        assert {one.record.timestamp_ms for one in found} == {stage.lab.clock.wall_ms()}

    async def test_the_name_of_the_topic_is_enough(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab)
        member = await taken(stage, 1)
        await member.acknowledge([(0, 0, REJECT)])
        await settle()
        configs = stage.lab.broker.metadata.image.configs(2, LETTER_TOPIC)
        assert configs == {ENABLE: "true", "message.timestamp.type": "CreateTime"}

    async def test_a_record_at_the_delivery_limit_gets_a_letter(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab, share__delivery__count__limit="2")
        member = await taken(stage, 2)
        await member.acknowledge([(0, 0, RELEASE), (1, 1, ACCEPT)])
        assert await offsets_of_letters(stage.lab) == []
        assert await member.take() == [(0, 0, 2)]
        await member.acknowledge([(0, 0, RELEASE)])
        assert [one[3:7] for one in await letters(stage.lab)] == [(0, GROUP, 2, TOO_OFTEN)]

    async def test_a_lock_that_expires_at_the_limit_gets_a_letter(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab, share__delivery__count__limit="2")
        member = await taken(stage, 1)
        await stage.lab.advance(LOCK_MS)
        assert await member.take() == [(0, 0, 2)]
        await stage.lab.advance(LOCK_MS)
        assert [one[3:7] for one in await letters(stage.lab)] == [(0, GROUP, 2, TOO_OFTEN)]
        assert await stage.offsets() == (1, 0)

    async def test_a_session_that_ends_at_the_limit_leaves_a_letter(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab, share__delivery__count__limit="2")
        member = await taken(stage, 1)
        await member.acknowledge([(0, 0, RELEASE)])
        assert await member.take() == [(0, 0, 2)]
        await member.leave_session()
        assert [one[3:7] for one in await letters(stage.lab)] == [(0, GROUP, 2, TOO_OFTEN)]

    async def test_gaps_and_records_below_the_log_start_get_none(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab)
        member = await taken(stage)
        await member.acknowledge([(1, 1, GAP), (2, 2, ACCEPT)])
        await stage.lab.delete_records("t", 1)
        assert await offsets_of_letters(stage.lab) == []

    async def test_the_partition_is_that_of_the_record_modulo_the_count(self, stage: Stage) -> None:
        topic_id = await stage.lab.create_topic("wide", 4)
        await stage.lab.create_topic(LETTER_TOPIC, 3, errors__deadletterqueue__group__enable="true")
        await use_dead_letters(stage.lab)
        wide = [TopicIdPartition(topic_id, index) for index in range(4)]
        member = ShareMember(stage.lab.client(), wide, member_id="member-2")
        await member.join("wide")
        for index in range(4):
            await stage.lab.produce(topic_id, 1, partition=index)
        await member.take()
        await member.acknowledge({one: [(0, 0, REJECT)] for one in wide})
        found = {one.source_partition: one.partition for one in await letters(stage.lab)}
        assert found == {0: 0, 1: 1, 2: 2, 3: 0}

    async def test_without_the_feature_there_are_none(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab)
        update = {"feature": "share.version", "max_version_level": 1, "upgrade_type": 2}
        response = await stage.lab.admin.ask("update_features", feature_updates=[update])
        assert response.error_code == 0, response
        member = await taken(stage, 2)
        await member.acknowledge([(0, 1, REJECT)])
        assert await letters(stage.lab) == []
        assert await stage.offsets() == (2, 0)

    async def test_many_letters_keep_the_order_of_the_records(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab)
        await stage.produce(*[100] * 16)
        member = stage.member()
        await member.take(max_records=2_000)
        await member.acknowledge([(0, 1_599, REJECT)])
        for _ in range(20):
            await settle()
        assert await offsets_of_letters(stage.lab) == list(range(1_600))
        assert await stage.offsets() == (1_600, 0)


class TestCopies:
    RECORDS = (
        Record(0, 5, b"key", b"value", (("trace", b"1"), ("trace", None))),
        Record(1, 6, None, None),
        Record(2, 7, b"key", None),
    )

    @pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
    async def test_have_key_and_value(self, stage: Stage, codec: Compression) -> None:
        await use_dead_letters(stage.lab, **{COPIES_RECORDS: "true"})
        await produce_records(stage, list(self.RECORDS), codec)
        member = stage.member()
        await member.take()
        await member.acknowledge([(0, 2, REJECT)])
        found = [one.record for one in await letters(stage.lab)]
        assert [(one.key, one.value) for one in found] == [(b"key", b"value"), (None, None), (b"key", None)]
        assert [len(one.headers) for one in found] == [6, 6, 6]

    async def test_have_headers_if_these_are_wanted(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab, **{COPIES_RECORDS: "true", COPIES_HEADERS: "true"})
        await produce_records(stage, list(self.RECORDS))
        member = stage.member()
        await member.take()
        await member.acknowledge([(0, 0, REJECT)])
        (found,) = await letters(stage.lab)
        assert found.record.headers[6:] == (("trace", b"1"), ("trace", None))

    async def test_are_left_out_where_the_record_is_too_large(self, stage: Stage) -> None:
        await stage.lab.create_topic(
            LETTER_TOPIC, errors__deadletterqueue__group__enable="true", max__message__bytes="1000"
        )
        await use_dead_letters(stage.lab, **{COPIES_RECORDS: "true"})
        await produce_records(stage, [Record(0, 5, b"key", bytes(2_000)), Record(1, 5, b"key", b"value")])
        member = stage.member()
        await member.take()
        await member.acknowledge([(0, 1, REJECT)])
        found = [one.record.value for one in await letters(stage.lab)]
        assert found == [None, b"value"]


class TestWhileALetterIsDue:
    """A record whose letter cannot be written, because its topic is not enabled."""

    async def held(self, stage: Stage, **more: str) -> ShareMember:
        await stage.lab.create_topic(LETTER_TOPIC)
        await use_dead_letters(stage.lab, **more)
        member = await taken(stage)
        result = await member.acknowledge([(0, 0, REJECT)])
        assert result.errors == [0]
        await settle()
        return member

    async def test_it_is_neither_delivered_nor_acknowledged(self, stage: Stage) -> None:
        member = await self.held(stage)
        assert (await member.acknowledge([(0, 0, ACCEPT)])).errors == [121]  # INVALID_RECORD_STATE
        await member.accept(1, 3)
        await stage.lab.advance(LOCK_MS)
        assert await member.take() == []
        assert await stage.offsets() == (0, 1)
        assert await letters(stage.lab) == []

    async def test_it_holds_its_place_in_the_window(self, stage: Stage) -> None:
        await stage.lab.set_group_configs(GROUP, {"share.partition.max.record.locks": "100"})
        member = await self.held(stage)
        await member.accept(1, 3)
        await stage.produce(*[1] * 200)
        acquired = await member.take()
        assert sum(last - first + 1 for first, last, _ in acquired) == 100 - 4

    async def test_a_full_window_is_told_once(self, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
        await stage.lab.set_group_configs(GROUP, {"share.partition.max.record.locks": "100"})
        member = await self.held(stage)
        await stage.produce(100)
        await member.take()
        await stage.lab.advance(60_000)
        lines = [line for line in capsys.readouterr().out.splitlines() if "fill the in-flight window" in line]
        assert len(lines) == 1

    async def test_it_is_written_when_the_topic_is_repaired(self, stage: Stage) -> None:
        await self.held(stage)
        assert await configure(stage, 2, LETTER_TOPIC, ENABLE, "true") == 0
        assert await offsets_of_letters(stage.lab) == [0]
        assert (await stage.offsets())[0] == 1

    async def test_those_of_later_decisions_about_earlier_records_are_written_once(
        self, stage: Stage
    ) -> None:
        await stage.lab.create_topic(LETTER_TOPIC)
        await use_dead_letters(stage.lab, **{COPIES_RECORDS: "true"})
        member = await taken(stage)
        await member.acknowledge([(2, 2, REJECT)])
        await member.acknowledge([(0, 0, REJECT)])
        await configure(stage, 2, LETTER_TOPIC, ENABLE, "true")
        found = await letters(stage.lab)
        assert [(one.offset, one.record.value) for one in found] == [(0, b"0"), (2, b"2")]
        await member.accept(1, 1)
        await member.accept(3, 3)
        assert await stage.offsets() == (4, 0)

    async def test_it_is_written_to_another_topic_when_the_group_names_one(self, stage: Stage) -> None:
        await self.held(stage)
        await stage.lab.set_group_configs(GROUP, {TOPIC_NAME: "dlq.other"})
        await settle()
        assert [one.offset for one in await letters(stage.lab, "dlq.other")] == [0]
        assert (await stage.offsets())[0] == 1

    async def test_it_is_archived_when_the_group_gives_up_dead_letters(self, stage: Stage) -> None:
        await self.held(stage)
        await stage.lab.set_group_configs(GROUP, {TOPIC_NAME: ""})
        await settle()
        assert (await stage.offsets())[0] == 1
        assert await letters(stage.lab) == []

    async def test_it_outlives_a_crash(self, stage: Stage) -> None:
        await self.held(stage)
        await stage.lab.crash()
        member = stage.member()
        assert await member.take() == [(1, 3, 1)]
        await configure(stage, 2, LETTER_TOPIC, ENABLE, "true")
        assert [one[3:7] for one in await letters(stage.lab)] == [(0, GROUP, 1, REJECTED)]

    async def test_it_is_not_written_about_a_record_that_has_left_the_log(self, stage: Stage) -> None:
        await self.held(stage)
        await stage.lab.delete_records("t", 2)
        await configure(stage, 2, LETTER_TOPIC, ENABLE, "true")
        assert await letters(stage.lab) == []
        assert (await stage.offsets())[0] == 2

    async def test_with_archive_it_is_lost_as_in_kafka(self, stage: Stage) -> None:
        await self.held(stage, **{ON_FAILURE: "archive"})
        assert (await stage.offsets())[0] == 1
        await configure(stage, 2, LETTER_TOPIC, ENABLE, "true")
        await stage.lab.advance(60_000)
        assert await letters(stage.lab) == []


class TestTopics:
    async def test_a_missing_topic_is_not_created_if_the_broker_must_not(self, stage: Stage) -> None:
        await broker_setting(stage, CREATES_TOPICS, "false")
        await use_dead_letters(stage.lab)
        member = await taken(stage, 1)
        await member.acknowledge([(0, 0, REJECT)])
        await settle()
        assert LETTER_TOPIC not in stage.lab.broker.metadata.image.topics_by_name
        await broker_setting(stage, CREATES_TOPICS, "true")
        assert await offsets_of_letters(stage.lab) == [0]

    async def test_a_name_without_the_prefix_waits_for_another_prefix(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab)
        await stage.lab.set_group_configs(GROUP, {TOPIC_NAME: "letters"})
        member = await taken(stage, 1)
        await member.acknowledge([(0, 0, REJECT)])
        await settle()
        assert await letters(stage.lab, "letters") == []
        await broker_setting(stage, "errors.deadletterqueue.topic.name.prefix", "")
        assert [one.offset for one in await letters(stage.lab, "letters")] == [0]

    async def test_a_compacted_topic_is_refused(self, stage: Stage) -> None:
        await stage.lab.create_topic(
            LETTER_TOPIC, errors__deadletterqueue__group__enable="true", cleanup__policy="compact"
        )
        await use_dead_letters(stage.lab)
        member = await taken(stage, 1)
        await member.acknowledge([(0, 0, REJECT)])
        assert await letters(stage.lab) == []
        await configure(stage, 2, LETTER_TOPIC, "cleanup.policy", "delete")
        assert await offsets_of_letters(stage.lab) == [0]

    async def test_a_topic_that_is_deleted_is_created_again(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab)
        member = await taken(stage, 2)
        await member.acknowledge([(0, 0, REJECT)])
        await settle()
        await stage.lab.delete_topic(LETTER_TOPIC)
        await member.acknowledge([(1, 1, REJECT)])
        assert await offsets_of_letters(stage.lab) == [1]

    async def test_a_broken_disk_of_the_letters_holds_the_record(self, stage: Stage) -> None:
        await stage.lab.create_topic(LETTER_TOPIC, errors__deadletterqueue__group__enable="true")
        await use_dead_letters(stage.lab)
        member = await taken(stage, 2)
        await member.acknowledge([(0, 0, REJECT)])
        assert await offsets_of_letters(stage.lab) == [0]
        with stage.lab.broken_disk(f"{LETTER_TOPIC}-0"):
            await member.acknowledge([(1, 1, REJECT)])
            await settle()
            assert (await stage.offsets())[0] == 1
        await stage.lab.crash()
        assert await stage.member().take() == []
        assert await offsets_of_letters(stage.lab) == [0, 1]
        assert await stage.offsets() == (2, 0)


async def test_a_copy_waits_for_a_source_that_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    reopen_at_once(monkeypatch)
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await lab.create_topic(LETTER_TOPIC)
        await use_dead_letters(lab, **{COPIES_RECORDS: "true"})
        member = await taken(stage, 1)
        await member.acknowledge([(0, 0, REJECT)])
        with lab.broken_disk("t-0"):
            data = encode_records([Record(0, 5, None, b"lost")])
            await lab.admin.ask("produce", **produce_fields(stage.partition.topic_id, 0, data))
            await configure(stage, 2, LETTER_TOPIC, ENABLE, "true")
            assert await letters(lab) == []
        await stage.produce(1)
        await stage.member().take()
        await lab.advance(60_000)
        assert [(one.offset, one.record.value) for one in await letters(lab)] == [(0, b"0")]


async def test_a_first_letter_that_was_written_although_the_disk_failed_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its topic did not exist when the record was rejected, so the search needs the place recorded later."""
    reopen_at_once(monkeypatch)
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await use_dead_letters(lab)
        member = await taken(stage, 1)
        lab.filesystem.sync_error = errno.EIO
        lab.filesystem.failing_suffix = f"{LETTER_TOPIC}-0/{0:020d}.log"
        await member.acknowledge([(0, 0, REJECT)])
        await settle()
        lab.filesystem.sync_error = None
        await lab.advance(60_000)
        assert await offsets_of_letters(lab) == [0]
        assert await stage.offsets() == (1, 0)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("__letters", "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"),
        ("a b", "Topic name is invalid"),
    ],
)
async def test_an_impossible_name_is_refused(stage: Stage, name: str, error: str) -> None:
    config = {"name": TOPIC_NAME, "config_operation": 0, "value": name}
    response = await stage.lab.admin.ask(
        "incremental_alter_configs",
        resources=[{"resource_type": 32, "resource_name": GROUP, "configs": [config]}],
    )
    assert response.responses[0].error_code == 40
    assert error in response.responses[0].error_message


async def test_a_close_ends_the_letters_of_a_leader_that_was_replaced() -> None:
    """The logs close next. The letters of the next leader wait for those of the one before."""
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await use_dead_letters(lab)
        member = await taken(stage, 2)
        await member.acknowledge([(0, 0, REJECT)])
        await settle()
        assert await offsets_of_letters(lab) == [0]
        key = SharePartitionKey(GROUP, *stage.partition)
        leader = lab.broker.share_partitions.get(key)
        assert leader is not None
        with lab.stalled_disk():
            others = asyncio.all_tasks()
            await member.acknowledge([(1, 1, REJECT)])
            await settle()
            lab.broker.share_partitions.forget(key)
            replacing = lab.broker.share_partitions.lead(key, leader.log)
            assert replacing is not None
            assert lab.broker.dead_letters.is_writing(replacing)
            await lab.broker.dead_letters.close()
            assert asyncio.all_tasks() == others
        await settle()
        assert errors == []
