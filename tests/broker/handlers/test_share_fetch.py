"""ShareFetch's handler: opening logs, ending sessions, delayed errors. The rules: tests/conformance."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from barnabas.protocol.client.share_requests import encode_share_fetch_request
from barnabas.protocol.decode.acknowledgements import AckPartition, AckTopic
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.harness import open_lab, settle
from tests.conformance.share_member import ACCEPT, GROUP, fetched


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_lab(group__share__max__share__sessions="1", group__share__max__size="1") as lab:
        yield await make_stage(lab)


async def test_logs_are_opened_by_the_first_fetch(stage: Stage) -> None:
    topic = stage.lab.broker.metadata.image.topics_by_name["t"]
    assert stage.lab.broker.logs.get(topic, 0) is None
    pending = stage.member().start_fetch()
    assert not pending.done
    await stage.lab.answered(pending)
    assert stage.lab.broker.logs.get(topic, 0) is not None


async def test_a_fetch_from_open_logs_does_not_wait(stage: Stage) -> None:
    await stage.produce(1)
    member = stage.member()
    await member.take()
    await stage.produce(1)
    pending = member.start_fetch(max_wait=1000)
    assert pending.done
    assert len(fetched(pending.response()).acquired) == 1


async def test_a_request_withdrawn_while_logs_are_opened_acquires_nothing(stage: Stage) -> None:
    await stage.produce(1)
    await stage.lab.restart()
    member = stage.member()
    pending = member.start_fetch(max_wait=1000)
    withdraw = getattr(pending.reply, "withdraw", None)
    assert withdraw is not None
    withdraw()
    member.client.disconnect()
    await settle()
    assert await stage.member(2).take() == [(0, 0, 1)]


async def test_a_request_hurried_while_logs_are_opened_does_not_wait_later(stage: Stage) -> None:
    pending = stage.member().start_fetch(max_wait=1000)
    hurry = getattr(pending.reply, "hurry", None)
    assert hurry is not None
    hurry()
    assert fetched(await stage.lab.answered(pending)).error == ErrorCode.none


async def test_the_last_fetch_of_a_session_ends_it_after_its_acknowledgements(stage: Stage) -> None:
    await stage.produce(2)
    member = stage.member()
    await member.take()
    got = await member.fetch([(0, 0, ACCEPT)], epoch=-1)
    assert got.acknowledge_errors == [0]
    assert len(stage.lab.broker.share_sessions) == 0
    assert await stage.offsets() == (1, 1)


async def test_offsets_come_without_the_bytes_of_the_records_on_request(stage: Stage) -> None:
    await stage.produce(3)
    topics = [AckTopic(stage.partition.topic_id, [AckPartition(stage.partition.partition, [])])]
    body = ShareFetchBody(GROUP, "m", 0, 0, 1, 1 << 20, 500, 500, 0, False, topics, [], without_records=True)
    pending = stage.lab.client().send_body("share_fetch", 2, encode_share_fetch_request(2, body))
    response = await stage.lab.answered(pending)
    assert fetched(response).acquired == [(0, 2, 1)]
    assert response.responses[0].partitions[0].records == b""


async def test_a_delayed_error_of_a_full_session_cache_may_be_hurried(stage: Stage) -> None:
    await stage.member().fetch()
    refused = stage.member(2).start_fetch(max_wait=60_000)
    await settle()
    assert not refused.done
    hurry = getattr(refused.reply, "hurry", None)
    assert hurry is not None
    hurry()
    await settle()
    assert fetched(refused.response()).error == ErrorCode.share_session_limit_reached


async def test_a_members_old_session_is_replaced_by_its_new_one(stage: Stage) -> None:
    member = stage.member()
    await member.fetch()
    assert (await member.fetch(epoch=0)).error == ErrorCode.none


async def test_acknowledgements_in_a_first_request_are_refused_before_the_old_session_is_dropped(
    stage: Stage,
) -> None:
    await stage.produce(2)
    member = stage.member()
    await member.take()
    refused = await member.fetch([(0, 0, ACCEPT)], epoch=0)
    assert refused.error == ErrorCode.invalid_request
    assert (await member.fetch([(0, 0, ACCEPT)], epoch=1)).acknowledge_errors == [0]
