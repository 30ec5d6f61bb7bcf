"""Batches that are packed anew for their topic, or looked into: off the loop, and in order."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.batch_body import CHECKED_BYTES_MAX, INLINE_BYTES_MAX, INLINE_RECORDS_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import Compression, iterate_headers
from barnabas.protocol.record_keys import RECORD_ERRORS_MAX
from barnabas.protocol.records import Record, encode_records
from tests.conformance.harness import Lab, batch, open_lab, produce_fields


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as opened:
        yield opened


async def test_others_are_served_meanwhile(lab: Lab) -> None:
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
async def test_what_is_packed_as_its_topic_asks_is_only_appended(lab: Lab, version: int) -> None:
    """Also if the client could not have sent it so."""
    await lab.create_topic(compression__type="zstd")
    records = batch(1, lab.clock.wall_ms())
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    response = await lab.admin.ask("produce", version, acks=-1, topic_data=topics)
    assert response.responses[0].partition_responses[0].error_code is ErrorCode.none


async def test_topics_without_a_codec_are_produced_to_at_once(lab: Lab) -> None:
    await lab.create_topic("packed", compression__type="lz4")
    topic_id = await lab.create_topic("plain")
    await lab.produce(topic_id, 1)
    pending = lab.admin.send("produce", **produce_fields(topic_id, 0, batch(1, lab.clock.wall_ms())))
    assert pending.done


MANY = INLINE_RECORDS_MAX + 1
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
    """Of producer 7, if they are given a sequence."""
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


LOOKED_INTO = [
    {"cleanup__policy": "compact"},
    {"message__timestamp__before__max__ms": "5000"},
]


@pytest.mark.parametrize("settings", LOOKED_INTO)
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
async def test_few_records_are_looked_into_at_once_and_many_off_the_loop(
    lab: Lab, settings: Mapping[str, Any], compression: Compression
) -> None:
    topic_id = await lab.create_topic(**settings)
    await outcome(lab, lab.admin.send("produce", **produce_fields(topic_id, 0, records_of(lab, 1))))
    few = records_of(lab, INLINE_RECORDS_MAX, compression=compression)
    many = records_of(lab, MANY, compression=compression)
    large = records_of(lab, 1, value=bytes(INLINE_BYTES_MAX), compression=compression)
    with lab.stalled_disk():
        at_once = lab.client("few").send("produce", **produce_fields(topic_id, 0, few))
        waiting = [
            lab.client("many").send("produce", **produce_fields(topic_id, 0, one)) for one in (many, large)
        ]
        assert (at_once.done, [one.done for one in waiting]) == (True, [False, False])
    assert [(await outcome(lab, one)).error_code for one in waiting] == [ErrorCode.none] * 2


async def test_few_records_for_each_of_many_partitions_are_many(lab: Lab) -> None:
    topic_id = await lab.create_topic(partition_count=2, cleanup__policy="compact")
    for partition in range(2):
        fields = produce_fields(topic_id, partition, records_of(lab, 1))
        await outcome(lab, lab.admin.send("produce", **fields))
    parts = [{"index": partition, "records": records_of(lab, INLINE_RECORDS_MAX)} for partition in range(2)]
    with lab.stalled_disk():
        topics = [{"topic_id": topic_id, "partition_data": parts}]
        waiting = lab.admin.send("produce", acks=-1, topic_data=topics)
        assert not waiting.done
    answer = await lab.answered(waiting)
    assert [one.base_offset for one in answer.responses[0].partition_responses] == [1, 1]


async def test_a_small_batch_does_not_overtake_one_that_is_looked_into(lab: Lab) -> None:
    topic_id = await lab.create_topic(cleanup__policy="compact")
    await outcome(lab, lab.admin.send("produce", **produce_fields(topic_id, 0, records_of(lab, 1))))
    with lab.stalled_disk():
        pending = [
            lab.admin.send("produce", **produce_fields(topic_id, 0, records))
            for records in (records_of(lab, MANY, base_sequence=0), records_of(lab, 1, base_sequence=MANY))
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


async def test_what_unpacks_to_more_than_a_bound_is_not_looked_into(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.protocol.record_keys.CHECKED_BYTES_MAX", 10 * INLINE_BYTES_MAX)
    assert CHECKED_BYTES_MAX > 10 * INLINE_BYTES_MAX
    topic_id = await lab.create_topic(cleanup__policy="compact")
    within, beyond = (records_of(lab, 1, value=bytes(size * INLINE_BYTES_MAX)) for size in (9, 10))
    assert (await produced(lab, topic_id, within)).error_code is ErrorCode.none
    assert (await produced(lab, topic_id, beyond)).error_code is ErrorCode.invalid_record


async def test_which_of_many_records_come_from_the_future_is_found_off_the_loop(lab: Lab) -> None:
    """Nobody waits for it: the batch is refused in any case."""
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 1)
    late, few, fine = (
        records_of(lab, count, ahead_ms=ahead_ms)
        for count, ahead_ms in ((MANY, 2 * HOUR_MS), (3, 2 * HOUR_MS), (MANY, 0))
    )
    with lab.stalled_disk():
        waiting, at_once, other = (
            lab.client(name).send("produce", **produce_fields(topic_id, 0, records))
            for name, records in (("late", late), ("few", few), ("fine", fine))
        )
        assert (waiting.done, at_once.done, other.done) == (False, True, True)
    for pending, named_count in ((waiting, RECORD_ERRORS_MAX), (at_once, 3)):
        answer = await outcome(lab, pending)
        assert answer.error_code is ErrorCode.invalid_timestamp
        assert [one.batch_index for one in answer.record_errors] == list(range(named_count))
    assert (await outcome(lab, other)).base_offset == 1
