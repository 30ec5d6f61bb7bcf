"""The look-up of leaders for a fetch."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.completion import Completion
from barnabas.share.fetch.fetch_source import LateError
from barnabas.storage.errors import LogOffline
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.harness import open_lab, settle
from tests.conformance.share_member import GROUP


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_lab() as lab:
        yield await make_stage(lab)


async def opened(stage: Stage) -> SharePartitionKey:
    """The group's key, its log open."""
    opening = stage.lab.broker.logs.open_by_id([stage.partition])
    if opening is not None:
        await opening
    return SharePartitionKey(GROUP, *stage.partition)


@pytest.mark.parametrize(
    ("partition", "code"),
    [
        (TopicIdPartition(UUID(int=1), 0), ErrorCode.unknown_topic_id),
        (9, ErrorCode.unknown_topic_or_partition),
        (-1, ErrorCode.unknown_topic_or_partition),
    ],
)
async def test_missing_topics_and_partitions_are_lasting_errors(
    stage: Stage, partition: TopicIdPartition | int, code: ErrorCode
) -> None:
    if isinstance(partition, int):
        partition = TopicIdPartition(stage.partition.topic_id, partition)
    with pytest.raises(ApiError) as error:
        stage.lab.broker.fetch_source.leader_for_fetch(GROUP, partition)
    assert error.value.code is code
    assert not isinstance(error.value, LateError)


@pytest.mark.parametrize("group_id", ["nowhere", "known"])
async def test_a_group_without_state_gets_a_late_error(stage: Stage, group_id: str) -> None:
    other = stage.member()
    other.group_id = "known"
    await other.join("elsewhere")
    with pytest.raises(LateError) as error:
        stage.lab.broker.fetch_source.leader_for_fetch(group_id, stage.partition)
    assert error.value.code is ErrorCode.unknown_server_error


async def test_a_leader_is_begun_when_it_is_fetched_from_and_not_before(stage: Stage) -> None:
    key = await opened(stage)
    source = stage.lab.broker.fetch_source
    leader = source.lead(key)
    assert leader is not None
    assert not leader.core.is_initialised
    await stage.lab.produce(stage.partition.topic_id, 1)
    assert source.leader_for_fetch(GROUP, stage.partition) is leader
    assert leader.core.is_initialised


async def test_a_leader_of_an_empty_log_is_begun_when_the_group_has_recorded_its_start(stage: Stage) -> None:
    key = await opened(stage)
    source, groups = stage.lab.broker.fetch_source, stage.lab.broker.groups.share
    assert source.leader_for_fetch(GROUP, stage.partition) is None
    assert not groups.starts_at_zero(key)
    await settle()
    assert groups.starts_at_zero(key)
    leader = source.leader_for_fetch(GROUP, stage.partition)
    assert leader is not None
    assert (leader.core.spso, leader.log.log_end_offset) == (0, 0)


async def test_a_closed_log_is_a_fault(stage: Stage) -> None:
    with pytest.raises(LogOffline):
        stage.lab.broker.fetch_source.lead(SharePartitionKey(GROUP, *stage.partition))


async def test_a_log_that_went_offline_under_its_leader_is_a_fault(stage: Stage) -> None:
    key = await opened(stage)
    await stage.lab.produce(stage.partition.topic_id, 1)
    stage.lab.broker.fetch_source.lead(key)
    filesystem = stage.lab.filesystem
    filesystem.write_error, filesystem.failing_suffix = errno.EIO, ".log"
    assert stage.lab.broker.fetch_source.leader_for_fetch(GROUP, stage.partition) is None
    filesystem.write_error = None
    with pytest.raises(LogOffline):
        stage.lab.broker.fetch_source.leader_for_fetch(GROUP, stage.partition)


async def test_while_the_state_is_reset_there_is_no_leader(stage: Stage) -> None:
    key = await opened(stage)
    await stage.lab.produce(stage.partition.topic_id, 1)
    reset = Completion[None]()
    stage.lab.broker.share_partitions.hold_back(key, reset)
    source = stage.lab.broker.fetch_source
    assert source.leader_for_fetch(GROUP, stage.partition) is None
    reset.complete(None)
    assert source.leader_for_fetch(GROUP, stage.partition) is not None


async def test_a_partition_may_be_described_once_its_reset_has_ended(stage: Stage) -> None:
    key = await opened(stage)
    reset = Completion[None]()
    stage.lab.broker.share_partitions.hold_back(key, reset)
    describing = stage.lab.admin.send(
        "describe_share_group_offsets", groups=[{"group_id": GROUP, "topics": None}]
    )
    await settle()
    assert not describing.done
    reset.complete(None)
    assert (await stage.lab.answered(describing)).groups[0].topics


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_the_upper_offset_bounds_the_records_that_the_group_may_read(
    stage: Stage, isolation: str
) -> None:
    await stage.lab.configure_group(GROUP, isolation_level=isolation)
    await stage.produce(3)
    leader = stage.lab.broker.fetch_source.lead(await opened(stage))
    assert leader is not None
    read_committed = stage.lab.broker.fetch_source.config_of(GROUP).read_committed
    assert read_committed == (isolation == "read_committed")
    assert leader.upper_offset(read_committed=read_committed) == 3
