"""A disk that is full or fails takes one partition offline, and the partition comes back without a restart.

For any operation that meets the fault: the partition answers KAFKA_STORAGE_ERROR, and its neighbour goes on
working. After the log has been reopened, through recovery, all confirmed data is there.
"""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import Lab, batch, open_lab, produce_fields, settle
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember, read_records

OK, STORAGE_ERROR = ErrorCode.none, ErrorCode.kafka_storage_error

FIRST_SEGMENT = f"t-0/{0:020d}.log"
pytestmark = with_log_store_only

LATER = 60.0
"""Seconds after which an offline log may be reopened."""


class Disk:
    """Two partitions on one disk; the first can be made to fail."""

    def __init__(self, lab: Lab, partitions: list[TopicIdPartition]) -> None:
        self.lab = lab
        self.partitions = partitions
        self.member = ShareMember(lab.client(), partitions)

    @property
    def log(self) -> PartitionLog:
        log = self.lab.broker.log_directory.find("t", 0)
        assert log is not None
        return log

    async def produce(self, partition: int) -> int:
        """One record; the error code."""
        fields = produce_fields(self.partitions[0].topic_id, partition, batch(1, self.lab.clock.wall_ms()))
        response = await self.lab.admin.ask("produce", **fields)
        code: int = response.responses[0].partition_responses[0].error_code
        return code

    async def fetch(self, partition: int) -> int:
        """A plain Fetch from the beginning; the error code."""
        code: int = (await self._fetched(partition)).error_code
        return code

    async def records(self, partition: int) -> list[tuple[int, bytes | None]]:
        """The records that a plain Fetch gets from the beginning, as (offset, value)."""
        return read_records((await self._fetched(partition)).records)

    async def _fetched(self, partition: int) -> Any:
        asked = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        topics = [{"topic_id": self.partitions[0].topic_id, "partitions": [asked]}]
        response = await self.lab.admin.ask(
            "fetch", max_wait=0, min_bytes=0, max_bytes=1 << 20, topics=topics
        )
        return response.responses[0].partitions[0]

    async def share_fetch(self) -> list[int]:
        """Of both partitions in a new share session; the error codes."""
        return (await self.member.fetch(epoch=0)).errors

    async def acknowledge(self, offset: int) -> list[int]:
        """In both partitions; the error codes."""
        accepted = {partition: [(offset, offset, ACCEPT)] for partition in self.partitions}
        return (await self.member.acknowledge(accepted)).errors

    @contextmanager
    def failing(self, fault: str, path_suffix: str, code: int = errno.ENOSPC) -> Generator[None]:
        """`fault` is the operation that fails (write, create, sync, read, replace) for paths with this end.

        END stands for the name of the segment that the first partition would begin now.
        """
        filesystem = self.lab.filesystem
        path_suffix = path_suffix.replace("END", f"{self.log.log_end_offset:020d}")
        setattr(filesystem, f"{fault}_error", code)
        filesystem.failing_suffix = path_suffix
        yield
        setattr(filesystem, f"{fault}_error", None)

    def pass_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + LATER)


async def disk_of(lab: Lab) -> Disk:
    """Ten records in each partition, all acquired by a member of a group."""
    topic_id = await lab.create_topic("t", 2, segment__ms="1000")
    await lab.configure_group(GROUP, auto_offset_reset="earliest")
    disk = Disk(lab, [TopicIdPartition(topic_id, index) for index in range(2)])
    await disk.member.join("t")
    for index in range(2):
        await lab.produce(topic_id, 10, partition=index)
    assert await disk.member.take() == [(0, 9, 1), (0, 9, 1)]
    return disk


async def flush(disk: Disk) -> None:
    await disk.lab.broker.log_directory.flush()


async def produce(disk: Disk) -> None:
    assert await disk.produce(0) == STORAGE_ERROR


async def roll(disk: Disk) -> None:
    disk.lab.clock.now_ms += 2000
    assert await disk.produce(0) == STORAGE_ERROR


async def acknowledge(disk: Disk) -> None:
    assert await disk.acknowledge(0) == [STORAGE_ERROR, OK]


Meet = Callable[[Disk], Awaitable[None]]


@pytest.mark.parametrize(
    ("fault", "path_suffix", "code", "meet"),
    [
        ("write", FIRST_SEGMENT, errno.ENOSPC, produce),
        ("write", FIRST_SEGMENT, errno.EIO, acknowledge),
        ("create", "t-0/END.log", errno.ENOSPC, roll),
        ("create", "t-0/END.timeindex", errno.ENOSPC, roll),
        ("write", f"t-0/{0:020d}.shareindex", errno.ENOSPC, flush),
        ("sync", FIRST_SEGMENT, errno.EIO, flush),
    ],
)
async def test_one_partition_fails_its_neighbour_works_and_it_comes_back(
    monkeypatch: pytest.MonkeyPatch, fault: str, path_suffix: str, code: int, meet: Meet
) -> None:
    async with open_lab() as lab:
        disk = await disk_of(lab)
        assert await disk.acknowledge(3) == [OK, OK]
        with disk.failing(fault, path_suffix, code):
            await meet(disk)
            assert (await disk.produce(0), await disk.produce(1)) == (STORAGE_ERROR, OK)
            assert (await disk.fetch(0), await disk.fetch(1)) == (STORAGE_ERROR, OK)
            assert await disk.acknowledge(5) == [STORAGE_ERROR, OK]
            assert await disk.share_fetch() == [STORAGE_ERROR, OK]
        disk.pass_time(monkeypatch)
        assert (await disk.produce(0), await disk.fetch(0)) == (OK, OK)
        taken = await disk.member.take(epoch=0)
        assert (0, 2, 1) in taken
        assert not any(first <= 3 <= last for first, last, _ in taken[:2])


async def test_a_write_that_was_cut_short_leaves_nothing_of_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_lab() as lab:
        disk = await disk_of(lab)
        lab.filesystem.written_before_error = 40
        with disk.failing("write", FIRST_SEGMENT), disk.failing("truncate", FIRST_SEGMENT):
            assert [await disk.produce(0), await disk.produce(0)] == [STORAGE_ERROR, STORAGE_ERROR]
        disk.pass_time(monkeypatch)
        assert await disk.produce(0) == OK
        assert [offset for offset, _ in await disk.records(0)] == [*range(10), 11]


@pytest.mark.usefixtures("records_only_in_files")
async def test_a_page_that_cannot_be_read_fails_that_read_alone() -> None:
    async with open_lab() as lab:
        disk = await disk_of(lab)
        with disk.failing("read", FIRST_SEGMENT, errno.EIO):
            assert (await disk.fetch(0), await disk.fetch(1)) == (STORAGE_ERROR, OK)
            assert await disk.produce(0) == OK
            assert await disk.share_fetch() == [STORAGE_ERROR, OK]
        assert await disk.fetch(0) == OK
        assert await disk.share_fetch() == [OK, OK]


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"])
async def test_checkpoint_files_that_cannot_be_written_only_make_recovery_longer(name: str) -> None:
    async with open_lab() as lab:
        disk = await disk_of(lab)
        with disk.failing("replace", name):
            with suppress(OSError):
                await lab.broker.log_directory.flush(high_watermarks=True)
            assert (await disk.produce(0), await disk.fetch(0)) == (OK, OK)
            assert await disk.acknowledge(3) == [OK, OK]
        await lab.crash()
        disk = Disk(lab, disk.partitions)
        assert (0, 2, 1) in await disk.member.take(epoch=0)


async def test_a_full_disk_refuses_new_topics_until_there_is_space_again() -> None:
    async with open_lab() as lab:
        disk = await disk_of(lab)
        lab.filesystem.written_before_error = 40
        with disk.failing("write", f"__cluster_metadata-0/{0:020d}.log"):
            topics = [{"name": "u", "num_partitions": 1, "replication_factor": 1}]
            created = await lab.admin.ask("create_topics", topics=topics)
            assert created.topics[0].error_code == STORAGE_ERROR
            assert (await disk.produce(0), await disk.fetch(0)) == (OK, OK)
            assert not lab.broker.failed.done()
        await lab.create_topic("u")
        await lab.crash()
        assert set(lab.broker.metadata.image.topics_by_name) >= {"t", "u"}


@pytest.mark.parametrize(
    ("fault", "code"), [("sync", errno.EIO), ("sync", errno.ENOSPC), ("write", errno.EIO)]
)
async def test_metadata_that_may_or_may_not_have_been_written_ends_the_broker(fault: str, code: int) -> None:
    async with open_lab() as lab:
        disk = await disk_of(lab)
        with disk.failing(fault, f"__cluster_metadata-0/{0:020d}.log", code):
            topics = [{"name": "u", "num_partitions": 1, "replication_factor": 1}]
            created = await lab.admin.ask("create_topics", topics=topics)
            assert created.topics[0].error_code == STORAGE_ERROR
        assert lab.broker.failed.done()


async def test_groups_that_cannot_be_recorded_are_refused_and_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_lab() as lab:
        disk = await disk_of(lab)
        await lab.broker.log_directory.flush()
        (offsets,) = [
            log.topic_partition.directory_name
            for log in lab.broker.log_directory.logs
            if log.topic_partition.topic == "__consumer_offsets"
        ]
        second = ShareMember(lab.client(), disk.partitions, member_id="member-2")
        with disk.failing("write", f"{offsets}/{0:020d}.log"):
            refused = await second.heartbeat(0, ["t"])
            assert refused.error_code in (
                ErrorCode.coordinator_not_available,
                ErrorCode.coordinator_load_in_progress,
            )
            assert await disk.acknowledge(0) == [OK, OK]
            assert (await disk.produce(0), await disk.fetch(0)) == (OK, OK)
        disk.pass_time(monkeypatch)
        while (await second.heartbeat(0, ["t"])).error_code != OK:
            await settle()
        described = await lab.admin.ask("share_group_describe", group_ids=[GROUP])
        assert len(described.groups[0].members) == 2
