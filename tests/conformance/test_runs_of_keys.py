"""The broker tells a member that asks for it which records it takes back together (docs/protocol.md, the tags
10002 of ShareFetch requests and 10000 of the responses).
"""

from __future__ import annotations

import pytest

from barnabas.protocol.client.share_fetch_response import decode_share_fetch_response
from barnabas.protocol.client.share_requests import encode_share_fetch_request
from barnabas.protocol.decode.acknowledgements import AckPartition, AckTopic
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.extended.runs import RunKind, Runs
from barnabas.share.leader import batch_keys
from tests.conformance.conftest import Stage
from tests.conformance.harness import Client
from tests.conformance.share_member import ACCEPT, GROUP, RELEASE, ShareMember
from tests.conformance.test_order_of_keys import produce

LIMIT = 5
"""The default of share.delivery.count.limit."""


async def runs(stage: Stage, member: ShareMember, *, asks: bool) -> Runs | None:
    """What the answer to the member's next fetch tells; only its first fetch can ask."""
    names = [] if member.epoch else [AckTopic(stage.partition.topic_id, [AckPartition(0, [])])]
    body = ShareFetchBody(
        *(GROUP, member.member_id, member.epoch, 0, 1, 1 << 20, 500, 500, 0, False),
        topics=names,
        forgotten_topics=[],
        wants_runs=asks,
    )
    assert isinstance(member.client, Client)
    pending = member.client.send_body("share_fetch", 2, encode_share_fetch_request(2, body))
    await stage.lab.ended(pending)
    reply = decode_share_fetch_response(2, pending.body(), 0)
    assert reply.error_code == 0, reply
    member.epoch += 1
    (topic,) = reply.topics
    (partition,) = topic.partitions
    assert partition.acquired
    return partition.runs


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"order": "key"}, None),
        ({"order": "key", "order_key_in_flight_max": "2"}, Runs(RunKind.KEYS, LIMIT)),
        (
            {"order": "key", "order_key_in_flight_max": "2", "delivery_count_limit": "3"},
            Runs(RunKind.KEYS, 3),
        ),
    ],
)
async def test_the_answer_tells_the_runs_of_keys(
    stage: Stage, settings: dict[str, str], expected: Runs | None
) -> None:
    await stage.lab.configure_group(GROUP, **settings)
    await produce(stage, ["a", "a", "b"])
    assert await runs(stage, stage.member(), asks=True) == expected


async def test_no_other_member_sees_them(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, order="key", order_key_in_flight_max="2")
    await produce(stage, ["a", "a"])
    assert await runs(stage, stage.member(), asks=False) is None


async def test_a_session_that_has_asked_once_is_always_told(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, order="key", order_key_in_flight_max="2")
    member = stage.member()
    await produce(stage, ["a"])
    assert await runs(stage, member, asks=True) == Runs(RunKind.KEYS, LIMIT)
    await produce(stage, ["b"])
    assert await runs(stage, member, asks=False) == Runs(RunKind.KEYS, LIMIT)


async def test_a_batch_that_is_delivered_alone_is_one_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_keys, "HASHED_RECORDS_MAX", 2)
    await stage.lab.configure_group(GROUP, order="key")
    member, other = stage.member(), stage.member(2)
    (base,) = await produce(stage, ["a", "b", "c"])
    assert await runs(stage, member, asks=True) == Runs(RunKind.ALL, LIMIT)
    await member.acknowledge([(base, base, ACCEPT), (base + 1, base + 1, RELEASE)])
    assert await other.take() == [(base + 1, base + 1, 2), (base + 2, base + 2, 1)]
    await other.accept(base + 1, base + 2)
    await produce(stage, ["d", "d"])
    assert await runs(stage, member, asks=False) is None
