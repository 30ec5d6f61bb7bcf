"""The share of memory that each response gets, and that fetches keep to it."""

from typing import Any, cast

import pytest

from barnabas.broker import response_budget
from barnabas.broker.leader.acknowledgements import Acknowledgements
from barnabas.broker.leader.share_fetch_operation import PartitionFetch, ShareFetchOperation, ShareFetchSpec
from barnabas.broker.response_budget import BUDGET_BYTES, RESPONSE_BYTES_MAX, ResponseBudget
from barnabas.broker.share.limits import AcquireMode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.harness import batch, open_lab
from tests.conformance.share_member import GROUP, ShareMember, record_offsets

BATCH_BYTES = len(batch(1, 0))
SHARES = pytest.mark.parametrize(
    ("bytes_max", "offsets"),
    [(1, [0]), (BATCH_BYTES, [0]), (2 * BATCH_BYTES, [0, 1]), (3 * BATCH_BYTES, [0, 1, 2])],
)
"""What a response may hold, and the records that come of three batches of one record each."""


@pytest.mark.parametrize(
    ("paused_count", "expected"),
    [
        (0, RESPONSE_BYTES_MAX),
        (31, RESPONSE_BYTES_MAX),
        (63, RESPONSE_BYTES_MAX // 2),
        (999, BUDGET_BYTES // 1000),
    ],
)
def test_responses_get_smaller_the_more_connections_are_not_read(paused_count: int, expected: int) -> None:
    budget = ResponseBudget()
    for _ in range(paused_count):
        budget.writing_paused()
    assert (budget.paused_count, budget.bytes_max()) == (paused_count, expected)


def test_a_connection_that_is_read_again_gives_its_share_back() -> None:
    budget = ResponseBudget()
    for _ in range(63):
        budget.writing_paused()
    for _ in range(63):
        budget.writing_resumed()
    assert budget.bytes_max() == RESPONSE_BYTES_MAX


@SHARES
async def test_a_fetch_keeps_to_the_budget_and_gives_one_batch_at_least(
    monkeypatch: pytest.MonkeyPatch, bytes_max: int, offsets: list[int]
) -> None:
    monkeypatch.setattr(response_budget, "RESPONSE_BYTES_MAX", bytes_max)
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1, 1, 1)
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        topics = [{"topic_id": topic_id, "partitions": [partition]}]
        asked: dict[str, Any] = {"min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
        response = await lab.answered(lab.admin.send("fetch", 18, topics=topics, **asked))
    assert record_offsets(response.responses[0].partitions[0].records) == offsets


@SHARES
async def test_a_share_fetch_keeps_to_the_budget_and_gives_one_batch_at_least(
    monkeypatch: pytest.MonkeyPatch, bytes_max: int, offsets: list[int]
) -> None:
    monkeypatch.setattr(response_budget, "RESPONSE_BYTES_MAX", bytes_max)
    async with open_lab() as lab:
        partition = TopicIdPartition(await lab.create_topic(), 0)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        await ShareMember(lab.client(), [partition]).join("t")
        await lab.produce(partition.topic_id, 1, 1, 1)
        spec = ShareFetchSpec(GROUP, "member", 1, 1 << 20, 500, 500, AcquireMode.BATCH_OPTIMIZED)
        operation = ShareFetchOperation(
            lab.broker.fetch_source, spec, [partition], Acknowledgements(), lambda fetched: fetched
        )
        assert operation.try_complete()
        fetched = cast("dict[TopicIdPartition, PartitionFetch]", operation.result())
    assert fetched[partition].handout.record_count == len(offsets)
