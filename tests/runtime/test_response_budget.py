"""The part of the memory that each response gets, and the fetches that keep to it."""

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.identity import TopicIdPartition
from barnabas.runtime import response_budget
from barnabas.runtime.response_budget import BUDGET_BYTES, RESPONSE_BYTES_MAX, EncodedBody, ResponseBudget
from barnabas.share.fetch.share_fetch import Look
from tests.conformance.harness import Lab, Pending, batch, open_lab
from tests.conformance.share_member import GROUP, ShareMember, record_offsets
from tests.share.fetch.waiting_fetch import waiting_fetch
from tests.share.sessions.session_building import session_of

BATCH_BYTES = len(batch(1, 0))
SHARES = pytest.mark.parametrize(
    ("bytes_max", "offsets"),
    [(1, [0]), (BATCH_BYTES, [0]), (2 * BATCH_BYTES, [0, 1]), (3 * BATCH_BYTES, [0, 1, 2])],
)
"""The bytes of a response, and the number of records returned of three batches of one record each."""


@pytest.mark.parametrize(
    ("taken_bytes", "expected"),
    [
        (0, RESPONSE_BYTES_MAX),
        (BUDGET_BYTES * 3 // 4, RESPONSE_BYTES_MAX),
        (BUDGET_BYTES * 7 // 8, RESPONSE_BYTES_MAX // 2),
        (BUDGET_BYTES, 0),
        (BUDGET_BYTES + 1, 0),
    ],
)
def test_responses_get_smaller_as_the_budget_is_used(taken_bytes: int, expected: int) -> None:
    budget = ResponseBudget()
    assert budget.take(taken_bytes) == taken_bytes
    assert (budget.taken_bytes, budget.bytes_max()) == (taken_bytes, expected)


def test_any_number_of_responses_stay_within_the_budget() -> None:
    budget = ResponseBudget()
    for _ in range(10_000):
        budget.take(budget.bytes_max())
    assert budget.taken_bytes <= BUDGET_BYTES


def test_bytes_that_were_given_back_can_be_reserved_again() -> None:
    budget = ResponseBudget()
    budget.give_back(budget.take(BUDGET_BYTES))
    assert budget.bytes_max() == RESPONSE_BYTES_MAX


def start_fetch(lab: Lab, topic_id: UUID, **options: Any) -> Pending:
    """A fetch from the beginning of the topic's partition, without a session."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic_id": topic_id, "partitions": [partition]}]
    asked = {"min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, **options}
    return lab.admin.send("fetch", 18, topics=topics, **asked)


async def test_fetches_at_the_same_time_share_the_budget() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1, 1, 1)
        for _ in range(2):
            await lab.answered(start_fetch(lab, topic_id))
        assert lab.broker.response_budget.taken_bytes == 2 * 3 * BATCH_BYTES


@SHARES
@pytest.mark.interpreted
async def test_a_fetch_keeps_to_the_budget_and_gives_one_batch_at_least(
    monkeypatch: pytest.MonkeyPatch, bytes_max: int, offsets: list[int]
) -> None:
    monkeypatch.setattr(response_budget, "RESPONSE_BYTES_MAX", bytes_max)
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1, 1, 1)
        response = await lab.answered(start_fetch(lab, topic_id))
    assert record_offsets(response.responses[0].partitions[0].records) == offsets


async def test_a_fetch_waits_while_the_budget_is_used_up() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1)
        lab.broker.response_budget.take(BUDGET_BYTES)
        fetching = start_fetch(lab, topic_id, max_wait=100)
        assert not fetching.done
        await lab.advance(100)
        response = await lab.answered(fetching)
    assert not response.responses[0].partitions[0].records


@SHARES
@pytest.mark.interpreted
async def test_a_share_fetch_keeps_to_the_budget_and_gives_one_batch_at_least(
    monkeypatch: pytest.MonkeyPatch, bytes_max: int, offsets: list[int]
) -> None:
    monkeypatch.setattr(response_budget, "RESPONSE_BYTES_MAX", bytes_max)
    async with open_lab() as lab:
        partition = TopicIdPartition(await lab.create_topic(), 0)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        await ShareMember(lab.client(), [partition]).join("t")
        await lab.produce(partition.topic_id, 1, 1, 1)
        looks: list[Look] = []

        def encode(look: Look) -> EncodedBody:
            looks.append(look)
            return EncodedBody([])

        budget = lab.broker.response_budget
        operation = waiting_fetch(lab.broker, session_of(partition, group_id=GROUP), encode, budget)
        assert operation.try_complete()
        ((handout,),) = (look.handouts.values() for look in looks)
        assert operation.result().reserved_bytes == handout.size_bytes
        assert budget.taken_bytes == operation.result().reserved_bytes
    assert handout.record_count == len(offsets)
