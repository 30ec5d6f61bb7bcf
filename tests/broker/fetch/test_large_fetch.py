"""A fetch that is worked on in turns is answered as any other is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from barnabas.broker.fetch.large_fetch import LargeFetch
from barnabas.protocol.errors import ErrorCode, FrameError
from tests.conformance.harness import Lab, Pending, open_lab, settle

UNKNOWN = [UUID(int=number) for number in range(1, 2_000)]


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as lab:
        yield lab


def send(lab: Lab, *topic_ids: UUID, offset: int = 0, epoch: int = -1, **fields: Any) -> Pending:
    partition = {
        "partition": 0,
        "fetch_offset": offset,
        "partition_max_bytes": 1 << 20,
        "current_leader_epoch": -1,
        "last_fetched_epoch": -1,
    }
    topics = [{"topic_id": topic_id, "partitions": [partition]} for topic_id in topic_ids]
    asked = {"min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": epoch, **fields}
    return lab.admin.send("fetch", 18, topics=topics, **asked)


async def test_what_exists_is_read_and_comes_before_what_does_not(lab: Lab) -> None:
    topic_ids = [await lab.create_topic(name) for name in ("a", "b")]
    for topic_id in topic_ids:
        await lab.produce(topic_id, 2)
    small = await lab.answered(send(lab, *UNKNOWN[:1], *topic_ids))
    pending = send(lab, *UNKNOWN[:1_000], *topic_ids, *UNKNOWN[1_000:])
    assert isinstance(pending.reply, LargeFetch)
    large = await lab.answered(pending)
    assert large.responses[:3] == small.responses
    assert [topic.topic_id for topic in large.responses] == [*topic_ids, *UNKNOWN]
    assert {topic.partitions[0].error_code for topic in large.responses[2:]} == {ErrorCode.unknown_topic_id}


async def test_a_topic_that_is_asked_for_in_many_places_is_answered_in_one(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 2)
    response = await lab.answered(send(lab, *[topic_id] * len(UNKNOWN)))
    assert [topic.topic_id for topic in response.responses] == [topic_id]


async def test_it_waits_for_records(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    pending = send(lab, *[topic_id] * len(UNKNOWN), max_wait=500)
    await settle()
    assert not pending.done
    await lab.produce(topic_id, 2)
    (topic,) = (await lab.answered(pending)).responses
    assert topic.partitions[0].records


async def test_it_does_not_wait_when_somebody_waits_behind_it(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    pending = send(lab, *[topic_id] * len(UNKNOWN), max_wait=500)
    assert isinstance(pending.reply, LargeFetch)
    pending.reply.hurry()
    assert len((await lab.answered(pending)).responses) == 1


async def test_it_is_over_when_nobody_listens_any_more(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    pending = send(lab, *[topic_id] * len(UNKNOWN), max_wait=500)
    assert isinstance(pending.reply, LargeFetch)
    pending.reply.withdraw()
    await settle()
    assert pending.reply.cancelled()
    assert len(lab.broker.purgatory) == 0


async def test_it_opens_sessions_and_goes_on_with_them(lab: Lab) -> None:
    opened = await lab.answered(send(lab, *UNKNOWN, epoch=0))
    assert opened.session_id
    topic_id = await lab.create_topic()
    fields = {"session_id": opened.session_id, "epoch": 1}
    response = await lab.answered(send(lab, topic_id, *UNKNOWN, **fields))
    assert response.responses[0].topic_id == topic_id
    again = await lab.answered(send(lab, *UNKNOWN, **fields))
    assert again.error_code is ErrorCode.invalid_fetch_session_epoch


async def test_one_that_cannot_be_read_fails_its_connection(lab: Lab) -> None:
    pending = lab.admin.send_body("fetch", 18, bytes(21) + b"\xff\xff\x03" + bytes(1 << 16))
    with pytest.raises(FrameError):
        await lab.answered(pending)
