"""Batches whose records contradict the header are refused, and nothing is appended."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.protocol.compression import compress
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import Compression, is_checksum_valid, read_header
from barnabas.protocol.records import iterate_records
from tests.broker.produce.odd_batches import batch_of, compressed
from tests.conformance.harness import Lab, open_lab, produce_fields
from tests.protocol.record_walk.test_record_walk import HARMLESS, MALFORMED
from tests.protocol.record_walk.walkers import record

CODECS = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
INT64_MAX = 2**63 - 1
LZ4_FRAME: Final[Any] = import_module("lz4.frame")


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as opened:
        yield opened


@pytest.fixture
async def topic_id(lab: Lab) -> UUID:
    return await lab.create_topic()


async def produce(lab: Lab, topic_id: UUID, records: bytes) -> Any:
    response = await lab.admin.ask("produce", **produce_fields(topic_id, 0, records))
    return response.responses[0].partition_responses[0]


@pytest.mark.parametrize("codec", CODECS)
async def test_malformed_records_are_refused_and_named(lab: Lab, topic_id: UUID, codec: Compression) -> None:
    for name, (body, record_count, _, index) in MALFORMED.items():
        batch = compressed(compress(codec, body), codec, record_count)
        answer = await produce(lab, topic_id, batch)
        assert answer.error_code is ErrorCode.invalid_record, name
        named = [one.batch_index for one in answer.record_errors]
        assert named == ([index] if index < record_count else []), name
        assert f"The batch of {record_count} records" in answer.error_message
    assert (await produce(lab, topic_id, batch_of(record()))).base_offset == 0


@pytest.mark.parametrize("codec", CODECS)
async def test_oddities_that_do_no_harm_are_accepted(lab: Lab, topic_id: UUID, codec: Compression) -> None:
    for name, body in HARMLESS.items():
        answer = await produce(lab, topic_id, compressed(compress(codec, body), codec))
        assert answer.error_code is ErrorCode.none, name


BODY = b"".join(record(index, value=b"v" * 90) for index in range(1000))
WRONG_CHECKSUM = bytearray(LZ4_FRAME.compress(BODY, block_linked=False, content_checksum=True))
WRONG_CHECKSUM[-1] ^= 1

BADLY_PACKED: dict[str, tuple[Compression, bytes]] = {
    **{
        f"{codec.name} {name}": (codec, packed)
        for codec in CODECS[1:]
        for name, packed in {
            "garbage": b"\xff" * 40,
            "nothing": b"",
            "cut in half": compress(codec, BODY)[: len(compress(codec, BODY)) // 2],
            "cut by a byte": compress(codec, BODY)[:-1],
            "with bytes behind its end": compress(codec, BODY) + b"\xff" * 9,
            "twice": compress(codec, BODY) * 2,
        }.items()
    },
    "gzip in two members": (Compression.GZIP, gzip.compress(BODY[:1000]) + gzip.compress(BODY[1000:])),
    "LZ4 with blocks that refer to each other": (
        Compression.LZ4,
        LZ4_FRAME.compress(BODY, block_linked=True),
    ),
    "LZ4 with a wrong checksum": (Compression.LZ4, bytes(WRONG_CHECKSUM)),
    "LZ4 with a wrong header checksum": (
        Compression.LZ4,
        compress(Compression.LZ4, BODY)[:6] + b"\0" + compress(Compression.LZ4, BODY)[7:],
    ),
}


@pytest.mark.parametrize("name", BADLY_PACKED)
async def test_records_that_clients_cannot_decompress_are_refused(
    lab: Lab, topic_id: UUID, name: str
) -> None:
    codec, packed = BADLY_PACKED[name]
    answer = await produce(lab, topic_id, compressed(packed, codec, 1000))
    assert answer.error_code is ErrorCode.invalid_record
    assert answer.error_message.startswith("The batch of 1000 records ")


@pytest.mark.parametrize(
    "options",
    [{}, {"content_checksum": True}, {"block_checksum": True}, {"store_size": False}, {"block_size": 7}],
)
async def test_lz4_frames_of_every_kind_that_kafka_reads_are_accepted(
    lab: Lab, topic_id: UUID, options: dict[str, Any]
) -> None:
    packed = LZ4_FRAME.compress(BODY, block_linked=False, **options)
    answer = await produce(lab, topic_id, compressed(packed, Compression.LZ4, 1000))
    assert answer.error_code is ErrorCode.none


@pytest.mark.parametrize(
    ("base_ms", "delta_ms"),
    [(-(2**63), 0), (INT64_MAX, 0), (INT64_MAX, INT64_MAX), (0, INT64_MAX), (0, -(2**63)), (0, 10**15)],
)
async def test_absurd_times_are_refused(lab: Lab, topic_id: UUID, base_ms: int, delta_ms: int) -> None:
    batch = batch_of(record() + record(1, delta_ms), 2, base_timestamp_ms=base_ms)
    answer = await produce(lab, topic_id, batch)
    assert answer.error_code is ErrorCode.invalid_timestamp
    assert answer.record_errors[-1].batch_index == 1


async def test_absurd_times_are_ignored_if_the_broker_sets_them(lab: Lab) -> None:
    topic_id = await lab.create_topic(message__timestamp__type="LogAppendTime")
    answer = await produce(lab, topic_id, batch_of(record(0, -(2**63)), base_timestamp_ms=-(2**63)))
    assert answer.error_code is ErrorCode.none


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
@pytest.mark.parametrize("stated_ms", [-(2**63), -1, 5, INT64_MAX])
async def test_a_wrong_maximum_timestamp_in_the_header_is_corrected(
    lab: Lab, topic_id: UUID, stated_ms: int, codec: Compression
) -> None:
    now_ms = lab.clock.wall_ms()
    body = compress(codec, record() + record(1, 7) + record(2, 3))
    batch = batch_of(body, 3, base_timestamp_ms=now_ms, max_timestamp_ms=stated_ms, attributes=codec)
    assert (await produce(lab, topic_id, batch)).error_code is ErrorCode.none
    log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_name["t"], 0)
    assert log is not None
    stored = b"".join(log.read(0, bytes_max=1 << 20).buffers)
    header = read_header(stored)
    assert is_checksum_valid(stored, 0, header)
    assert header.max_timestamp_ms == now_ms + 7
    assert [one.timestamp_ms - now_ms for one in iterate_records(stored)] == [0, 7, 3]


@pytest.mark.parametrize("codec", CODECS)
async def test_records_too_large_after_decompression_are_named(lab: Lab, codec: Compression) -> None:
    topic_id = await lab.create_topic(max__decompressed__message__bytes="50")
    for value_bytes in (43, 44):
        large = record(1, value=bytes(value_bytes))
        assert len(large) - 1 == 7 + value_bytes
        answer = await produce(
            lab, topic_id, compressed(compress(codec, record() + large), codec, record_count=2)
        )
        is_refused = codec is not Compression.NONE and value_bytes == 44
        assert answer.error_code is (ErrorCode.invalid_record if is_refused else ErrorCode.none)
        assert [one.batch_index for one in answer.record_errors] == ([1] if is_refused else [])


async def test_the_bound_on_decompressed_records_can_be_changed_for_all_topics(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    configs = [{"name": "max.decompressed.message.bytes", "config_operation": 0, "value": "50"}]
    await lab.admin.ask(
        "incremental_alter_configs",
        resources=[{"resource_type": 4, "resource_name": "", "configs": configs}],
    )
    batch = compressed(compress(Compression.LZ4, record(value=bytes(60))), Compression.LZ4)
    assert (await produce(lab, topic_id, batch)).error_code is ErrorCode.invalid_record


@pytest.mark.parametrize(
    ("value", "reason"),
    [("0", "Value must be at least 1"), ("2147483640", "Value must be no more than 2147483639")],
)
async def test_the_bound_on_decompressed_records_has_bounds_as_in_kafka(
    lab: Lab, value: str, reason: str
) -> None:
    topic = {
        "name": "t",
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": "max.decompressed.message.bytes", "value": value}],
    }
    response = await lab.admin.ask("create_topics", topics=[topic])
    assert response.topics[0].error_message == (
        f"Invalid value {value} for configuration max.decompressed.message.bytes: {reason}"
    )
