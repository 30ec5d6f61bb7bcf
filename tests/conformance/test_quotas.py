"""Client quotas over the protocol: throttle times equal to those that Kafka 4.3.1 returned, also after
restarts.
"""

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import to_milliseconds
from tests.conformance.conftest import Stage, with_log_store_only
from tests.conformance.harness import Client, Lab, batch, produce_fields
from tests.conformance.share_member import ShareMember

pytestmark = with_log_store_only


async def limit(lab: Lab, **values: float | None) -> None:
    """Quotas of the client id `client`; None removes one."""
    ops = [{"key": key, "value": float(value or 0), "remove": value is None} for key, value in values.items()]
    entity = [{"entity_type": "client-id", "entity_name": "client"}]
    response = await lab.admin.ask("alter_client_quotas", entries=[{"entity": entity, "ops": ops}])
    assert response.entries[0].error_code is ErrorCode.none, response


async def produce(client: Client, topic_id: UUID, value_bytes: int) -> int:
    """The throttle time in ms."""
    records = batch(1, client.lab.clock.wall_ms(), value_bytes)
    response = await client.ask("produce", **produce_fields(topic_id, 0, records))
    assert response.responses[0].partition_responses[0].error_code is ErrorCode.none
    return to_milliseconds(response.throttle_time)


async def fetch(client: Client, topic_id: UUID, bytes_max: int, **session: int) -> Any:
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": bytes_max}
    return await client.ask(
        "fetch",
        min_bytes=1,
        max_bytes=bytes_max,
        topics=[{"topic_id": topic_id, "partitions": [wanted]}],
        **{"session_epoch": -1, **session},
    )


async def test_produced_bytes_are_paid_for(lab: Lab) -> None:
    topic_id, client = await lab.create_topic(), lab.client()
    await limit(lab, producer_byte_rate=20_000)
    waits_ms = [await produce(client, topic_id, size) for size in (1000, 100_000, 100_000, 50_000)]
    assert waits_ms[:2] == [0, 0]
    # Each request is a hundred bytes longer than its record, and its whole size counts.
    assert waits_ms[2] == pytest.approx(60, abs=20)
    assert waits_ms[3] == pytest.approx(2570, abs=20)
    assert await produce(lab.client("other"), topic_id, 100_000) == 0
    await limit(lab, producer_byte_rate=None)
    assert await produce(client, topic_id, 100_000) == 0


async def test_a_fetch_above_the_quota_is_empty_and_comes_later(lab: Lab) -> None:
    topic_id, client = await lab.create_topic(), lab.client()
    for _ in range(30):
        await produce(client, topic_id, 9_900)
    await limit(lab, consumer_byte_rate=20_000)
    first = await fetch(client, topic_id, 100_000)
    assert (to_milliseconds(first.throttle_time), len(first.responses)) == (0, 1)
    # At most ten seconds' worth is read, and half of it was used before.
    second = await fetch(client, topic_id, 1_000_000)
    assert to_milliseconds(second.throttle_time) == pytest.approx(4800, abs=200)
    assert second.responses == ()
    assert to_milliseconds((await fetch(client, topic_id, 90_000)).throttle_time) == 0


async def test_a_session_keeps_the_records_that_a_throttled_fetch_did_not_get(lab: Lab) -> None:
    topic_id, client = await lab.create_topic(), lab.client()
    await produce(client, topic_id, 150_000)
    opened = await fetch(client, topic_id, 1, session_epoch=0)
    await limit(lab, consumer_byte_rate=10_000)
    throttled = await fetch(client, topic_id, 200_000, session_id=opened.session_id, session_epoch=1)
    assert (throttled.session_id, throttled.responses) == (opened.session_id, ())
    assert to_milliseconds(throttled.throttle_time) > 0
    await limit(lab, consumer_byte_rate=None)
    again = await fetch(client, topic_id, 200_000, session_id=opened.session_id, session_epoch=2)
    assert len(again.responses) == 1


async def test_a_share_fetch_gets_no_more_than_the_quota_has_room_for(stage: Stage) -> None:
    lab = stage.lab
    for _ in range(5):
        await produce(lab.client(), stage.partition.topic_id, 9_900)
    await limit(lab, consumer_byte_rate=1_000)
    got = await ShareMember(lab.client(), [stage.partition]).fetch(max_bytes=1_000_000)
    assert got.acquired == [(0, 0, 1)]


async def test_changes_of_metadata_are_refused_or_waited_for(lab: Lab) -> None:
    client = lab.client()
    await limit(lab, controller_mutation_rate=1)

    async def create(name: str, version: int) -> tuple[list[ErrorCode], int]:
        topics = [
            {"name": f"{name}-{number}", "num_partitions": 6, "replication_factor": 1} for number in range(2)
        ]
        response = await client.ask("create_topics", version, topics=topics)
        return [topic.error_code for topic in response.topics], to_milliseconds(response.throttle_time)

    too_much = ErrorCode.throttling_quota_exceeded
    assert await create("a", 7) == ([ErrorCode.none] * 2, 0)
    assert await create("b", 7) == ([too_much] * 2, 1000)
    lab.clock.now_ms += 1000
    assert await create("c", 7) == ([ErrorCode.none, too_much], 6000)
    assert await create("d", 5) == ([ErrorCode.none] * 2, 18_000)
    response = await client.ask("delete_topics", topics=[{"name": "a-0"}])
    assert response.responses[0].error_code is too_much
    assert to_milliseconds(response.throttle_time) == 18_000
    response = await client.ask("create_partitions", topics=[{"name": "a-0", "count": 7}])
    assert response.results[0].error_code is too_much
    response = await client.ask("metadata", topics=[{"name": "e"}], allow_auto_topic_creation=True)
    assert to_milliseconds(response.throttle_time) == 19_000


@pytest.mark.parametrize("end", ["restart", "crash"])
async def test_quotas_outlive_the_broker(lab: Lab, end: str) -> None:
    topic_id = await lab.create_topic()
    await limit(lab, producer_byte_rate=20_000, consumer_byte_rate=1)
    await limit(lab, consumer_byte_rate=None)
    await getattr(lab, end)()
    assert await produce(lab.client(), topic_id, 300_000) == pytest.approx(5000, abs=20)
    response = await lab.admin.ask("describe_client_quotas", strict=False)
    assert [(one.key, one.value) for one in response.entries[0].values] == [("producer_byte_rate", 20_000)]
