"""The metrics of the storage layer."""

from __future__ import annotations

import pytest

from barnabas.broker.metrics.storage_metrics import FLUSH_MS, publish_cleaner
from barnabas.protocol.identity import TopicIdPartition
from barnabas.runtime.metrics import Metrics
from barnabas.storage.directory.checkpoints import Checkpoints
from barnabas.storage.directory.cleaner import LogCleaner
from barnabas.storage.log_config import StorageConfig
from tests.conformance.harness import open_lab
from tests.conformance.share_member import ShareMember
from tests.storage.memory_filesystem import MemoryFileSystem


def test_the_cleaners_counts_are_published() -> None:
    cleaner = LogCleaner(list, Checkpoints(MemoryFileSystem(), "/data"), StorageConfig(), lambda: 0)
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
