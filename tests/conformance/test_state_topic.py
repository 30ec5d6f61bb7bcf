"""Share state in `__share_group_state` (`share.state.store=topic`): the records written there, and the
effects of a failing log, retention and other writers.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator

import pytest

from barnabas.coordinator.replay.interfaces import StoredRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.share_state_records import (
    ShareSnapshotValue,
    ShareStateValue,
    ShareUpdateValue,
    decode_share_state_record,
)
from barnabas.storage.errors import LogOffline
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.conftest import Stage, make_stage, with_topic_store_only
from tests.conformance.harness import INTERNAL_PARTITIONS, Lab, open_lab, settle
from tests.conformance.share_member import ACCEPT, GROUP, RELEASE, ShareMember, acknowledged, fetched
from tests.conformance.state_requests import with_topic, write

pytestmark = with_topic_store_only

_INTERVAL_MS = 300_000
LATER = 60.0
"""Seconds after which an offline log may be reopened."""
SNAPSHOTS = "share__coordinator__snapshot__update__records__per__snapshot"


def key(stage: Stage) -> SharePartitionKey:
    return SharePartitionKey(GROUP, *stage.partition)


def state_log(stage: Stage) -> PartitionLog:
    share_state = stage.lab.broker.share_state
    assert share_state is not None
    log = stage.lab.broker.log_directory.find(
        "__share_group_state", share_state.coordinator.partition_of(key(stage))
    )
    assert log is not None
    return log


async def values(stage: Stage) -> list[ShareStateValue | None]:
    """The records in the log of the group's state, oldest first."""
    share_state = stage.lab.broker.share_state
    assert share_state is not None
    stored = await share_state.topic.read(share_state.coordinator.partition_of(key(stage)))
    records = [one for one in stored if isinstance(one, StoredRecord)]
    decoded = [decode_share_state_record(record.key or b"", record.value) for record in records]
    return [record[1] for record in decoded if record is not None]


@pytest.fixture
async def always_flushed() -> AsyncIterator[Stage]:
    """A stage whose writes can be stalled."""
    async with open_lab(log__flush="always") as lab:
        stage = await make_stage(lab)
        await begun(stage)
        yield stage


async def begun(stage: Stage) -> None:
    """Lets a client fetch, so that the state is read and the start recorded."""
    await stage.member(9).fetch()
    await settle()


async def test_the_topic_is_created_with_the_first_group(lab: Lab) -> None:
    assert "__share_group_state" not in lab.broker.metadata.image.topics_by_name
    await make_stage(lab)
    topic = lab.broker.metadata.image.topics_by_name["__share_group_state"]
    assert (len(topic.partitions), topic.is_internal) == (INTERNAL_PARTITIONS, True)


async def test_offsets_of_records_have_no_gaps(stage: Stage) -> None:
    member = stage.member()
    for first in range(0, 20, 5):
        await stage.produce(5)
        assert await member.take() == [(first, first + 4, 1)]
        await member.accept(first, first + 4)
    log = stage.lab.broker.logs.get(stage.lab.broker.metadata.image.topics_by_name["t"], 0)
    assert log is not None
    assert (log.log_end_offset, log.high_watermark, len(log.control_runs)) == (20, 20, 0)


async def test_the_written_records_follow_kafka(stage: Stage) -> None:
    await stage.produce(10)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 1, ACCEPT), (5, 6, RELEASE)])
    await member.acknowledge([(3, 3, ACCEPT)])
    begun, started, first, second = await values(stage)
    assert isinstance(begun, ShareSnapshotValue)
    assert (begun.state_epoch, begun.start_offset, begun.delivery_complete_count) == (2, -1, -1)
    for update in (started, first, second):
        assert isinstance(update, ShareUpdateValue)
        assert update.leader_epoch == stage.lab.broker.metadata.node_epoch
    assert isinstance(first, ShareUpdateValue)
    assert isinstance(second, ShareUpdateValue)
    # The start is the one before; Acquired is not written, not even between written ranges.
    assert (first.start_offset, first.delivery_complete_count) == (0, 2)
    assert [(b.first_offset, b.last_offset, b.delivery_state) for b in first.state_batches] == [
        (0, 1, 2),
        (5, 6, 0),
    ]
    assert (second.start_offset, second.delivery_complete_count) == (2, 1)
    assert [(b.first_offset, b.last_offset) for b in second.state_batches] == [(3, 3)]


async def test_decisions_during_a_write_share_the_next_one(always_flushed: Stage) -> None:
    stage = always_flushed
    await stage.produce(8)
    member = stage.member()
    await member.take()
    before = len(await values(stage))
    with stage.lab.stalled_disk():
        pending = [member.start_acknowledge([(offset, offset, ACCEPT)]) for offset in (0, 2, 4, 1)]
        await settle()
        assert not any(each.done for each in pending)
    for each in pending:
        assert acknowledged(await stage.lab.answered(each)).errors == [ErrorCode.none]
    first, rest = (await values(stage))[before:]
    assert isinstance(first, ShareUpdateValue)
    assert isinstance(rest, ShareUpdateValue)
    assert [(b.first_offset, b.last_offset) for b in first.state_batches] == [(0, 0)]
    assert (rest.start_offset, rest.delivery_complete_count) == (1, 3)
    assert [(b.first_offset, b.last_offset) for b in rest.state_batches] == [(1, 2), (4, 4)]
    assert await stage.offsets() == (3, 4)


async def test_a_fetch_waits_while_the_state_is_being_read(always_flushed: Stage) -> None:
    stage = always_flushed
    await stage.produce(3)
    member = stage.member()
    await member.take()
    await member.accept(0, 0)
    member.client.disconnect()
    await stage.lab.restart()
    again = stage.member()
    with stage.lab.stalled_disk():
        # Reading in a newer leader epoch records that epoch.
        pending = again.start_fetch(max_wait=500)
        await settle()
        assert not pending.done
    assert fetched(await stage.lab.answered(pending)).acquired == [(1, 2, 2)]


def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on offline logs may be reopened."""
    loop = asyncio.get_running_loop()
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + LATER)


class TestFailures:
    async def test_a_log_that_fails_keeps_the_records_with_their_member(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await stage.produce(2)
        member = stage.member()
        await member.take()
        with stage.lab.broken_disk(stage.lab.state_directory(GROUP, stage.partition)):
            got = await member.acknowledge([(0, 0, ACCEPT)])
            assert got.errors == [ErrorCode.kafka_storage_error]
        # Not immediately: the next request reopens it, and is refused until the state has been read.
        for error in (ErrorCode.kafka_storage_error, ErrorCode.coordinator_not_available):
            got = await member.acknowledge([(0, 0, ACCEPT)])
            assert got.errors == [error]
            await settle()
            later(monkeypatch)
        await member.accept(0, 0)
        assert await stage.offsets() == (1, 1)
        await stage.lab.crash()
        assert await stage.offsets() == (1, 1)

    async def test_requests_refused_while_the_log_is_reopened_are_never_written(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await stage.produce(2)
        member = stage.member()
        await member.take()
        before = await values(stage)
        with stage.lab.broken_disk(stage.lab.state_directory(GROUP, stage.partition)):
            await member.acknowledge([(0, 0, ACCEPT)])
        # The first request is too early, the second one reopens the log.
        for error in (ErrorCode.kafka_storage_error, ErrorCode.coordinator_not_available):
            got = await member.acknowledge([(0, 0, ACCEPT)])
            assert got.errors == [error]
            await settle()
            later(monkeypatch)
        assert await values(stage) == before
        await stage.lab.crash()
        assert await stage.offsets() == (0, 2)

    async def test_a_leader_fenced_by_another_gets_the_error(self, stage: Stage) -> None:
        await stage.produce(2)
        member = stage.member()
        await member.take()
        read = {
            "group_id": GROUP,
            "topics": [
                {
                    "topic_id": stage.partition.topic_id,
                    "partitions": [{"partition": 0, "leader_epoch": 1000}],
                }
            ],
        }
        await stage.lab.another_broker().ask("read_share_group_state", 0, **read)
        got = await member.acknowledge([(0, 0, ACCEPT)])
        assert got.errors == [ErrorCode.not_leader_or_follower]

    async def test_the_next_fetch_finds_state_that_another_has_initialized_again(self, stage: Stage) -> None:
        await stage.produce(4)
        member = stage.member()
        await member.take()
        begun_anew = {"partition": 0, "state_epoch": 50, "start_offset": 0}
        topics = [{"topic_id": stage.partition.topic_id, "partitions": [begun_anew]}]
        await stage.lab.another_broker().ask("initialize_share_group_state", group_id=GROUP, topics=topics)
        got = await member.acknowledge([(0, 1, ACCEPT)])
        assert got.errors == [ErrorCode.not_leader_or_follower]
        assert await stage.member(2).take() == [(0, 3, 1)]

    async def test_state_that_no_leader_could_have_written_is_an_error_of_its_partition(
        self, stage: Stage
    ) -> None:
        api, version, asked = write(0, (0, 1, 9, 1), state_epoch=2, leader_epoch=0)
        asked["group_id"] = GROUP
        await stage.lab.another_broker().ask(api, version, **with_topic(asked, stage.partition.topic_id))
        pending = stage.member().start_fetch(max_wait=100)
        await stage.lab.advance(100)
        assert fetched(pending.response()).errors == [ErrorCode.kafka_storage_error]


class TestDeletedTopics:
    async def test_deletions_of_state_lost_in_a_power_failure_are_repeated_at_the_start(self) -> None:
        async with open_lab(log__flush="interval") as lab:
            stage = await make_stage(lab)
            await begun(stage)
            await state_log(stage).flush()
            await lab.delete_topic("t")
            await lab.lose_power()
            assert "t" not in lab.broker.metadata.image.topics_by_name
            assert not holds_state(stage)
            assert (await values(stage))[-1] is None

    async def test_deletions_of_state_that_could_not_be_written_are_repeated_when_the_log_is_back(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await begun(stage)
        topic = stage.lab.broker.metadata.image.topics_by_name["__share_group_state"]
        index = state_log(stage).topic_partition.partition
        with stage.lab.broken_disk(stage.lab.state_directory(GROUP, stage.partition)):
            await stage.lab.delete_topic("t")
        assert holds_state(stage)
        with pytest.raises(LogOffline):
            await stage.lab.broker.logs.open(topic, index)
        later(monkeypatch)
        await stage.lab.broker.logs.open(topic, index)
        await settle()
        assert not holds_state(stage)
        assert (await values(stage))[-1] is None


def holds_state(stage: Stage) -> bool:
    share_state = stage.lab.broker.share_state
    assert share_state is not None
    return share_state.coordinator.holds(key(stage))


class TestALogThatLostItsEnd:
    """The log lost records that the state names; new records get their offsets."""

    @pytest.mark.parametrize("produced_before_the_first_fetch", [0, 5, 12])
    @pytest.mark.parametrize("restarts_before", [0, 1], ids=["first start", "second start"])
    async def test_after_a_loss_of_power_all_its_new_records_are_delivered(
        self, lab: Lab, restarts_before: int, produced_before_the_first_fetch: int
    ) -> None:
        for _ in range(restarts_before):
            await lab.restart()
        stage = await make_stage(lab)
        await stage.produce(10)
        member = stage.member()
        await member.take()
        await member.accept(0, 9)
        for topic in ("__share_group_state", "__consumer_offsets"):
            await flush_all_of(lab, topic)
        await lab.lose_power()
        if produced_before_the_first_fetch:
            await stage.produce(produced_before_the_first_fetch)
        first = await delivered(stage.member(2))
        await stage.produce(8)
        then = await delivered(stage.member(2))
        assert first + then == list(range(produced_before_the_first_fetch + 8))

    async def test_after_the_same_process_reopens_the_log_all_its_new_records_are_delivered(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files = stage.lab.filesystem
        topic = stage.lab.broker.metadata.image.topics_by_name["t"]
        await stage.produce(5)
        log = await stage.lab.broker.logs.open(topic, 0)
        await log.flush()
        await stage.produce(5)
        member = stage.member()
        await member.take()
        await member.accept(0, 9)
        path = f"{log.directory}/{0:020d}.log"
        files.sync_error, files.failing_suffix = errno.EIO, path
        with pytest.raises(LogOffline):
            await log.flush()
        files.sync_error = None
        files.files[path][:] = files.synced[path]
        with pytest.raises(LogOffline):
            await stage.lab.broker.logs.open(topic, 0)
        later(monkeypatch)
        await stage.lab.broker.logs.open(topic, 0)
        await stage.produce(7)
        assert await stage.member(2).take() == [(5, 11, 1)]


async def flush_all_of(lab: Lab, topic_name: str) -> None:
    """Makes the content of all logs of the topic survive a loss of power."""
    for name, index in await lab.broker.log_directory.partitions_on_disk():
        log = lab.broker.log_directory.find(name, index)
        if name == topic_name and log is not None:
            await log.flush()


async def delivered(member: ShareMember) -> list[int]:
    """The offsets that a new session gets and accepts."""
    begun = await member.fetch()
    await settle()
    acquired = [*begun.acquired, *await member.take()]
    offsets = [offset for first, last, _ in acquired for offset in range(first, last + 1)]
    if offsets:
        await member.accept(offsets[0], offsets[-1])
    await member.leave_session()
    return offsets


class TestUpkeep:
    async def test_old_records_are_deleted_and_the_state_stays(self) -> None:
        async with open_lab(**{SNAPSHOTS: "2"}) as lab:
            stage = await make_stage(lab)
            await stage.produce(20)
            member = stage.member()
            await member.take()
            for offset in range(0, 20, 2):
                await member.accept(offset, offset)
            assert state_log(stage).log_start_offset == 0
            await lab.advance(_INTERVAL_MS)
            await settle()
            assert state_log(stage).log_start_offset > 5
            await lab.crash()
            assert await stage.offsets() == (1, 10)
            # The locks have expired meanwhile.
            assert [first for first, _, _ in await stage.member().take()] == list(range(1, 20, 2))

    async def test_a_state_that_is_idle_does_not_hold_back_the_log(self) -> None:
        async with open_lab(
            **{SNAPSHOTS: "2", "share__coordinator__state__topic__num__partitions": "1"}
        ) as lab:
            idle = await make_stage(lab)
            await idle.produce(4)
            member = idle.member()
            await member.take()
            await member.accept(0, 3)
            await member.leave_session()
            busy_id = await lab.create_topic("busy")
            await idle.member().heartbeat(2, ["t", "busy"])
            await lab.advance(_INTERVAL_MS)
            before = state_log(idle).log_start_offset
            busy = idle.member(2)
            busy.partitions = [idle.partition._replace(topic_id=busy_id)]
            await busy.join("busy")
            for first in range(0, 12, 2):
                await lab.produce(busy_id, 2)
                await busy.take()
                await busy.accept(first, first + 1)
            await lab.advance(_INTERVAL_MS)
            await settle()
            assert state_log(idle).log_start_offset > before
            await lab.crash()
            assert await idle.offsets() == (4, 0)


async def test_an_undecided_start_is_decided_by_the_next_fetch(stage: Stage) -> None:
    await stage.produce(5)
    member = stage.member()
    await member.take()
    await member.accept(0, 4)
    await member.heartbeat(-1)
    partition = {"partition_index": 0, "start_offset": -1}
    altered = {"topic_name": "t", "partitions": [partition]}
    await stage.lab.admin.ask("alter_share_group_offsets", group_id=GROUP, topics=[altered])
    assert await stage.offsets() == (-1, -1)
    await stage.member(2).join("t")
    assert await stage.member(2).take() == [(0, 4, 1)]
