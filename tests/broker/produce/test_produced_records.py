"""The settings of a topic for produced records, through a broker: codec, times and keys."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import Compression, read_header
from barnabas.protocol.records import Record, encode_records, iterate_records
from tests.conformance.harness import Lab, open_lab, produce_fields


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as opened:
        yield opened


def batch(*times_ms: int, codec: Compression = Compression.NONE, value: bytes = b"v" * 100) -> bytes:
    return encode_records(
        [Record(offset, time_ms, b"k", value) for offset, time_ms in enumerate(times_ms)],
        compression=codec,
    )


async def produce(lab: Lab, topic_id: UUID, records: bytes) -> Any:
    response = await lab.admin.ask("produce", **produce_fields(topic_id, 0, records))
    return response.responses[0].partition_responses[0]


async def stored(lab: Lab, topic_id: UUID) -> bytes:
    """All bytes that a consumer gets."""
    wanted = {"partition": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic_id": topic_id, "partitions": [wanted]}]
    response = await lab.admin.ask("fetch", max_bytes=1 << 20, session_epoch=-1, topics=topics)
    return bytes(response.responses[0].partitions[0].records)


@pytest.mark.parametrize(
    ("setting", "codec"),
    [
        ("uncompressed", Compression.NONE),
        ("gzip", Compression.GZIP),
        ("snappy", Compression.SNAPPY),
        ("lz4", Compression.LZ4),
        ("zstd", Compression.ZSTD),
        ("producer", Compression.GZIP),
    ],
)
async def test_batches_are_stored_in_the_topics_codec(lab: Lab, setting: str, codec: Compression) -> None:
    topic_id = await lab.create_topic(compression__type=setting)
    now_ms = lab.clock.wall_ms()
    answer = await produce(lab, topic_id, batch(now_ms, now_ms, codec=Compression.GZIP))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 0)
    records = await stored(lab, topic_id)
    assert read_header(records).compression is codec
    assert [record.value for record in iterate_records(records)] == [b"v" * 100] * 2


async def test_a_topics_new_codec_and_level_apply_to_new_batches(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    now_ms, value = lab.clock.wall_ms(), bytes(number * number % 251 for number in range(50_000))
    sizes: list[int] = []
    for level in ("1", "9"):
        configs = [
            {"name": "compression.type", "config_operation": 0, "value": "gzip"},
            {"name": "compression.gzip.level", "config_operation": 0, "value": level},
        ]
        resource = {"resource_type": 2, "resource_name": "t", "configs": configs}
        await lab.admin.ask("incremental_alter_configs", resources=[resource])
        before = len(await stored(lab, topic_id))
        await produce(lab, topic_id, batch(now_ms, value=value))
        sizes.append(len(await stored(lab, topic_id)) - before)
    assert sizes[1] < sizes[0]


async def test_a_batch_that_is_too_large_decompressed_is_refused(lab: Lab) -> None:
    topic_id = await lab.create_topic(compression__type="uncompressed", max__message__bytes="1000")
    large = batch(lab.clock.wall_ms(), codec=Compression.ZSTD, value=bytes(5000))
    assert (await produce(lab, topic_id, large)).error_code is ErrorCode.message_too_large


async def test_times_too_far_back_are_refused_one_by_one(lab: Lab) -> None:
    topic_id = await lab.create_topic(message__timestamp__before__max__ms="5000")
    now_ms = lab.clock.wall_ms()
    answer = await produce(lab, topic_id, batch(now_ms, now_ms - 5001, now_ms - 5000))
    assert answer.error_code is ErrorCode.invalid_timestamp
    assert [one.batch_index for one in answer.record_errors] == [1]
    assert (await produce(lab, topic_id, batch(now_ms - 5000))).error_code is ErrorCode.none


async def test_times_in_the_future_are_named_too(lab: Lab) -> None:
    topic_id = await lab.create_topic(message__timestamp__after__max__ms="5000")
    now_ms = lab.clock.wall_ms()
    answer = await produce(lab, topic_id, batch(now_ms, now_ms + 5001))
    assert answer.error_code is ErrorCode.invalid_timestamp
    assert [one.batch_index for one in answer.record_errors] == [1]


async def test_segments_are_not_preallocated(lab: Lab) -> None:
    topic = {
        "name": "t",
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": "preallocate", "value": "true"}],
    }
    response = await lab.admin.ask("create_topics", topics=[topic])
    assert response.topics[0].error_code is ErrorCode.invalid_config
    assert response.topics[0].error_message == (
        "Invalid value true for configuration preallocate: Segments are not preallocated by this broker"
    )
