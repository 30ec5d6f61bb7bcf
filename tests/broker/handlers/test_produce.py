"""Produce: error codes of refused batches, and results of appended ones."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode, FrameError
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, Compression, build_batch, read_header
from barnabas.protocol.records import Record, encode_records
from tests.conformance.harness import Lab, batch, open_lab, produce_fields
from tests.conformance.share_member import ShareMember

NOW_MS = 1_700_000_001_000


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab(message__max__bytes="1000") as lab:
        yield lab


async def produce(
    lab: Lab, topic_id: UUID, records: bytes | None, *, partition: int = 0, **fields: Any
) -> Any:
    """The result of the only partition."""
    asked = {**produce_fields(topic_id, partition, records), **fields}
    response = await lab.admin.ask("produce", **asked)
    return response.responses[0].partition_responses[0]


async def test_the_result_has_the_offset_of_the_batch(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    first = await produce(lab, topic_id, batch(3, NOW_MS))
    second = await produce(lab, topic_id, batch(2, NOW_MS))
    assert (first.error_code, first.base_offset, first.log_start_offset) == (ErrorCode.none, 0, 0)
    assert (second.index, second.base_offset, second.error_message) == (0, 3, None)
    assert first.log_append_time is None


async def test_with_log_append_time_the_result_has_it(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", message__timestamp__type="LogAppendTime")
    answer = await produce(lab, topic_id, batch(1, 5))
    assert answer.log_append_time.timestamp() * 1000 == lab.clock.wall_ms()


@pytest.mark.parametrize("version", range(3, 14))
async def test_every_version_appends(lab: Lab, version: int) -> None:
    topic_id = await lab.create_topic()
    data = [{"index": 0, "records": batch(1, NOW_MS)}]
    topic = {"name": "t", "topic_id": topic_id, "partition_data": data}
    response = await lab.admin.ask("produce", version, acks=1, topic_data=[topic])
    (answered,) = response.responses
    assert (answered.topic_id if version >= 13 else answered.name) == (topic_id if version >= 13 else "t")
    assert answered.partition_responses[0].error_code is ErrorCode.none


def broken(records: bytes, position: int, value: int) -> bytes:
    changed = bytearray(records)
    changed[position] = value
    return bytes(changed)


GOOD = batch(2, NOW_MS)
REFUSED: dict[str, tuple[bytes | None, ErrorCode]] = {
    "no records": (None, ErrorCode.invalid_record),
    "a wrong checksum": (broken(GOOD, 20, GOOD[20] ^ 1), ErrorCode.corrupt_message),
    "a batch cut off": (GOOD[:-1], ErrorCode.invalid_record),
    "too large": (batch(1, NOW_MS, value_bytes=1000), ErrorCode.message_too_large),
    "magic 1": (broken(GOOD, 16, 1), ErrorCode.invalid_record),
}


@pytest.mark.parametrize(("records", "error"), REFUSED.values(), ids=REFUSED)
async def test_batches_that_are_refused_append_nothing(
    lab: Lab, records: bytes | None, error: ErrorCode
) -> None:
    topic_id = await lab.create_topic()
    answer = await produce(lab, topic_id, records)
    assert (answer.base_offset, answer.log_start_offset) == (-1, -1)
    assert answer.error_code is error
    assert (await produce(lab, topic_id, GOOD)).base_offset == 0


async def test_a_compacted_topic_refuses_a_record_without_a_key(lab: Lab) -> None:
    topic_id = await lab.create_topic(cleanup__policy="compact")
    answer = await produce(lab, topic_id, batch(2, NOW_MS))
    assert answer.error_code is ErrorCode.invalid_record
    assert [one.batch_index for one in answer.record_errors] == [0, 1]
    keyed = build_batch(0, [(b"key", b"value")], leader_epoch=-1, timestamp_ms=NOW_MS)
    answer = await produce(lab, topic_id, keyed)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 0)


async def test_timestamps_too_far_ahead_are_refused(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", message__timestamp__after__max__ms="5000")
    latest_ms = lab.clock.wall_ms() + 5000
    too_late = await produce(lab, topic_id, batch(1, latest_ms + 1))
    assert too_late.error_code is ErrorCode.invalid_timestamp
    assert (await produce(lab, topic_id, batch(1, latest_ms))).error_code is ErrorCode.none


async def test_timestamps_have_no_effect_with_log_append_time(lab: Lab) -> None:
    topic_id = await lab.create_topic(
        "t", message__timestamp__type="LogAppendTime", message__timestamp__after__max__ms="0"
    )
    late = await produce(lab, topic_id, batch(1, lab.clock.wall_ms() + 5000))
    assert late.error_code is ErrorCode.none


@pytest.mark.parametrize(
    ("version", "error"), [(6, ErrorCode.unsupported_compression_type), (7, ErrorCode.none)]
)
async def test_zstandard_needs_version_7(lab: Lab, version: int, error: ErrorCode) -> None:
    await lab.create_topic()
    records = encode_records([Record(0, NOW_MS, None, b"v")], compression=Compression.ZSTD)
    topic = {"name": "t", "partition_data": [{"index": 0, "records": records}]}
    response = await lab.admin.ask("produce", version, acks=1, topic_data=[topic])
    assert response.responses[0].partition_responses[0].error_code is error


@pytest.mark.parametrize("acks", [2, -2])
async def test_invalid_acks_are_refused(lab: Lab, acks: int) -> None:
    answer = await produce(lab, await lab.create_topic(), GOOD, acks=acks)
    assert answer.error_code is ErrorCode.invalid_required_acks


class TestTransactions:
    IN_ONE = batch(1, NOW_MS, attributes=TRANSACTIONAL_FLAG, producer_id=5, producer_epoch=0, base_sequence=0)

    async def test_need_a_transactional_id(self, lab: Lab) -> None:
        answer = await produce(lab, await lab.create_topic(), self.IN_ONE)
        assert answer.error_code is ErrorCode.transactional_id_authorization_failed

    async def test_need_the_transactional_id_of_the_producer(self, lab: Lab) -> None:
        answer = await produce(lab, await lab.create_topic(), self.IN_ONE, transactional_id="t")
        assert answer.error_code is ErrorCode.invalid_producer_id_mapping

    async def test_accept_a_batch_of_no_transaction(self, lab: Lab) -> None:
        answer = await produce(lab, await lab.create_topic(), GOOD, transactional_id="t")
        assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 0)

    async def test_have_one_producer_in_a_request(self, lab: Lab) -> None:
        topic_id = await lab.create_topic("t", 2)
        another = batch(
            1, NOW_MS, attributes=TRANSACTIONAL_FLAG, producer_id=6, producer_epoch=0, base_sequence=0
        )
        partitions = [{"index": 0, "records": self.IN_ONE}, {"index": 1, "records": another}]
        response = await lab.admin.ask(
            "produce",
            acks=-1,
            transactional_id="t",
            topic_data=[{"topic_id": topic_id, "partition_data": partitions}],
        )
        codes = [one.error_code for one in response.responses[0].partition_responses]
        assert codes == [ErrorCode.invalid_producer_id_mapping] * 2


async def test_unknown_topics_and_partitions_are_refused(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    unknown_topic = await produce(lab, UUID(int=1), GOOD)
    assert unknown_topic.error_code is ErrorCode.unknown_topic_id
    for partition in (-1, 1):
        answer = await produce(lab, topic_id, GOOD, partition=partition)
        assert answer.error_code is ErrorCode.unknown_topic_or_partition
    topic = {"name": "nowhere", "partition_data": [{"index": 0, "records": GOOD}]}
    response = await lab.admin.ask("produce", 9, acks=1, topic_data=[topic])
    assert response.responses[0].partition_responses[0].error_code is ErrorCode.unknown_topic_or_partition


async def test_clients_cannot_write_to_the_brokers_own_topics(lab: Lab) -> None:
    await ShareMember(lab.client()).join("t")
    internal = lab.broker.metadata.image.topics_by_name["__consumer_offsets"]
    answer = await produce(lab, internal.topic_id, GOOD)
    assert answer.error_code is ErrorCode.invalid_topic_exception


async def test_each_partition_has_its_own_error(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 2)
    data = [{"index": 0, "records": GOOD}, {"index": 1, "records": GOOD[:-1]}]
    response = await lab.admin.ask(
        "produce", acks=-1, topic_data=[{"topic_id": topic_id, "partition_data": data}]
    )
    codes = [one.error_code for one in response.responses[0].partition_responses]
    assert codes == [ErrorCode.none, ErrorCode.invalid_record]


async def test_with_acks_0_records_are_appended_without_a_response(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    for _ in range(2):
        assert await lab.admin.ask("produce", **produce_fields(topic_id, 0, GOOD, acks=0)) is None
    assert (await produce(lab, topic_id, GOOD)).base_offset == 4


@pytest.mark.parametrize("case", ["a wrong checksum", "no such partition", "a log that cannot be written"])
async def test_with_acks_0_an_error_closes_the_connection(lab: Lab, case: str) -> None:
    topic_id = await lab.create_topic()
    partition = 7 if case == "no such partition" else 0
    records = REFUSED["a wrong checksum"][0] if case == "a wrong checksum" else GOOD
    if case == "a log that cannot be written":
        await produce(lab, topic_id, GOOD)
        lab.filesystem.write_error = errno.ENOSPC
    with pytest.raises(FrameError, match=r"to t-\d with acks=0"):
        await lab.admin.ask("produce", **produce_fields(topic_id, partition, records, acks=0))


async def test_a_repeated_batch_has_the_same_result(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    producer = {"producer_id": 5, "producer_epoch": 0}
    first = batch(2, NOW_MS, base_sequence=0, **producer)
    assert (await produce(lab, topic_id, first)).base_offset == 0
    again = await produce(lab, topic_id, first)
    assert (again.error_code, again.base_offset) == (ErrorCode.none, 0)
    gap = await produce(lab, topic_id, batch(2, NOW_MS, base_sequence=9, **producer))
    assert gap.error_code is ErrorCode.out_of_order_sequence_number
    following = await produce(lab, topic_id, batch(1, NOW_MS, base_sequence=2, **producer))
    assert following.base_offset == 2


async def test_the_response_comes_after_the_write() -> None:
    async with open_lab(log__flush="always") as lab:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1)
        with lab.stalled_disk():
            pending = lab.admin.send("produce", **produce_fields(topic_id, 0, GOOD))
            await lab.advance(100)
            assert not pending.done
        response = await lab.answered(pending)
        assert response.responses[0].partition_responses[0].base_offset == 1


async def test_a_disk_fault_is_an_error_of_this_and_later_requests(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 1)
    with lab.broken_disk("t-0"):
        failed = await produce(lab, topic_id, GOOD)
    assert failed.error_code is ErrorCode.kafka_storage_error
    assert (await produce(lab, topic_id, GOOD)).error_code is ErrorCode.kafka_storage_error


async def test_base_offset_and_leader_epoch_are_written_into_the_batch(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 2)
    await lab.restart()
    await lab.produce(topic_id, 2)
    log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_name["t"], 0)
    assert log is not None
    header = read_header(b"".join(log.read(2, bytes_max=1000).buffers), 0)
    assert (header.base_offset, header.leader_epoch) == (2, log.leader_epoch)


async def test_requests_of_one_connection_append_in_order_of_arrival(lab: Lab) -> None:
    """The first waits for a closed log, the second for nothing."""
    topic_id = await lab.create_topic("t", 2)
    await produce(lab, topic_id, batch(1, NOW_MS))

    def parts(*partitions: int, sequence: int) -> list[dict[str, Any]]:
        records = batch(1, NOW_MS, producer_id=7, producer_epoch=0, base_sequence=sequence)
        data = [{"index": index, "records": records} for index in partitions]
        return [{"topic_id": topic_id, "partition_data": data}]

    first = lab.admin.send("produce", acks=-1, topic_data=parts(0, 1, sequence=0))
    second = lab.admin.send("produce", acks=-1, topic_data=parts(0, sequence=1))
    answers = [await lab.admin.answered(first), await lab.admin.answered(second)]
    offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
    assert offsets == [1, 2]


async def test_another_connection_does_not_wait(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 2)
    await produce(lab, topic_id, batch(1, NOW_MS))
    waiting = lab.admin.send("produce", **produce_fields(topic_id, 1, batch(1, NOW_MS)))
    other = lab.client("other").send("produce", **produce_fields(topic_id, 0, batch(1, NOW_MS)))
    assert other.done
    assert not waiting.done
    await lab.admin.answered(waiting)
