"""DescribeShareRecordHistory: the steps in the history of one record, newest first, page by page."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

import pytest

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_history import StepKind
from barnabas.protocol.record_inspection import DescribedState
from barnabas.share.log_store import history_search
from tests.conformance.conftest import Stage, with_log_store_only, with_topic_store_only
from tests.conformance.harness import WALL_START_MS, settle
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE
from tests.conformance.test_describe_share_records import LOCK_MS, begun

ACCEPTED = ("ACCEPT", "ACKNOWLEDGED", 2, "member-1")
RELEASED = ("RELEASE", "AVAILABLE", 1, "member-1")


class Step(NamedTuple):
    """A change: its cause, the state behind it, the delivery count, and the member."""

    cause: str
    state: str
    delivery_count: int
    member_id: str | None


async def ask(
    stage: Stage,
    offset: int,
    before_offset: int = -1,
    *,
    partition: TopicIdPartition | None = None,
    **other: Any,
) -> Any:
    """The response."""
    asked = partition or stage.partition
    given: dict[str, Any] = {
        "group_id": GROUP,
        "topic_id": asked.topic_id,
        "partition_index": asked.partition,
        **other,
    }
    return await stage.lab.admin.ask(
        "describe_share_record_history", offset=offset, before_offset=before_offset, **given
    )


async def changes(stage: Stage, offset: int) -> list[Step]:
    """The steps with a cause, oldest first, of all pages."""
    found: list[Step] = []
    before_offset = -1
    while True:
        response = await ask(stage, offset, before_offset)
        assert response.error_code is ErrorCode.none, response
        assert response.is_recorded
        found += [
            Step(Cause(one.cause).name, DescribedState(one.state).name, one.delivery_count, one.member_id)
            for one in response.steps
            if one.cause
        ]
        before_offset = response.next_offset
        if before_offset == -1:
            return found[::-1]


async def released_and_accepted(stage: Stage) -> None:
    """Record 1 is released, delivered again and accepted; record 0 is rejected."""
    member = await begun(stage, 2)
    await member.take()
    await member.acknowledge([(0, 0, REJECT), (1, 1, RELEASE)])
    assert await member.take() == [(1, 1, 2)]
    await member.acknowledge([(1, 1, ACCEPT)])


@with_log_store_only
async def test_all_changes_of_a_record_are_told_and_those_of_others_are_not(stage: Stage) -> None:
    await released_and_accepted(stage)
    assert await changes(stage, 1) == [RELEASED, ACCEPTED]
    assert await changes(stage, 0) == [("REJECT", "ARCHIVED", 1, "member-1")]


@with_log_store_only
async def test_the_history_survives_a_kill(stage: Stage) -> None:
    await released_and_accepted(stage)
    await stage.lab.crash()
    assert await changes(stage, 1) == [RELEASED, ACCEPTED]


@with_log_store_only
async def test_an_expired_lock_names_the_member_that_lost_it_and_the_time(stage: Stage) -> None:
    member = await begun(stage, 1)
    await member.take()
    await stage.lab.advance(LOCK_MS)
    assert await changes(stage, 0) == [("LOCK_EXPIRED", "AVAILABLE", 1, "member-1")]
    (step,) = [one for one in (await ask(stage, 0)).steps if one.cause]
    assert step.timestamp_ms >= WALL_START_MS + LOCK_MS


@with_log_store_only
async def test_a_delay_is_a_condition_of_the_step(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, retry_backoff_ms=5_000)
    member = await begun(stage, 1)
    await member.take()
    await member.acknowledge([(0, 0, RELEASE)])
    (step,) = [one for one in (await ask(stage, 0)).steps if one.cause]
    assert step.condition is not None


@with_log_store_only
async def test_a_page_reads_a_limited_number_of_control_records(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await released_and_accepted(stage)
    monkeypatch.setattr(history_search, "SEARCHED_RECORDS_MAX", 1)
    first = await ask(stage, 1)
    assert len(first.steps) <= 1
    assert first.next_offset > 1
    assert await changes(stage, 1) == [RELEASED, ACCEPTED]


@with_log_store_only
async def test_pages_end_at_a_number_of_bytes_too(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    await released_and_accepted(stage)
    monkeypatch.setattr(history_search, "SEARCHED_BYTES_MAX", 1)
    assert len((await ask(stage, 1)).steps) <= 1
    assert await changes(stage, 1) == [RELEASED, ACCEPTED]


@with_log_store_only
async def test_a_reset_is_a_checkpoint_of_the_history(stage: Stage) -> None:
    member = await begun(stage, 2)
    await member.take()
    await member.acknowledge([(0, 1, ACCEPT)])
    await member.leave_session()
    await member.heartbeat(-1)
    topic = {"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}
    answer = await stage.lab.admin.ask("alter_share_group_offsets", group_id=GROUP, topics=[topic])
    assert answer.error_code is ErrorCode.none
    await settle()
    newest = (await ask(stage, 0)).steps[0]
    assert (newest.kind, newest.state, newest.cause) == (StepKind.CHECKPOINT, DescribedState.NEW, Cause.NONE)


@with_topic_store_only
async def test_with_the_state_topic_no_history_is_kept(stage: Stage) -> None:
    await released_and_accepted(stage)
    response = await ask(stage, 1)
    assert response.error_code is ErrorCode.none
    assert (response.is_recorded, response.steps, response.next_offset) == (False, (), -1)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"group_id": "other"}, ErrorCode.group_id_not_found),
        ({"topic_id": UUID(int=7)}, ErrorCode.unknown_topic_id),
        ({"partition_index": 9}, ErrorCode.unknown_topic_or_partition),
    ],
)
async def test_an_unknown_name_is_refused(stage: Stage, changed: dict[str, Any], code: ErrorCode) -> None:
    await begun(stage, 1)
    response = await ask(stage, 0, **changed)
    assert (response.error_code, response.steps, response.next_offset) == (code, (), -1)


async def test_a_negative_offset_is_refused(stage: Stage) -> None:
    await begun(stage, 1)
    response = await ask(stage, -1)
    assert response.error_code is ErrorCode.invalid_request
