"""Produced batches are checked and recompressed at once, or off the loop and in order."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from barnabas.broker.produce.inline_budget import INLINE_UNPACKED_BYTES_MAX
from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import Compression, iterate_headers
from barnabas.protocol.record_walk import RECORD_ERRORS_MAX
from barnabas.protocol.records import Record, encode_records
from tests.broker.produce.odd_batches import ZSTD_BOMB, compressed
from tests.conformance.harness import Lab, batch, open_lab, produce_fields


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as opened:
        yield opened


async def test_others_are_served_during_the_check(lab: Lab) -> None:
    packed = await lab.create_topic("packed", compression__type="gzip")
    plain = await lab.create_topic("plain")
    await lab.produce(packed, 1)
    await lab.produce(plain, 1)
    records = batch(1, lab.clock.wall_ms())
    with lab.stalled_disk():
        waiting = lab.admin.send("produce", **produce_fields(packed, 0, records))
        other = lab.client("other").send("produce", **produce_fields(plain, 0, records))
        assert (other.done, waiting.done) == (True, False)
    response = await lab.answered(waiting)
    assert response.responses[0].partition_responses[0].base_offset == 1


async def test_requests_of_one_connection_keep_their_order_and_their_sequences(lab: Lab) -> None:
    topic_id = await lab.create_topic(compression__type="gzip")
    await lab.produce(topic_id, 1)
    now_ms = lab.clock.wall_ms()
    with lab.stalled_disk():
        pending = [
            lab.admin.send(
                "produce",
                **produce_fields(
                    topic_id, 0, batch(2, now_ms, producer_id=7, producer_epoch=0, base_sequence=sequence)
                ),
            )
            for sequence in (0, 2, 4)
        ]
    for base_offset, one in zip((1, 3, 5), pending, strict=True):
        answer = (await lab.answered(one)).responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (ErrorCode.none, base_offset)
    log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_name["t"], 0)
    assert log is not None
    headers = [header for _, header in iterate_headers(b"".join(log.read(1, bytes_max=1 << 20).buffers))]
    assert [(header.compression, header.base_sequence) for header in headers] == [
        (Compression.GZIP, sequence) for sequence in (0, 2, 4)
    ]


@pytest.mark.parametrize("version", [6, 12])
async def test_a_batch_with_the_topics_codec_is_only_appended(lab: Lab, version: int) -> None:
    """Also a batch that the client could not have sent in this form."""
    await lab.create_topic(compression__type="zstd")
    records = batch(1, lab.clock.wall_ms())
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    response = await lab.admin.ask("produce", version, acks=-1, topic_data=topics)
    assert response.responses[0].partition_responses[0].error_code is ErrorCode.none


async def test_batches_for_topics_without_a_codec_are_appended_at_once(lab: Lab) -> None:
    await lab.create_topic("packed", compression__type="lz4")
    topic_id = await lab.create_topic("plain")
    await lab.produce(topic_id, 1)
    pending = lab.admin.send("produce", **produce_fields(topic_id, 0, batch(1, lab.clock.wall_ms())))
    assert pending.done


MANY = 4_000
"""Few records; but if they are compressed, they exceed the budget of bytes that are decompressed at once."""
HOUR_MS = 60 * 60 * 1000


def records_of(
    lab: Lab,
    count: int,
    *,
    ahead_ms: int = 0,
    key: bytes | None = b"k",
    value: bytes = b"",
    compression: Compression = Compression.LZ4,
    base_sequence: int = -1,
) -> bytes:
    """The records; with a sequence they are from producer 7."""
    time_ms = lab.clock.wall_ms() + ahead_ms
    records = [Record(offset, time_ms, key, value) for offset in range(count)]
    producer_id, producer_epoch = (7, 0) if base_sequence >= 0 else (-1, -1)
    return encode_records(
        records,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


async def outcome(lab: Lab, pending: Any) -> Any:
    return (await lab.answered(pending)).responses[0].partition_responses[0]


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.broker.produce.inline_budget.InlineBudget._records", FEW)


FEW = 100
VALUE = bytes(100)


@pytest.mark.usefixtures("small_budget")
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
@pytest.mark.interpreted
async def test_few_records_are_checked_at_once_and_many_off_the_loop(
    lab: Lab, compression: Compression
) -> None:
    topic_id = await lab.create_topic()
    await outcome(lab, lab.admin.send("produce", **produce_fields(topic_id, 0, records_of(lab, 1))))
    few, many = (records_of(lab, count, compression=compression) for count in (FEW, FEW + 1))
    with lab.stalled_disk():
        at_once = lab.client("few").send("produce", **produce_fields(topic_id, 0, few))
        waiting = lab.client("many").send("produce", **produce_fields(topic_id, 0, many))
        assert (at_once.done, waiting.done) == (True, False)
    assert (await outcome(lab, waiting)).error_code is ErrorCode.none


@pytest.mark.parametrize("compression", [codec for codec in Compression if codec])
async def test_large_decompressed_batches_are_decompressed_off_the_loop(
    lab: Lab, compression: Compression
) -> None:
    topic_id = await lab.create_topic()
    await outcome(lab, lab.admin.send("produce", **produce_fields(topic_id, 0, records_of(lab, 1))))
    little, much = (
        records_of(lab, 1, value=bytes(size), compression=compression)
        for size in (INLINE_UNPACKED_BYTES_MAX - 100, INLINE_UNPACKED_BYTES_MAX)
    )
    with lab.stalled_disk():
        at_once = lab.client("little").send("produce", **produce_fields(topic_id, 0, little))
        waiting = lab.client("much").send("produce", **produce_fields(topic_id, 0, much))
        assert (at_once.done, waiting.done) == (True, False)
    assert (await outcome(lab, waiting)).error_code is ErrorCode.none


@pytest.mark.usefixtures("small_budget")
@pytest.mark.interpreted
async def test_few_records_for_each_of_many_partitions_are_many(lab: Lab) -> None:
    topic_id = await lab.create_topic(partition_count=2)
    for partition in range(2):
        fields = produce_fields(topic_id, partition, records_of(lab, 1))
        await outcome(lab, lab.admin.send("produce", **fields))
    parts = [{"index": partition, "records": records_of(lab, FEW)} for partition in range(2)]
    with lab.stalled_disk():
        topics = [{"topic_id": topic_id, "partition_data": parts}]
        waiting = lab.admin.send("produce", acks=-1, topic_data=topics)
        assert not waiting.done
    answer = await lab.answered(waiting)
    assert [one.base_offset for one in answer.responses[0].partition_responses] == [1, 1]


async def test_a_small_batch_does_not_overtake_a_slow_one(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await outcome(lab, lab.admin.send("produce", **produce_fields(topic_id, 0, records_of(lab, 1))))
    with lab.stalled_disk():
        pending = [
            lab.admin.send("produce", **produce_fields(topic_id, 0, records))
            for records in (
                records_of(lab, MANY, value=VALUE, base_sequence=0),
                records_of(lab, 1, base_sequence=MANY),
            )
        ]
        assert not any(one.done for one in pending)
    assert [(await outcome(lab, one)).base_offset for one in pending] == [1, 1 + MANY]


async def test_many_records_without_keys_are_refused(lab: Lab) -> None:
    topic_id = await lab.create_topic(cleanup__policy="compact")
    keyless = produce_fields(topic_id, 0, records_of(lab, MANY, key=None))
    answer = await outcome(lab, lab.admin.send("produce", **keyless))
    assert answer.error_code is ErrorCode.invalid_record
    assert len(answer.record_errors) == RECORD_ERRORS_MAX
    assert (await produced(lab, topic_id, records_of(lab, MANY))).base_offset == 0


async def produced(lab: Lab, topic_id: UUID, records: bytes) -> Any:
    return await outcome(lab, lab.admin.send("produce", **produce_fields(topic_id, 0, records)))


async def test_a_batch_that_decompresses_beyond_the_bound_is_too_large(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    answer = await produced(lab, topic_id, compressed(ZSTD_BOMB, Compression.ZSTD))
    assert answer.error_code is ErrorCode.message_too_large
    assert (
        answer.error_message
        == f"The batch of 1 records decompresses to more than {DECOMPRESSED_BYTES_MAX} bytes."
    )


async def test_records_from_the_future_are_named(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    answer = await produced(lab, topic_id, records_of(lab, MANY, ahead_ms=2 * HOUR_MS, value=VALUE))
    assert answer.error_code is ErrorCode.invalid_timestamp
    assert [one.batch_index for one in answer.record_errors] == list(range(RECORD_ERRORS_MAX))
