"""DescribeLogDirs: sizes of partitions with open and closed logs, and disk faults."""

import errno
from collections.abc import AsyncIterator

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Lab, open_lab
from tests.storage.memory_filesystem import MemoryFileSystem


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as opened:
        yield opened


async def sizes(lab: Lab, version: int = 5, topics: object = None) -> dict[tuple[str, int], int]:
    response = await lab.admin.ask("describe_log_dirs", version, topics=topics)
    (result,) = response.results
    assert (result.error_code, result.log_dir) == (ErrorCode.none, "/data")
    partitions = [(topic.name, one) for topic in result.topics for one in topic.partitions]
    assert all((one.offset_lag, one.is_future_key) == (0, False) for _, one in partitions)
    return {(name, one.partition_index): one.partition_size for name, one in partitions}


@pytest.mark.parametrize("version", range(1, 6))
async def test_all_partitions_are_described(lab: Lab, version: int) -> None:
    topic_id = await lab.create_topic("t", 2)
    await lab.produce(topic_id, 3)
    told = await sizes(lab, version)
    assert (told["t", 0] > 0, told["t", 1]) == (True, 0)
    assert not any(name == "__cluster_metadata" for name, _ in told)


async def test_only_requested_partitions_that_exist_are_described(lab: Lab) -> None:
    await lab.create_topic("t", 2)
    asked = [{"topic": "t", "partitions": [1, 7]}, {"topic": "nope", "partitions": [0]}]
    assert await sizes(lab, topics=asked) == {("t", 1): 0}
    assert await sizes(lab, topics=[]) == {}


async def test_sizes_are_known_before_a_log_is_opened(lab: Lab) -> None:
    topic_id = await lab.create_topic("t")
    await lab.produce(topic_id, 3)
    before = await sizes(lab)
    await lab.restart()
    assert (await sizes(lab))["t", 0] == before["t", 0]


async def test_the_space_of_the_disk_is_described(lab: Lab) -> None:
    (result,) = (await lab.admin.ask("describe_log_dirs")).results
    assert 0 < result.usable_bytes <= result.total_bytes


async def test_a_disk_that_cannot_be_read_is_an_error_of_the_directory(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    await lab.create_topic("t")
    monkeypatch.setattr(MemoryFileSystem, "disk_space", fail)
    response = await lab.admin.ask("describe_log_dirs", topics=None)
    assert response.error_code is ErrorCode.none
    (result,) = response.results
    assert (result.error_code, result.topics) == (ErrorCode.kafka_storage_error, ())


async def test_a_full_disk_is_an_error_of_the_directory_with_its_sizes(lab: Lab) -> None:
    await lab.create_topic("t")
    lab.broker.log_directory.full_disk.met(OSError(errno.ENOSPC, "no room"))
    (result,) = (await lab.admin.ask("describe_log_dirs")).results
    assert (result.error_code, [topic.name for topic in result.topics]) == (
        ErrorCode.kafka_storage_error,
        ["t"],
    )
    assert result.total_bytes > 0
