"""Records that reach the delivery limit are counted, and logged in one line for each group and interval."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from barnabas.runtime.deadlines import Deadlines
from barnabas.share.leader.delivery_limit_reports import (
    GROUPS_TOLD_MAX,
    TELL_INTERVAL_MS,
    DeliveryLimitReports,
)
from barnabas.storage.topic_partition import TopicPartition
from tests.broker.network.edge_fakes import ManualClock, ManualTimers
from tests.conformance.conftest import Stage
from tests.conformance.dead_lettering import offsets_of_letters, use_dead_letters
from tests.conformance.harness import settle
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE

EVENT = "records reached the delivery limit and are archived"
COUNT = f"barnabas_share_delivery_limit_records_total{{group={GROUP},partition=0,topic=t}}"


def told(lines: list[Any]) -> list[tuple[object, object, object]]:
    return [(one["group"], one["records"], one["first"]) for one in lines if one["event"] == EVENT]


def counted(stage: Stage) -> float:
    return stage.lab.broker.metrics.snapshot()[COUNT]


async def deliver_twice(stage: Stage, record_count: int) -> None:
    """The group's limit is 2; the second time each record is released by its member."""
    await stage.lab.configure_group(GROUP, delivery_count_limit=2)
    await stage.produce(record_count)
    member = stage.member()
    for _ in range(2):
        await member.take(max_wait=1000)
        await member.acknowledge([(0, record_count - 1, RELEASE)])


async def test_releases_are_logged_in_one_line_at_the_end_of_the_interval(stage: Stage) -> None:
    with capture_logs() as lines:
        await deliver_twice(stage, 5)
        assert (told(lines), counted(stage)) == ([], 5)
        assert (await stage.offsets())[1] == 0
        await stage.lab.advance(TELL_INTERVAL_MS)
    assert told(lines) == [(GROUP, 5, "t-0 offset 0")]


async def test_expired_locks_are_logged_with_their_first_offset(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, delivery_count_limit=2)
    await stage.produce(4)
    member = stage.member()
    await member.take(max_wait=1000)
    with capture_logs() as lines:
        await member.acknowledge([(0, 0, ACCEPT), (1, 3, RELEASE)])
        await member.take(max_wait=1000)
        await stage.lab.advance(30_000 + TELL_INTERVAL_MS)
    assert told(lines) == [(GROUP, 3, "t-0 offset 1")]
    assert counted(stage) == 3


async def test_a_lost_connection_counts_as_well(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, delivery_count_limit=2)
    await stage.produce(2)
    with capture_logs() as lines:
        for number in (1, 2):
            member = stage.member(number)
            await member.join("t")
            await member.take(max_wait=1000)
            member.client.disconnect()
        await stage.lab.advance(TELL_INTERVAL_MS)
    assert told(lines) == [(GROUP, 2, "t-0 offset 0")]


async def test_a_reject_and_a_release_below_the_limit_are_not_logged(stage: Stage) -> None:
    await stage.produce(2)
    member = stage.member()
    await member.take(max_wait=1000)
    with capture_logs() as lines:
        await member.acknowledge([(0, 0, REJECT), (1, 1, RELEASE)])
        await stage.lab.advance(TELL_INTERVAL_MS)
    assert (told(lines), counted(stage)) == ([], 0)


async def test_the_end_of_the_broker_logs_the_waiting_lines(stage: Stage) -> None:
    with capture_logs() as lines:
        await deliver_twice(stage, 3)
        await stage.lab.restart()
    assert told(lines) == [(GROUP, 3, "t-0 offset 0")]


async def test_records_with_dead_letters_are_counted_once(stage: Stage) -> None:
    await use_dead_letters(stage.lab)
    with capture_logs() as lines:
        await deliver_twice(stage, 5)
        await settle()
        assert await offsets_of_letters(stage.lab) == [0, 1, 2, 3, 4]
        await stage.lab.advance(TELL_INTERVAL_MS)
    assert (told(lines), counted(stage)) == ([(GROUP, 5, "t-0 offset 0")], 5)


async def test_each_interval_has_its_own_line(stage: Stage) -> None:
    with capture_logs() as lines:
        await deliver_twice(stage, 2)
        await stage.lab.advance(TELL_INTERVAL_MS)
        await stage.produce(1)
        member = stage.member()
        for _ in range(2):
            ((first, last, _),) = await member.take(max_wait=1000)
            await member.acknowledge([(first, last, RELEASE)])
        await stage.lab.advance(TELL_INTERVAL_MS)
    assert [(group, count) for group, count, _ in told(lines)] == [(GROUP, 2), (GROUP, 1)]


def test_groups_beyond_the_maximum_share_a_line() -> None:
    clock = ManualClock()
    reports = DeliveryLimitReports(clock, Deadlines(clock, ManualTimers(clock).call_later))
    for number in range(GROUPS_TOLD_MAX + 2):
        reports.note(f"group-{number}", TopicPartition("t", 1), 7, 3)
    reports.note("group-0", TopicPartition("t", 1), 5, 1)
    reports.note("group-0", TopicPartition("u", 0), 2, 1)
    with capture_logs() as lines:
        reports.expire(TELL_INTERVAL_MS)
    assert told(lines)[0] == ("group-0", 5, "t-1 offset 5")
    assert len(told(lines)) == GROUPS_TOLD_MAX
    assert (lines[-1]["groups"], lines[-1]["records"]) == (2, 6)
    assert reports.next_deadline_ms() is None
