"""One request's acknowledgements, partition by partition."""

from __future__ import annotations

from unittest.mock import ANY
from uuid import UUID

import pytest

from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.runtime.completion import Completion
from barnabas.share.sessions.acknowledgements import (
    Acknowledgements,
    AckResult,
    Results,
    error_result,
    has_acknowledgements,
)
from barnabas.storage.errors import LogOffline
from tests.share.leader.leading import PARTITION, Leading, leading
from tests.share.sessions.session_building import session_of
from tests.storage.log_building import TOPIC_ID

OK = (0, None)


def batch(first_offset: int, last_offset: int, *types: int) -> AckBatch:
    return AckBatch(first_offset, last_offset, types or (1,))


def send(stage: Leading, *topics: AckTopic) -> Completion[Results]:
    def leadership_error(partition: TopicIdPartition) -> ApiError:
        is_topic = partition.topic_id == TOPIC_ID
        return ApiError(ErrorCode.unknown_topic_or_partition if is_topic else ErrorCode.unknown_topic_id)

    acknowledgements = Acknowledgements(stage.share_partitions, leadership_error)
    now_ms = stage.clock.monotonic_ms()
    return acknowledgements.take(
        session_of(PARTITION), topics, stage.limits, now_ms, version=2, is_renew_ack=False
    )


def by_partition(got: Completion[Results]) -> dict[TopicIdPartition, AckResult]:
    return {partition.partition: result for partition, result in got.result().items()}


async def holding() -> Leading:
    stage = await leading()
    stage.produce(4)
    stage.fetch(stage.lead())
    return stage


async def test_each_partition_has_its_own_result() -> None:
    stage = await holding()
    nowhere = UUID(int=99)
    partitions = [
        AckPartition(0, [batch(0, 1)]),
        AckPartition(1, [batch(0, 1)]),
        AckPartition(2, [batch(0, 1)]),
    ]
    got = send(stage, AckTopic(TOPIC_ID, partitions), AckTopic(nowhere, [AckPartition(0, [batch(0, 0)])]))
    codes = {one: code for one, (code, _) in by_partition(got).items()}
    assert codes == {
        PARTITION: ErrorCode.none,
        TopicIdPartition(TOPIC_ID, 1): ErrorCode.unknown_topic_or_partition,
        TopicIdPartition(TOPIC_ID, 2): ErrorCode.unknown_topic_or_partition,
        TopicIdPartition(nowhere, 0): ErrorCode.unknown_topic_id,
    }


async def test_partitions_without_batches_have_no_result() -> None:
    stage = await holding()
    topics = [AckTopic(TOPIC_ID, [AckPartition(0, [])])]
    assert send(stage, *topics).result() == {}
    assert not has_acknowledgements(topics)
    assert has_acknowledgements([AckTopic(TOPIC_ID, [AckPartition(0, []), AckPartition(1, [batch(0, 0)])])])


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (batch(3, 1), ErrorCode.invalid_request),
        (batch(0, 3, 4), ErrorCode.invalid_request),
        (batch(0, 9), ErrorCode.invalid_request),
        (batch(0, 3), ErrorCode.none),
    ],
)
async def test_each_wrong_batch_is_an_error_of_its_partition(one: AckBatch, code: ErrorCode) -> None:
    got = send(await holding(), AckTopic(TOPIC_ID, [AckPartition(0, [one])]))
    assert by_partition(got)[PARTITION][0] == code


@pytest.mark.interpreted
async def test_results_are_complete_when_everything_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = await holding()
    recorded = Completion[None]()

    def record(*_: object) -> Completion[None]:
        return recorded

    monkeypatch.setattr(stage.store.decisions_of(PARTITION, stage.log), "record", record)
    partitions = [AckPartition(0, [batch(0, 1)]), AckPartition(1, [batch(0, 1)])]
    got = send(stage, AckTopic(TOPIC_ID, partitions))
    seen: list[Results] = []
    got.when_done(lambda done: seen.append(done.result()))
    assert seen == []
    recorded.fail(LogOffline("broken"))
    assert [list(results.values()) for results in seen] == [
        [(ErrorCode.kafka_storage_error.value, "broken"), (ErrorCode.unknown_topic_or_partition.value, ANY)]
    ]


async def test_recorded_acknowledgements_need_no_waiting() -> None:
    got = send(await holding(), AckTopic(TOPIC_ID, [AckPartition(0, [batch(0, 3)])]))
    assert (got.done, by_partition(got)) == (True, {PARTITION: OK})


def test_a_response_has_the_error_and_its_message() -> None:
    assert error_result(ApiError(ErrorCode.invalid_request, "no")) == (42, "no")
    assert error_result(LogOffline("off")) == (ErrorCode.kafka_storage_error.value, "off")
    assert error_result(ZeroDivisionError()) == (ErrorCode.unknown_server_error.value, None)
