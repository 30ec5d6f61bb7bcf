"""Batches that are packed anew for their topic: off the loop, and in order."""

from collections.abc import AsyncIterator

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import Compression, iterate_headers
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
