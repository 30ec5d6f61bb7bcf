"""Deletions of many topics share the listings of the data directory."""

import asyncio

from barnabas.storage.files.shared_listing import SharedListing
from barnabas.storage.topic_partition import TopicPartition
from tests.storage.memory_filesystem import MemoryFileSystem


def _directory(*names: str) -> MemoryFileSystem:
    filesystem = MemoryFileSystem()
    filesystem.make_directory("/data")
    for name in names:
        filesystem.make_directory(f"/data/{name}")
    return filesystem


async def test_the_directories_of_each_topic_are_found() -> None:
    listing = SharedListing(_directory("a-0", "a-1", "b-0", "lost+found"), "/data")
    assert sorted(await listing.partitions_of("a")) == [TopicPartition("a", 0), TopicPartition("a", 1)]
    assert [*await listing.partitions_of("b")] == [TopicPartition("b", 0)]
    assert [*await listing.partitions_of("c")] == []


async def test_callers_at_the_same_time_share_a_listing() -> None:
    filesystem = _directory("a-0", "b-0")
    listing = SharedListing(filesystem, "/data")
    before = filesystem.run_count
    await asyncio.gather(*(listing.partitions_of(name) for name in "ab" * 50))
    assert filesystem.run_count == before + 1


async def test_a_caller_during_a_listing_gets_the_next_one() -> None:
    filesystem = _directory("a-0")
    listing = SharedListing(filesystem, "/data")
    filesystem.hold()
    first = asyncio.ensure_future(listing.partitions_of("a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.ensure_future(listing.partitions_of("b"))
    filesystem.make_directory("/data/b-0")
    filesystem.release()
    assert [*await first] == [TopicPartition("a", 0)]
    assert [*await second] == [TopicPartition("b", 0)]
