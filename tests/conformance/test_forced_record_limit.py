"""`share.record.limit.force`: no fetch of the group acquires more records than it asks for (KIP-1206)."""

from __future__ import annotations

import pytest

from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.conftest import Stage
from tests.conformance.harness import Lab, partitions_of
from tests.conformance.share_member import GROUP, ShareMember


@pytest.mark.parametrize("version", [1, 2])
async def test_a_fetch_that_cannot_ask_for_a_record_limit_has_one(stage: Stage, version: int) -> None:
    await stage.lab.configure_group(GROUP, record_limit_force="true")
    await stage.produce(10)
    assert await stage.member().take(max_records=3, version=version) == [(0, 2, 1)]
    assert await stage.member(2).take(max_records=4, version=version) == [(3, 6, 1)]


async def test_the_setting_counts_from_the_next_look_on(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, record_limit_force="true")
    await stage.produce(5)
    member = stage.member()
    assert await member.take(max_records=2) == [(0, 1, 1)]
    await stage.lab.configure_group(GROUP, record_limit_force="false")
    assert await member.take(max_records=2) == [(2, 4, 1)]


async def test_released_records_are_limited_as_well(stage: Stage) -> None:
    await stage.produce(6)
    first = stage.member()
    assert await first.take() == [(0, 5, 1)]
    await first.leave_session()
    await stage.lab.configure_group(GROUP, record_limit_force="true")
    assert await stage.member(2).take(max_records=2) == [(0, 1, 2)]
    assert await stage.member(3).take(max_records=1) == [(2, 2, 2)]


async def test_the_limit_holds_over_all_partitions_of_a_fetch(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 3)
    await lab.configure_group(GROUP, auto_offset_reset="earliest", record_limit_force="true")
    member = ShareMember(lab.client(), list(partitions_of(topic_id, 3)))
    await member.join("t")
    for index in range(3):
        await lab.produce(topic_id, 4, partition=index)
    acquired = (await member.fetch(max_records=6)).partitions
    counts = [sum(last - first + 1 for first, last, _ in one.acquired) for one in acquired.values()]
    assert sum(counts) == 6


async def test_with_an_order_of_keys_nothing_changes(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, record_limit_force="true", order="key")
    await stage.produce(6)
    assert await stage.member().take(max_records=2) == [(0, 1, 1)]


async def test_a_group_without_the_setting_gets_whole_batches(stage: Stage) -> None:
    await stage.lab.configure_group("other", auto_offset_reset="earliest")
    await stage.lab.configure_group(GROUP, record_limit_force="true")
    await stage.produce(5)
    other = ShareMember(stage.lab.client(), [TopicIdPartition(*stage.partition)], group_id="other")
    await other.join("t")
    assert await other.take(max_records=2) == [(0, 4, 1)]
