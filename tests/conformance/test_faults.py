"""Faults during normal work: slow and failing disks, disconnected clients, old logs. No data is lost."""

import errno
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember, fetched

OK = ErrorCode.none
DAY_MS = 86_400_000


async def begun(lab: Lab, *, partition_count: int = 1, record_count: int = 10) -> ShareMember:
    """A member of a group that begins at the start of topic `t`, with records in each partition."""
    topic_id = await lab.create_topic("t", partition_count)
    await lab.configure_group(GROUP, auto_offset_reset="earliest")
    for index in range(partition_count):
        await lab.produce(topic_id, record_count, partition=index)
    partitions = [TopicIdPartition(topic_id, index) for index in range(partition_count)]
    member = ShareMember(lab.client(), partitions)
    await member.join("t")
    return member


def topic_id_of(lab: Lab) -> UUID:
    return lab.broker.metadata.image.topics_by_name["t"].topic_id


async def test_groups_outlive_the_retention_of_records(lab: Lab) -> None:
    member = await begun(lab)
    await member.take()
    await member.acknowledge([(0, 9, ACCEPT)])
    await member.heartbeat(-1)
    lab.clock.now_ms += 8 * DAY_MS
    await lab.broker.log_directory.retain()
    await lab.crash()
    listed = await lab.admin.ask("list_groups", states_filter=[], types_filter=[])
    assert [group.group_id for group in listed.groups] == [GROUP]
    assert await lab.offsets(GROUP, TopicIdPartition(topic_id_of(lab), 0)) == (10, 0)


async def test_a_small_max_bytes_still_gives_a_batch_of_each_partition(lab: Lab) -> None:
    member = await begun(lab, partition_count=2, record_count=3)
    assert await member.take(max_bytes=1) == [(0, 2, 1), (0, 2, 1)]


async def test_directories_of_no_topic_are_set_aside_and_logged_in_one_line(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    for index in range(3):
        lab.filesystem.make_directory(f"/data/ghost-{index}")
    await lab.restart()
    names = [name for name in lab.filesystem.list_directory("/data") if name.startswith("ghost-")]
    assert len(names) == 3
    assert all(name.endswith("-stray") for name in names)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "ghost" in line]
    assert "directories of no topic set aside" in line


@pytest.mark.parametrize("is_killed", [True, False])
@pytest.mark.parametrize("is_made_again", [True, False])
async def test_a_deletion_that_was_answered_and_not_done_is_done_by_the_next_start(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, is_killed: bool, is_made_again: bool
) -> None:
    def refuse(_: str, __: str) -> None:
        raise OSError(errno.EIO, "the disk says no")

    topic_id = await lab.create_topic("t", 3)
    for index in range(3):
        await lab.produce(topic_id, 1, partition=index)
    with monkeypatch.context() as broken:
        broken.setattr(lab.filesystem, "rename", refuse)
        await lab.delete_topic("t")
        await settle()
    assert "t-0" in lab.filesystem.list_directory("/data")
    if is_made_again:
        await lab.create_topic("t", 3)
    await (lab.crash() if is_killed else lab.restart())
    await settle()
    assert not [name for name in lab.filesystem.list_directory("/data") if name.startswith("t-")]
    await lab.restart()
    assert lab.broker.metadata.image.deleted_topics == {}


async def test_old_records_are_deleted_after_a_restart_without_a_request_for_their_topic(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", segment__ms="1000", retention__ms="1000")
    await lab.produce(topic_id, 10)
    await lab.restart()
    lab.broker.idle_logs.begin_to_open()
    while (log := lab.broker.log_directory.find("t", 0)) is None:
        await settle()
    lab.clock.now_ms += DAY_MS
    await lab.broker.log_directory.retain()
    assert log.log_start_offset == 10


async def test_a_metadata_log_that_fails_ends_the_broker(lab: Lab) -> None:
    await lab.create_topic("t")
    with lab.broken_disk("__cluster_metadata-0"):
        created = await lab.admin.ask(
            "create_topics", topics=[{"name": "u", "num_partitions": 1, "replication_factor": 1}]
        )
    assert created.topics[0].error_code is ErrorCode.kafka_storage_error
    assert "__cluster_metadata-0" in str(await lab.broker.failed)


async def test_records_deleted_while_the_start_is_being_recorded_are_passed() -> None:
    async with open_lab(log__flush="always") as lab:
        member = await begun(lab)
        with lab.stalled_disk():
            pending = member.start_fetch(max_wait=500)
            await settle()
            topic = lab.broker.metadata.image.topics_by_name["t"]
            log = lab.broker.logs.get(topic, 0)
            assert log is not None
            log.delete_records(10)
        await settle()
        await lab.advance(500)
        assert set(fetched(pending.response()).errors) <= {OK}
        await lab.produce(topic.topic_id, 3)
        ((first, last, count),) = await member.take()
        assert (last - first, count) == (2, 1)


async def test_a_session_ends_with_its_last_request_though_its_client_is_gone() -> None:
    async with open_lab(log__flush="always") as lab:
        member = await begun(lab)
        await member.fetch(max_wait=0)  # Starts to record the group's start offset.
        await settle()
        assert await member.take() == [(0, 9, 1)]
        other = lab.client()
        member.client = other
        with lab.stalled_disk():
            pending = member.start_acknowledge([(0, 0, ACCEPT)], epoch=-1)
            await settle()
            assert not pending.done
            other.disconnect()
        await settle()
        assert len(lab.broker.share_sessions) == 0
        second = ShareMember(lab.client(), [TopicIdPartition(topic_id_of(lab), 0)], member_id="second")
        assert await second.take() == [(1, 9, 2)]
