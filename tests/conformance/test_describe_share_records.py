"""DescribeShareRecords: the state of each record for a group, page by page, with both stores."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_inspection import DESCRIBED_RANGES_MAX, Wait
from tests.conformance.conftest import Stage, with_log_store_only, with_topic_store_only
from tests.conformance.harness import WALL_START_MS, settle
from tests.conformance.records_of_a_group import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    NEW,
    PASSED,
    ask_to_describe,
    describe,
)
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE, RENEW, ShareMember
from tests.conformance.test_order_of_keys import members, produce, taken
from tests.conformance.test_read_committed import log_of
from tests.storage.transactions import Producer

LOCK_MS = 30_000


async def begun(stage: Stage, *batch_sizes: int, number: int = 1) -> ShareMember:
    """A member of a group that has begun, with these batches in the topic."""
    await stage.produce(*batch_sizes)
    member = stage.member(number)
    await member.fetch(max_records=0)
    await settle()
    return member


async def test_each_state_is_described_with_its_deliveries(stage: Stage) -> None:
    member = await begun(stage, 2, 2, 2, 2, 2)
    assert await member.take(6) == [(0, 5, 1)]
    await member.acknowledge([(2, 2, ACCEPT), (3, 3, REJECT), (4, 4, RELEASE)])
    page = await describe(stage.lab, stage.partition)
    assert page.ranges == [
        (0, 1, ACQUIRED, 1),
        (2, 2, ACKNOWLEDGED, 1),
        (3, 3, ARCHIVED, 1),
        (4, 4, AVAILABLE, 1),
        (5, 5, ACQUIRED, 1),
        (6, 9, NEW, 0),
    ]
    assert (page.response.start_offset, page.response.end_offset) == (0, 6)
    assert page.response.next_offset == -1
    assert page.waits == {}


async def test_a_holder_is_told_since_when_also_after_a_renewal(stage: Stage) -> None:
    member = await begun(stage, 1, 1, 1)
    await member.take(1)
    await stage.lab.advance(10_000)
    await member.take(2)
    await member.acknowledge([(0, 2, RENEW)], renew=True)
    since = [one.holder.acquired_ms for one in (await describe(stage.lab, stage.partition)).response.ranges]
    assert since == [stage.lab.clock.wall_ms() - 10_000, stage.lab.clock.wall_ms()]
    await stage.lab.advance(LOCK_MS)
    await member.take(1)
    first, *_ = (await describe(stage.lab, stage.partition)).response.ranges
    assert first.holder.acquired_ms == stage.lab.clock.wall_ms()


async def test_the_times_of_a_lock_do_not_change_with_the_moments_at_which_both_clocks_are_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = await begun(stage, 1)
    await member.take(1)
    (held,) = (await describe(stage.lab, stage.partition)).response.ranges
    wall_ms = stage.lab.clock.wall_ms()
    monkeypatch.setattr(stage.lab.clock, "wall_ms", lambda: wall_ms + 1)
    assert (await describe(stage.lab, stage.partition)).response.ranges == (held,)


async def test_nothing_is_acquired_or_changed_by_a_look(stage: Stage) -> None:
    member = await begun(stage, 1)
    await member.take()
    await stage.produce(3)
    before = await describe(stage.lab, stage.partition)
    _, (first, last, state, _) = before.ranges
    assert (last - first, state) == (2, NEW)
    assert await describe(stage.lab, stage.partition) == before
    assert await member.take() == [(first, last, 1)]


async def test_a_group_that_has_not_begun_has_no_start_offset_and_no_states(stage: Stage) -> None:
    await stage.produce(3)
    page = await describe(stage.lab, stage.partition)
    assert (page.response.start_offset, page.response.end_offset) == (-1, -1)
    assert (page.response.log_start_offset, page.response.high_watermark) == (0, 3)
    assert page.ranges == []
    assert page.response.next_offset == -1


async def test_records_that_were_deleted_are_not_shown(stage: Stage) -> None:
    member = await begun(stage, 4)
    await member.take()
    await stage.lab.delete_records("t", 2)
    page = await describe(stage.lab, stage.partition, 0)
    assert page.response.log_start_offset == 2
    assert page.ranges == [(2, 3, ACQUIRED, 1)]


async def test_the_holder_is_named_with_its_client_and_the_rest_of_its_lock(stage: Stage) -> None:
    member = await begun(stage, 3)
    await member.take()
    await stage.lab.advance(10_000)
    page = await describe(stage.lab, stage.partition)
    assert page.holders == {0: ("member-1", LOCK_MS - 10_000)}
    holder = page.response.ranges[0].holder
    assert (holder.client_id, holder.client_host) == ("client", "/127.0.0.1")
    assert holder.lock_deadline_ms == stage.lab.clock.wall_ms() + LOCK_MS - 10_000


async def test_a_holder_that_is_no_member_has_no_client(stage: Stage) -> None:
    await begun(stage, 3)
    stranger = stage.member(2)
    await stranger.take()
    holder = (await describe(stage.lab, stage.partition)).response.ranges[0].holder
    assert (holder.member_id, holder.client_id, holder.client_host) == ("member-2", None, None)


async def test_pages_follow_each_other_without_a_gap(stage: Stage) -> None:
    member = await begun(stage, 10)
    await member.take()
    await member.acknowledge([(one, one, ACCEPT) for one in range(1, 10, 2)])
    whole = await describe(stage.lab, stage.partition)
    assert len(whole.ranges) == 10
    pages = [await describe(stage.lab, stage.partition, max_ranges=3)]
    while (offset := pages[-1].response.next_offset) >= 0:
        pages.append(await describe(stage.lab, stage.partition, offset, max_ranges=3))
    assert [len(page.ranges) for page in pages] == [3, 3, 3, 1]
    assert [one for page in pages for one in page.ranges] == whole.ranges


async def test_a_page_may_begin_in_the_middle_of_a_range(stage: Stage) -> None:
    member = await begun(stage, 5)
    await member.take()
    assert (await describe(stage.lab, stage.partition, 3)).ranges == [(3, 4, ACQUIRED, 1)]
    assert (await describe(stage.lab, stage.partition, 1_000)).ranges == []


@with_log_store_only
async def test_the_last_cause_comes_from_the_control_records(stage: Stage) -> None:
    member = await begun(stage, 6)
    await member.take()
    await member.acknowledge([(1, 1, ACCEPT), (2, 2, REJECT), (3, 3, RELEASE)])
    await stage.lab.advance(LOCK_MS)
    page = await describe(stage.lab, stage.partition)
    assert page.ranges[:6] == [
        (0, 0, AVAILABLE, 1),
        (1, 1, ACKNOWLEDGED, 1),
        (2, 2, ARCHIVED, 1),
        (3, 3, AVAILABLE, 1),
        (4, 5, AVAILABLE, 1),
    ]
    assert page.causes == {
        0: (Cause.LOCK_EXPIRED, "member-1"),
        1: (Cause.ACCEPT, "member-1"),
        2: (Cause.REJECT, "member-1"),
        3: (Cause.RELEASE, "member-1"),
        4: (Cause.LOCK_EXPIRED, "member-1"),
    }
    times = [one.last_change.timestamp_ms - WALL_START_MS for one in page.response.ranges]
    assert times[0] - times[1] == LOCK_MS


@with_log_store_only
async def test_the_cause_of_an_earlier_delivery_stays_while_a_record_is_held_again(stage: Stage) -> None:
    member = await begun(stage, 2)
    await member.take()
    await member.acknowledge([(0, 1, RELEASE)])
    assert await member.take() == [(0, 1, 2)]
    page = await describe(stage.lab, stage.partition)
    assert page.ranges == [(0, 1, ACQUIRED, 2)]
    assert page.causes == {0: (Cause.RELEASE, "member-1")}


@with_log_store_only
async def test_records_before_the_start_offset_show_how_they_ended(stage: Stage) -> None:
    member = await begun(stage, 4)
    await member.take()
    await member.acknowledge([(0, 1, ACCEPT), (2, 2, REJECT)])
    page = await describe(stage.lab, stage.partition, 0)
    assert page.response.start_offset == 3
    assert page.ranges[:3] == [(0, 1, ACKNOWLEDGED, 1), (2, 2, ARCHIVED, 1), (3, 3, ACQUIRED, 1)]
    without = await describe(stage.lab, stage.partition, 0, include_last_changes=False)
    assert without.ranges[:2] == [(0, 2, PASSED, -1), (3, 3, ACQUIRED, 1)]


@with_log_store_only
async def test_causes_survive_a_kill(stage: Stage) -> None:
    member = await begun(stage, 3)
    await member.take()
    await member.acknowledge([(1, 1, REJECT), (2, 2, RELEASE)])
    await stage.lab.crash()
    page = await describe(stage.lab, stage.partition)
    assert page.ranges == [(0, 0, AVAILABLE, 0), (1, 1, ARCHIVED, 1), (2, 2, AVAILABLE, 1)]
    assert page.causes == {1: (Cause.REJECT, "member-1"), 2: (Cause.RELEASE, "member-1")}


@with_log_store_only
async def test_causes_from_before_a_reset_do_not_count(stage: Stage) -> None:
    member = await begun(stage, 3)
    await member.take()
    await member.acknowledge([(1, 2, REJECT)])
    await member.leave_session()
    await member.heartbeat(-1)
    topic = {"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}
    answer = await stage.lab.admin.ask("alter_share_group_offsets", group_id=GROUP, topics=[topic])
    assert answer.error_code is ErrorCode.none
    await member.join("t")
    again = stage.member()
    while not await again.take():
        await settle()
    await again.acknowledge([(0, 0, RELEASE)])
    await stage.lab.advance(LOCK_MS)
    page = await describe(stage.lab, stage.partition)
    assert page.causes == {0: (Cause.RELEASE, "member-1"), 1: (Cause.LOCK_EXPIRED, "member-1")}


@with_topic_store_only
async def test_with_the_state_topic_the_cause_is_unknown(stage: Stage) -> None:
    member = await begun(stage, 3)
    await member.take()
    await member.acknowledge([(1, 1, ACCEPT)])
    page = await describe(stage.lab, stage.partition)
    assert page.ranges == [(0, 0, ACQUIRED, 1), (1, 1, ACKNOWLEDGED, 1), (2, 2, ACQUIRED, 1)]
    changes = [one.last_change for one in page.response.ranges]
    assert changes[1] is None
    assert [(one.cause, one.timestamp_ms) for one in changes if one is not None] == [(0, -1)] * 2


async def test_a_record_behind_another_of_its_key_waits_for_it(stage: Stage) -> None:
    one, _ = await members(stage)
    (base,) = await produce(stage, ["a", "a", "b", None])
    await taken(one, max_records=1)
    page = await describe(stage.lab, stage.partition)
    assert page.ranges == [
        (base, base, ACQUIRED, 1),
        (base + 1, base + 1, AVAILABLE, 0),
        (base + 2, base + 3, AVAILABLE, 0),
    ]
    assert page.waits == {base + 1: Wait.KEY}
    await stage.lab.configure_group(GROUP, order="none")
    assert (await describe(stage.lab, stage.partition)).waits == {base + 1: Wait.ORDER_CHANGE}


async def test_records_of_an_open_transaction_wait_for_its_end(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, isolation_level="read_committed")
    member = await begun(stage, 1)
    await member.take()
    log = await log_of(stage)
    Producer(log, 1).send(2)
    page = await describe(stage.lab, stage.partition)
    first, last, state, _ = page.ranges[-1]
    assert (last - first, state) == (1, NEW)
    assert page.waits == {first: Wait.TRANSACTION}


async def test_new_records_wait_while_the_window_is_full(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, partition_max_record_locks=100)
    member = await begun(stage, 100, 5)
    await member.take(100)
    page = await describe(stage.lab, stage.partition)
    assert page.ranges == [(0, 99, ACQUIRED, 1), (100, 104, NEW, 0)]
    assert page.waits == {100: Wait.WINDOW}


async def test_the_operations_on_the_group_are_named_if_asked_for(stage: Stage) -> None:
    await begun(stage, 1)
    page = await describe(stage.lab, stage.partition)
    assert page.response.authorized_operations == -(2**31)
    page = await describe(stage.lab, stage.partition, include_authorized_operations=True)
    assert page.response.authorized_operations & 1 << 8  # DESCRIBE


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"max_ranges": 0}, ErrorCode.invalid_request),
        ({"max_ranges": DESCRIBED_RANGES_MAX + 1}, ErrorCode.invalid_request),
        ({"first_offset": -2}, ErrorCode.invalid_request),
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"group_id": "unknown"}, ErrorCode.group_id_not_found),
    ],
)
async def test_a_wrong_request_is_refused_with_a_message(
    stage: Stage, values: dict[str, object], code: ErrorCode
) -> None:
    await begun(stage, 1)
    response = await ask_to_describe(stage.lab, stage.partition, **values)  # type: ignore[arg-type]
    assert response.error_code is code
    assert response.error_message
    assert (response.start_offset, response.next_offset, response.ranges) == (-1, -1, ())


async def test_partitions_that_the_group_does_not_read_are_told_from_missing_ones(stage: Stage) -> None:
    await begun(stage, 1)
    other = TopicIdPartition(await stage.lab.create_topic("other"), 0)
    response = await ask_to_describe(stage.lab, other)
    assert response.error_code is ErrorCode.resource_not_found
    assert response.error_message == f"The share group {GROUP} does not read other-0."
    missing = await ask_to_describe(stage.lab, other._replace(partition=7))
    assert missing.error_code is ErrorCode.unknown_topic_or_partition
    unknown = await ask_to_describe(stage.lab, TopicIdPartition(UUID(int=4711), 0))
    assert unknown.error_code is ErrorCode.unknown_topic_id
