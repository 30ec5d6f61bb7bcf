"""The metrics of the storage layer."""

from __future__ import annotations

import asyncio
import errno

import pytest

from barnabas.broker.metrics.storage_metrics import FLUSH_MS, OFFLINE_LOGS, publish_cleaner
from barnabas.protocol.identity import TopicIdPartition
from barnabas.runtime.metrics import Metrics
from barnabas.runtime.moment import Moment
from barnabas.storage.directory.checkpoints import Checkpoints
from barnabas.storage.directory.cleaner import LogCleaner
from barnabas.storage.files.full_disk import QUIET_SECONDS
from barnabas.storage.filesystem import DiskSpace
from barnabas.storage.log_config import StorageConfig
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.harness import open_lab
from tests.conformance.share_member import ShareMember
from tests.storage.memory_filesystem import MemoryFileSystem

DISK = "barnabas_disk_"


def test_the_cleaners_counts_are_published() -> None:
    checkpoints = Checkpoints(MemoryFileSystem(), "/data")
    cleaner = LogCleaner(list, checkpoints, StorageConfig(), lambda: Moment(0, 0))
    metrics = Metrics()
    publish_cleaner(metrics, cleaner)
    cleaner.run_count, cleaner.cleaned_bytes = 3, 1_000
    assert metrics.snapshot() == {
        "barnabas_cleaner_cleaned_bytes_total": 1_000,
        "barnabas_cleaner_runs_total": 3,
        "barnabas_cleaner_uncleanable_partitions": 0,
    }


async def test_a_broker_publishes_them() -> None:
    async with open_lab() as lab:
        snapshot = lab.broker.metrics.snapshot()
        assert (snapshot["barnabas_cleaner_runs_total"], snapshot["barnabas_corrupt_batches"]) == (0, 0)


async def test_the_space_of_the_disk_is_looked_up_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    space = DiskSpace(0, 0)

    def present(*_: object) -> DiskSpace:
        return space

    monkeypatch.setattr(MemoryFileSystem, "disk_space", present)
    async with open_lab() as lab:
        for space in (DiskSpace(1_000, 400), DiskSpace(1_000, 300), DiskSpace(2_000, 1_300)):
            snapshot = lab.broker.metrics.snapshot()
            assert (snapshot[f"{DISK}size_bytes"], snapshot[f"{DISK}free_bytes"]) == space


async def test_a_disk_that_cannot_be_asked_has_no_series_until_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> DiskSpace:
        raise OSError(errno.EIO, "no")

    async with open_lab() as lab:
        with monkeypatch.context() as failing:
            failing.setattr(MemoryFileSystem, "disk_space", fail)
            disk = {name: value for name, value in lab.broker.metrics.snapshot().items() if DISK in name}
            assert disk == {f"{DISK}full": 0}
        assert lab.broker.metrics.snapshot()[f"{DISK}size_bytes"] > 0


async def test_a_full_disk_is_published_until_it_has_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t")
        await lab.produce(topic_id, 1)
        assert lab.broker.metrics.snapshot()[f"{DISK}full"] == 0
        lab.filesystem.write_error = errno.ENOSPC
        with pytest.raises(AssertionError, match="kafka_storage_error"):
            await lab.produce(topic_id, 1)
        assert lab.broker.metrics.snapshot()[f"{DISK}full"] == 1
        lab.filesystem.write_error = None
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + QUIET_SECONDS)
        await lab.broker.log_directory.full_disk.look_again()
        assert lab.broker.metrics.snapshot()[f"{DISK}full"] == 0


async def test_a_partition_whose_log_is_offline_counts_until_it_is_open_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reopen_at_once(monkeypatch)
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t", partition_count=2)
        for partition in (0, 1):
            await lab.produce(topic_id, 1, partition=partition)
        assert lab.broker.metrics.snapshot()[OFFLINE_LOGS] == 0
        with lab.broken_disk("t-0"), pytest.raises(AssertionError, match="kafka_storage_error"):
            await lab.produce(topic_id, 1)
        assert lab.broker.metrics.snapshot()[OFFLINE_LOGS] == 1
        await lab.produce(topic_id, 1, partition=1)
        assert lab.broker.metrics.snapshot()[OFFLINE_LOGS] == 1
        await lab.produce(topic_id, 1)
        assert lab.broker.metrics.snapshot()[OFFLINE_LOGS] == 0


async def test_share_state_offsets_are_published_by_partition_and_group() -> None:
    async with open_lab() as lab:
        partition = TopicIdPartition(await lab.create_topic(partition_count=2), 0)
        await lab.produce(partition.topic_id, 1)
        for group_id in ("first", "second"):
            await lab.configure_group(group_id, auto_offset_reset="earliest")
            member = ShareMember(lab.client(), [partition], group_id=group_id)
            await member.join("t")
            await member.fetch(max_wait=0)
        snapshot = lab.broker.metrics.snapshot()
    assert {
        name: value for name, value in snapshot.items() if name.startswith("barnabas_") and "offset{" in name
    } == {
        "barnabas_earliest_share_offset{partition=0,topic=t}": 1,
        "barnabas_share_checkpoint_offset{group=first,partition=0,topic=t}": 1,
        "barnabas_share_checkpoint_offset{group=second,partition=0,topic=t}": 2,
    }


@pytest.mark.parametrize("flush", ["always", "never"])
async def test_flushes_are_counted_once_for_each_log(flush: str) -> None:
    async with open_lab(log__flush=flush) as lab:
        topic_id = await lab.create_topic(partition_count=2)
        before = lab.broker.metrics.snapshot()[f"{FLUSH_MS}_count"]
        await lab.produce(topic_id, 1)
        await lab.produce(topic_id, 1, partition=1)
        after = lab.broker.metrics.snapshot()[f"{FLUSH_MS}_count"]
        assert after - before == (2 if flush == "always" else 0)
        for log in lab.broker.log_directory.logs:
            await log.flush()
        assert lab.broker.metrics.snapshot()[f"{FLUSH_MS}_count"] - after >= 2
