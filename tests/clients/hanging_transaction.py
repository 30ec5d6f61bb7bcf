"""A transaction that hangs: a partition has its record, and no coordinator knows it, so no timeout ends it.

The broker must have `transaction.partition.verification.enable=false`, or it refuses the record.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, build_batch
from tests.clients.cluster import Cluster
from tests.conformance.harness import produce_fields
from tests.conformance.socket_requests import SocketRequests

HANGING_PRODUCER_ID = 4_242


async def leave_hanging(address: str, topic: str, *, value: bytes = b"x", timestamp_ms: int) -> None:
    """Write a record to partition 0, which began its transaction at this time."""
    batch = build_batch(
        0,
        [(None, value)],
        leader_epoch=-1,
        timestamp_ms=timestamp_ms,
        attributes=TRANSACTIONAL_FLAG,
        producer_id=HANGING_PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
    )
    requests = await SocketRequests.connect(address)
    fields = produce_fields(Cluster(address).topic_id(topic), 0, batch)
    by_name: Any = {**fields["topic_data"][0], "name": topic}
    del by_name["topic_id"]
    written = await requests.ask(
        "produce", 11, **{**fields, "transactional_id": "stranger", "topic_data": [by_name]}
    )
    requests.disconnect()
    assert written.responses[0].partition_responses[0].error_code.value == 0, written
