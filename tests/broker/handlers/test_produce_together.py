"""Produce requests of one connection while the disk is busy: they begin together, and share a write."""

from __future__ import annotations

from barnabas.broker.handlers.lazy_handlers import bound_handler
from barnabas.protocol.api import ApiKey
from tests.broker.network.connection_bench import Bench
from tests.broker.network.edge_fakes import request_frame
from tests.conformance.harness import Lab, batch, open_lab, settle
from tests.conformance.messages import message, message_type, written

VERSION = 8
"""The newest version without tagged fields, as the bench writes only simple headers."""
REQUESTS = 5


def produce_frame(lab: Lab, correlation_id: int) -> bytes:
    topic = {"name": "t", "partition_data": [{"index": 0, "records": batch(1, lab.clock.wall_ms())}]}
    fields = {"acks": -1, "topic_data": [topic]}
    request = message(message_type("produce", VERSION, "request"), fields)
    return request_frame(ApiKey.PRODUCE, correlation_id, VERSION, written(request))


async def test_records_that_arrive_while_the_disk_is_busy_are_written_together() -> None:
    async with open_lab(log__flush="always") as lab:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1)
        bench = Bench(handlers={ApiKey.PRODUCE: bound_handler(lab.broker, "produce")})
        before = lab.filesystem.sync_count
        with lab.stalled_disk():
            bench.receive(*(produce_frame(lab, number) for number in range(REQUESTS)))
            await settle()
            assert bench.transport.answers() == []
        await settle()
        assert [correlation_id for correlation_id, _ in bench.transport.answers()] == list(range(REQUESTS))
        assert lab.filesystem.sync_count - before == 2, "the first alone, and the others together"
