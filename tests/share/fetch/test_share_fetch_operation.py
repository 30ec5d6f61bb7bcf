"""A share fetch over several partitions: the time and the content of its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple, cast

import pytest

from barnabas.protocol.errors import ErrorCode, Withdrawn
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.varint import Buffer
from barnabas.runtime.completion import Completion
from barnabas.runtime.response_budget import EncodedBody, ResponseBudget
from barnabas.share.fetch.share_fetch import Look
from barnabas.share.fetch.share_fetch_operation import ShareFetchOperation
from barnabas.share.leader.handout import Handout
from barnabas.share.sessions.acknowledgements import Results
from barnabas.share.sessions.session import ShareSession
from tests.conformance.harness import Lab, batch, open_lab, partitions_of, settle
from tests.conformance.share_member import GROUP, ShareMember
from tests.share.fetch.waiting_fetch import waiting_fetch
from tests.share.sessions.session_building import session_of
from tests.storage.transactions import Producer

SIZE = len(batch(1, 0))
LATE_MS = 5_000
Answer = dict[TopicIdPartition, Handout]


def as_it_is(look: Look) -> EncodedBody:
    """In place of an encoded answer."""
    answer = {partition.partition: handout for partition, handout in look.results().items()}
    return EncodedBody(cast("list[Buffer]", [answer]))


class Stage(NamedTuple):
    """Topic `t` with two partitions that the group has begun to read."""

    lab: Lab
    zero: TopicIdPartition
    one: TopicIdPartition

    def operation(
        self,
        *partitions: TopicIdPartition,
        acknowledged: Completion[Results] | None = None,
        member_id: str = "member",
        session: ShareSession | None = None,
        response_budget: ResponseBudget | None = None,
        **changes: Any,
    ) -> ShareFetchOperation:
        if session is None:
            session = session_of(*(partitions or (self.zero, self.one)), group_id=GROUP, member_id=member_id)
        budget = response_budget or ResponseBudget()
        return waiting_fetch(self.lab.broker, session, as_it_is, budget, acknowledged=acknowledged, **changes)

    async def produce(self, partition: TopicIdPartition, *batch_sizes: int) -> None:
        await self.lab.produce(partition.topic_id, *batch_sizes, partition=partition.partition)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t", 2)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        partitions = list(partitions_of(topic_id, 2))
        await ShareMember(lab.client(), partitions).join("t")
        opening = lab.broker.logs.open_by_id(partitions)
        assert opening is not None
        await opening
        yield Stage(lab, *partitions)


def answered(operation: ShareFetchOperation) -> Answer:
    (answer,) = operation.result().buffers
    return cast("Answer", answer)


def counts(answer: Answer) -> list[int]:
    return [one.record_count for one in answer.values()]


async def test_a_fetch_waits_while_there_are_no_records(stage: Stage) -> None:
    operation = stage.operation()
    assert not operation.try_complete()
    operation.on_expire()
    assert answered(operation) == {}


@pytest.mark.parametrize(
    ("min_bytes", "complete"), [(0, True), (1, True), (2 * SIZE, True), (2 * SIZE + 1, False)]
)
async def test_min_bytes_counts_over_all_partitions(stage: Stage, min_bytes: int, complete: bool) -> None:
    for partition in (stage.zero, stage.one):
        await stage.produce(partition, 1)
    operation = stage.operation(min_bytes=min_bytes)
    assert operation.try_complete() is complete


async def test_min_bytes_of_0_waits_for_a_record_all_the_same(stage: Stage) -> None:
    assert not stage.operation(min_bytes=0).try_complete()


async def test_partitions_are_served_in_their_order_until_the_budget_is_used_up(stage: Stage) -> None:
    for partition in (stage.zero, stage.one):
        await stage.produce(partition, 2, 2, 2)
    operation = stage.operation(stage.one, stage.zero, max_records=5)
    assert operation.try_complete()
    assert list(answered(operation)) == [stage.one]
    later = stage.operation(stage.one, stage.zero, max_records=5)
    assert later.try_complete()
    assert counts(answered(later)) == [6]
    assert list(answered(later)) == [stage.zero]


async def test_the_second_partition_gets_the_rest_of_the_budget(stage: Stage) -> None:
    await stage.produce(stage.zero, 2)
    await stage.produce(stage.one, *[1] * 9)
    operation = stage.operation(max_records=5)
    assert operation.try_complete()
    assert counts(answered(operation)) == [2, 3]


@pytest.mark.parametrize(
    ("records_max", "min_bytes", "has_begun", "is_enough"),
    [
        (40, 1, True, True),
        (41, 1, True, False),
        (40, 2, True, False),
        (40, 1, False, False),
    ],
)
async def test_the_other_partitions_are_left_alone_if_one_has_all_records_and_the_group_has_begun(
    stage: Stage, records_max: int, min_bytes: int, has_begun: bool, is_enough: bool
) -> None:
    await stage.produce(stage.zero, 40)
    unknown = TopicIdPartition(stage.zero.topic_id, 9)
    partitions = stage.zero, unknown
    session = session_of(*partitions, group_id=GROUP)
    if has_begun:
        session.note_begun(session.revision)
    operation = stage.operation(*partitions, session=session, max_records=records_max, min_bytes=min_bytes)
    assert operation.try_complete()
    assert set(answered(operation)) == ({stage.zero} if is_enough else {stage.zero, unknown})


async def test_the_others_are_looked_at_if_all_records_of_the_first_have_been_aborted(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, isolation_level="read_committed")
    log = stage.lab.broker.logs.find(stage.zero)
    assert log is not None
    producer = Producer(log, 1)
    producer.send(40)
    producer.abort()
    await stage.produce(stage.one, 40)
    session = session_of(stage.zero, stage.one, group_id=GROUP)
    session.note_begun(session.revision)
    operation = stage.operation(session=session, max_records=40)
    assert operation.try_complete()
    assert counts(answered(operation)) == [40]


async def test_a_partition_in_the_order_of_keys_is_not_sure_to_have_all_records(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, order="key")
    await stage.produce(stage.zero, 40)
    unknown = TopicIdPartition(stage.zero.topic_id, 9)
    partitions = stage.zero, unknown
    session = session_of(*partitions, group_id=GROUP)
    session.note_begun(session.revision)
    operation = stage.operation(*partitions, session=session, max_records=40)
    assert operation.try_complete()
    assert unknown in answered(operation)


async def test_an_error_ends_the_wait_and_goes_with_the_records(stage: Stage) -> None:
    unknown = TopicIdPartition(stage.zero.topic_id, 9)
    operation = stage.operation(stage.zero, unknown)
    assert operation.try_complete()
    assert answered(operation)[unknown].error_code == ErrorCode.unknown_topic_or_partition
    await stage.produce(stage.zero, 1)
    again = stage.operation(stage.zero, unknown)
    assert again.try_complete()
    assert set(answered(again)) == {stage.zero, unknown}


async def test_a_late_error_ends_no_wait_but_goes_with_any_answer(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, auto_offset_reset="by_duration:PT1H")
    late = ErrorCode.offset_not_available
    assert not stage.operation().try_complete()
    await stage.produce(stage.zero, 1)
    operation = stage.operation()
    assert operation.try_complete()
    assert {one: got.error_code for one, got in answered(operation).items()} == {
        stage.zero: 0,
        stage.one: late,
    }


async def test_a_hurried_operation_acquires_the_available_records(stage: Stage) -> None:
    await stage.produce(stage.zero, 1)
    operation = stage.operation(min_bytes=1 << 20)
    assert not operation.try_complete()
    stage.lab.broker.purgatory.watch(operation, [stage.zero], stage.lab.clock.now_ms + 1000)
    operation.hurry()
    assert counts(answered(operation)) == [1]


async def test_a_withdrawn_operation_acquires_nothing(stage: Stage) -> None:
    operation = stage.operation()
    assert not operation.try_complete()
    stage.lab.broker.purgatory.watch(operation, [stage.zero], stage.lab.clock.now_ms + 1000)
    operation.withdraw()
    await stage.produce(stage.zero, 1)
    await settle()
    other = stage.operation(member_id="other")
    assert other.try_complete()


async def test_the_answer_waits_for_acknowledgements_that_are_being_recorded(stage: Stage) -> None:
    acknowledged = Completion[Results]()
    await stage.produce(stage.zero, 1)
    operation = stage.operation(acknowledged=acknowledged)
    assert operation.try_complete()
    assert not operation.done
    acknowledged.complete({})
    assert operation.done


@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.interpreted
async def test_a_defect_at_the_end_is_the_outcome_of_the_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, is_recorded: bool
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ShareFetchOperation, "hand_over", broken)
    acknowledged = Completion[Results]()
    if is_recorded:
        acknowledged.complete({})
    await stage.produce(stage.zero, 1)
    operation = stage.operation(acknowledged=acknowledged)
    assert operation.try_complete()
    if not is_recorded:
        acknowledged.complete({})
    assert isinstance(operation.error, ZeroDivisionError)


async def test_no_request_is_answered_twice(stage: Stage) -> None:
    acknowledged = Completion[Results]()
    operation = stage.operation(acknowledged=acknowledged)
    operation.on_expire()
    operation.withdraw()
    acknowledged.complete({})
    assert isinstance(operation.error, Withdrawn)


async def test_partitions_share_the_bytes_evenly(stage: Stage) -> None:
    partitions: Sequence[TopicIdPartition] = (stage.zero, stage.one)
    for partition in partitions:
        await stage.produce(partition, *[1] * 6)
    operation = stage.operation(max_bytes=6 * SIZE)
    assert operation.try_complete()
    assert counts(answered(operation)) == [3, 3]


async def test_locks_begin_when_the_records_are_read_and_not_when_the_look_begins(stage: Stage) -> None:
    """Another request has read so much in this pass that these two wait for the next one."""
    await stage.produce(stage.zero, 1, 1)
    budget = ResponseBudget()
    budget.read_turns.read(1 << 30)
    waiting = [
        stage.operation(stage.zero, member_id=member_id, response_budget=budget, max_records=1)
        for member_id in ("one", "two")
    ]
    assert [operation.try_complete() for operation in waiting] == [False, False]
    stage.lab.clock.now_ms += LATE_MS
    await settle()
    for offset, operation in enumerate(waiting):
        assert [fetched.acquired for fetched in answered(operation).values()] == [[(offset, offset, 1)]]
    leader = stage.lab.broker.fetch_source.leader_for_fetch(GROUP, stage.zero)
    assert leader is not None
    assert leader.next_deadline_ms() == stage.lab.clock.now_ms + leader.limits().lock_duration_ms
    assert leader.counts.fetch_ms.total == 0
