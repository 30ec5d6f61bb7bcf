"""A log directory that Apache Kafka 4.3.1 wrote, opened by this storage layer.

`vectors/kafka_4_3_1/recorded-0` was recorded once: two batches of five records with each codec, of idempotent
producers, then a transaction that was committed and one that was aborted, in two segments.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from barnabas.protocol.record_batch import Compression, iterate_headers
from barnabas.runtime.moment import Moment
from barnabas.storage.format.partition_metadata import decode_partition_metadata
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.topic_partition import TopicPartition
from tests.storage.log_building import (
    NOW_MS,
    append,
    max_timestamp,
    offset_for_timestamp,
    open_log,
    values_read,
)
from tests.storage.steady_filesystem import SteadyFileSystem

RECORDED = Path(__file__).parent / "vectors" / "kafka_4_3_1" / "recorded-0"
END_OFFSET = 58
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
VALUES = [
    *(
        f"{codec} {number} {record} ".ljust(40, ".")
        for codec in CODECS
        for number in range(2)
        for record in range(5)
    ),
    *(f"commit {record}" for record in range(3)),
    None,
    *(f"abort {record}" for record in range(3)),
    None,
]
"""The value at each offset; None for a transaction's marker."""


@pytest.fixture(params=[0, END_OFFSET], ids=["unclean", "clean"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PartitionLog]:
    """The log, opened without a recovery point, and opened as after a clean shutdown."""
    path = shutil.copytree(RECORDED, tmp_path / "recorded-0")
    log = await open_log(
        SteadyFileSystem(),
        directory=str(path),
        topic_partition=TopicPartition("recorded", 0),
        topic_id=decode_partition_metadata((path / "partition.metadata").read_bytes()),
        leader_epoch=1,
        moment=Moment(0, NOW_MS),
        recovery_point=request.param,
    )
    yield log
    await log.close()


async def test_every_record_is_read(log: PartitionLog) -> None:
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, END_OFFSET, END_OFFSET)
    values = [
        (offset, None if VALUES[offset] is None else (value or b"").decode())
        for offset, value in values_read(log)
    ]
    assert values == list(enumerate(VALUES))
    assert log.corrupt_batch_count == 0


async def test_the_codecs_are_those_that_were_asked_for(log: PartitionLog) -> None:
    data = b"".join(log.read(0, bytes_max=1 << 20).buffers)
    codecs = [header.compression for _, header in iterate_headers(data)][:10]
    assert codecs == [Compression[codec.upper()] for codec in CODECS for _ in range(2)]


async def test_kafkas_times_and_epochs_are_found(log: PartitionLog) -> None:
    assert await offset_for_timestamp(log, 1_700_000_001_002) == (1_700_000_001_002, 7)
    assert await max_timestamp(log) is not None
    assert log.leader_epoch_at(10) == 0
    assert log.end_offset_for_epoch(0) == (0, END_OFFSET)


async def test_kafkas_producers_are_known(log: PartitionLog) -> None:
    """The last batch of producer 4 is recognized as a repetition."""
    repeated = append(log, 5, producer_id=4, producer_epoch=0, base_sequence=5)
    assert (repeated.result().base_offset, repeated.result().last_offset) == (45, 49)
    following = append(log, 1, producer_id=4, producer_epoch=0, base_sequence=10)
    assert following.result().base_offset == END_OFFSET
