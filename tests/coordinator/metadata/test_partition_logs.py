"""The open logs of a broker: opened together, deleted, created again, and reopened after a fault."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Iterator
from uuid import UUID

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from barnabas.coordinator.metadata.image import MetadataImage, Partition, Topic
from barnabas.coordinator.metadata.partition_logs import OPENED_AT_ONCE_MAX, PartitionLogs
from barnabas.protocol.identity import Place, TopicIdPartition
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import LogClosed, LogOffline
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig, StorageConfig
from tests.broker.network.edge_fakes import settle
from tests.storage.log_building import append, values_read
from tests.storage.memory_filesystem import MemoryFileSystem

LEADER_EPOCH = 3


class Stage:
    """A data directory, the existing topics, and the calls of the listeners."""

    def __init__(self, filesystem: MemoryFileSystem, directory: LogDirectory) -> None:
        self.filesystem = filesystem
        self.directory = directory
        self.image = MetadataImage()
        self.told: list[tuple[str, TopicIdPartition | Place]] = []
        self.opened: list[tuple[str, int]] = []
        self.config = LogConfig()
        self.logs = PartitionLogs(
            directory,
            self.image,
            config_of=lambda _: self.config,
            leader_epoch=LEADER_EPOCH,
            on_opened=lambda topic, index, _: self.opened.append((topic.name, index)),
            on_moved=lambda place, _: self.told.append(("moved", place)),
            on_pinned=lambda partition, _, __: self.told.append(("pinned", partition)),
            on_replaced=lambda partition: self.told.append(("replaced", partition)),
        )

    def topic(self, number: int = 1, name: str = "t", partition_count: int = 2) -> Topic:
        """A topic that exists from now on."""
        partitions = [
            Partition(
                index=index,
                leader=1,
                leader_epoch=LEADER_EPOCH,
                partition_epoch=0,
                replicas=(1,),
                isr=(1,),
                directories=(),
            )
            for index in range(partition_count)
        ]
        topic = Topic(name, UUID(int=number), partitions)
        self.image.topics_by_id[topic.topic_id] = topic
        self.image.topics_by_name[name] = topic
        return topic

    def delete(self, topic: Topic) -> None:
        del self.image.topics_by_id[topic.topic_id]
        self.image.deleted_topics[topic.topic_id] = topic.name
        self.logs.delete(topic)

    def break_disk(self, log: PartitionLog) -> None:
        """Take the log offline by a write that fails."""
        self.filesystem.write_error, self.filesystem.failing_suffix = errno.EIO, ".log"
        assert append(log).error is not None
        self.filesystem.write_error = None


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    filesystem = MemoryFileSystem()
    directory = await LogDirectory.open(
        filesystem,
        "/data",
        node_id=1,
        wall_ms=lambda: 1000,
        storage=StorageConfig(reopen_backoff_ms=0),
    )
    stage = Stage(filesystem, directory)
    yield stage
    await stage.logs.close()
    await directory.close()


async def test_a_log_is_there_once_it_is_opened(stage: Stage) -> None:
    topic = stage.topic()
    assert stage.logs.get(topic, 0) is None
    opened = await stage.logs.open(topic, 0)
    assert stage.logs.get(topic, 0) is opened
    assert await stage.logs.open(topic, 0) is opened
    assert stage.logs.get(topic, 1) is None
    assert opened.leader_epoch == LEADER_EPOCH


async def test_concurrent_callers_get_the_same_log(stage: Stage) -> None:
    topic = stage.topic()
    opened = await asyncio.gather(*[stage.logs.open(topic, 0) for _ in range(5)])
    assert len(set(map(id, opened))) == 1


async def test_a_log_that_cannot_be_opened_keeps_none_of_many_closed(stage: Stage) -> None:
    topic = stage.topic(partition_count=3 * OPENED_AT_ONCE_MAX)
    everything = [(topic, index) for index in range(len(topic.partitions))]
    stage.filesystem.create_error, stage.filesystem.failing_suffix = errno.EIO, "t-5/00000000000000000000.log"
    opening = stage.logs.open_all(everything)
    assert opening is not None
    await opening
    assert [index for topic, index in everything if stage.logs.get(topic, index) is None] == [5]


async def test_a_caller_that_gives_up_waiting_does_not_affect_the_others(stage: Stage) -> None:
    topic = stage.topic()
    impatient = asyncio.ensure_future(stage.logs.open(topic, 0))
    patient = asyncio.ensure_future(stage.logs.open(topic, 0))
    await asyncio.sleep(0)
    impatient.cancel()
    assert stage.logs.get(topic, 0) is None
    assert await patient is stage.logs.get(topic, 0)


async def test_nothing_is_to_be_waited_for_where_all_are_open(stage: Stage) -> None:
    topic = stage.topic()
    opening = stage.logs.open_all([(topic, 0), (topic, 1)])
    assert opening is not None
    await opening
    assert stage.logs.open_all([(topic, 0), (topic, 1)]) is None


async def test_partitions_that_do_not_exist_are_passed_over(stage: Stage) -> None:
    assert stage.logs.open_all([(stage.topic(), 2), (stage.topic(), -1)]) is None


async def test_the_listener_hears_of_every_log_with_its_partition(stage: Stage) -> None:
    topic = stage.topic()
    append(await stage.logs.open(topic, 1))
    assert stage.told == [("moved", (topic.topic_id.int, 1))]


async def test_a_log_that_went_offline_is_opened_anew_and_replaces_it(stage: Stage) -> None:
    topic = stage.topic()
    log = await stage.logs.open(topic, 0)
    append(log)
    stage.break_disk(log)
    assert stage.logs.get(topic, 0) is None
    again = await stage.logs.open(topic, 0)
    assert again is not log
    assert [offset for offset, _ in values_read(again)] == [0]
    assert ("replaced", TopicIdPartition(topic.topic_id, 0)) in stage.told
    assert [stage.logs.was_replaced(TopicIdPartition(topic.topic_id, index)) for index in (0, 1)] == [
        True,
        False,
    ]


async def test_a_log_that_cannot_be_opened_is_passed_over_and_told_by_open(stage: Stage) -> None:
    topic = stage.topic()
    log = await stage.logs.open(topic, 0)
    append(log)
    stage.break_disk(log)
    stage.filesystem.read_error = errno.EIO
    opening = stage.logs.open_all([(topic, 0)])
    assert opening is not None
    await opening
    assert stage.logs.get(topic, 0) is None
    with pytest.raises(LogOffline):
        await stage.logs.open(topic, 0)
    stage.filesystem.read_error = None


class TestWhyALogIsNotOpenIsLogged:
    @pytest.fixture
    def lines(self) -> Iterator[list[EventDict]]:
        with capture_logs() as lines:
            yield lines

    @pytest.fixture
    async def topic(self, stage: Stage) -> Topic:
        stage.directory.storage = StorageConfig(reopen_backoff_ms=60_000)
        return stage.topic()

    @staticmethod
    async def ask(stage: Stage, topic: Topic) -> None:
        """As requests do that find the log not open."""
        for _ in range(3):
            opening = stage.logs.open_all([(topic, 0)])
            if opening is not None:
                await opening

    @staticmethod
    def pass_time(monkeypatch: pytest.MonkeyPatch) -> None:
        """A minute, after which it is opened again."""
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + 60)

    async def test_once_though_on_a_full_disk_it_opens_again_and_again(
        self, stage: Stage, topic: Topic, lines: list[EventDict], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(3):
            stage.break_disk(await stage.logs.open(topic, 0))
            await self.ask(stage, topic)
            self.pass_time(monkeypatch)
        assert [(line["event"], line["topic"], line["reason"]) for line in lines] == [
            ("log not opened", "t", "t-0: [Errno 5] the disk says no")
        ]

    async def test_anew_once_something_was_written(
        self, stage: Stage, topic: Topic, lines: list[EventDict], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(2):
            log = await stage.logs.open(topic, 0)
            append(log)
            stage.break_disk(log)
            await self.ask(stage, topic)
            self.pass_time(monkeypatch)
        assert [line["event"] for line in lines] == ["log not opened"] * 2

    async def test_once_for_a_log_that_cannot_be_created_for_any_caller(
        self, stage: Stage, topic: Topic, lines: list[EventDict], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage.filesystem.create_error = errno.EIO
        for _ in range(3):
            await self.ask(stage, topic)
            with pytest.raises(LogOffline):
                await stage.logs.open(topic, 0)
            self.pass_time(monkeypatch)
        assert [(line["event"], line["reason"]) for line in lines] == [
            (
                "log not opened",
                "t-0 cannot be opened: [Errno 5] the disk says no: '/data/t-0/partition.metadata.tmp'",
            )
        ]

    async def test_not_at_all_on_a_full_disk_which_has_a_line_of_its_own(
        self, stage: Stage, topic: Topic, lines: list[EventDict]
    ) -> None:
        stage.filesystem.create_error = errno.ENOSPC
        await self.ask(stage, topic)
        assert [(line["event"], line["directory"]) for line in lines] == [
            ("the disk is full: records, acknowledgements and commits are refused", "/data")
        ]

    async def test_not_at_all_where_its_topic_is_gone(
        self, stage: Stage, topic: Topic, lines: list[EventDict]
    ) -> None:
        stage.delete(topic)
        await self.ask(stage, topic)
        assert lines == []


class TestDeletion:
    async def test_removes_the_files(self, stage: Stage) -> None:
        topic = stage.topic()
        append(await stage.logs.open(topic, 0))
        stage.delete(topic)
        assert stage.logs.get(topic, 0) is None
        await stage.logs.close()
        assert await stage.directory.partitions_on_disk() == []

    async def test_a_topic_of_the_same_name_waits_for_it_and_begins_empty(self, stage: Stage) -> None:
        old = stage.topic(1)
        append(await stage.logs.open(old, 0))
        stage.delete(old)
        new = stage.topic(2)
        log = await stage.logs.open(new, 0)
        assert (log.topic_id, log.log_end_offset) == (new.topic_id, 0)
        append(log)
        assert stage.logs.get(new, 0) is log
        await settle()
        assert stage.filesystem.exists("/data/t-0")

    async def test_works_again_and_again(self, stage: Stage) -> None:
        for number in range(1, 5):
            topic = stage.topic(number)
            append(await stage.logs.open(topic, 0))
            stage.delete(topic)
        await stage.logs.close()
        assert await stage.directory.partitions_on_disk() == []

    async def test_the_metadata_remembers_it_until_the_logs_are_gone(self, stage: Stage) -> None:
        topic = stage.topic()
        append(await stage.logs.open(topic, 0))
        stage.filesystem.hold()
        stage.delete(topic)
        await settle()
        assert topic.topic_id in stage.image.deleted_topics
        stage.filesystem.release()
        await stage.logs.close()
        assert stage.image.deleted_topics == {}

    async def test_that_fails_is_remembered(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: str) -> None:
            raise OSError(errno.EIO, "the disk forgot")

        topic = stage.topic()
        append(await stage.logs.open(topic, 0))
        monkeypatch.setattr(stage.filesystem, "sync_directory", refuse)
        stage.delete(topic)
        await settle()
        assert topic.topic_id in stage.image.deleted_topics
        monkeypatch.undo()

    async def test_a_log_that_is_opened_meanwhile_is_the_deletions(self, stage: Stage) -> None:
        topic = stage.topic()
        stage.filesystem.hold()
        opening = asyncio.ensure_future(stage.logs.open(topic, 0))
        await settle()
        stage.delete(topic)
        stage.filesystem.release()
        with pytest.raises(LogClosed):
            await opening
        await stage.logs.close()
        assert await stage.directory.partitions_on_disk() == []

    async def test_a_log_of_a_topic_that_is_gone_is_not_opened(self, stage: Stage) -> None:
        topic = stage.topic()
        stage.delete(topic)
        with pytest.raises(LogClosed):
            await stage.logs.open(topic, 0)
        assert await stage.directory.partitions_on_disk() == []


async def test_settings_reach_the_open_logs(stage: Stage) -> None:
    topic = stage.topic()
    log = await stage.logs.open(topic, 0)
    stage.config = LogConfig(retention_ms=5)
    stage.logs.reconfigure([topic])
    assert log.config.retention_ms == 5
