"""The broker as a whole: opening, closing, and the events between its parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.node.opening import open_broker
from barnabas.coordinator.metadata.scram_credentials import Upsertion
from barnabas.protocol.identity import SharePartitionKey
from barnabas.storage.errors import DirectoryLocked
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.harness import DATA_DIRECTORY, LabClock, open_lab, settle
from tests.conformance.share_member import GROUP
from tests.storage.memory_filesystem import MemoryFileSystem


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_lab() as lab:
        yield await make_stage(lab)


async def test_two_brokers_do_not_share_a_directory(stage: Stage) -> None:
    config = BrokerConfig({"log.dirs": DATA_DIRECTORY})
    with pytest.raises(DirectoryLocked):
        await open_broker(config, clock=LabClock(), filesystem=stage.lab.filesystem)


async def test_two_brokers_in_one_process_know_nothing_of_each_other() -> None:
    async with open_lab() as one, open_lab() as other:
        await one.create_topic("t")
        assert one.broker.cluster_id != other.broker.cluster_id
        assert "t" not in other.broker.metadata.image.topics_by_name


async def test_a_failed_start_releases_the_directory() -> None:
    filesystem = MemoryFileSystem()
    config = BrokerConfig({"log.dirs": DATA_DIRECTORY})
    broker = await open_broker(config, clock=LabClock(), filesystem=filesystem)
    await broker.close()
    filesystem.read_error = 5
    with pytest.raises(Exception, match=r".+"):
        await open_broker(config, clock=LabClock(), filesystem=filesystem)
    assert filesystem.locks == set()


async def test_the_cluster_keeps_its_id_and_the_node_counts_its_starts(stage: Stage) -> None:
    before = stage.lab.broker
    await stage.lab.restart()
    after = stage.lab.broker
    assert after.cluster_id == before.cluster_id
    assert after.metadata.node_epoch == before.metadata.node_epoch + 1


async def test_closing_leaves_no_task_and_no_file_behind() -> None:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await stage.produce(1)
        member = stage.member()
        await member.take()
        pending = member.start_fetch(max_wait=1000)
        await settle()
        withdraw = getattr(pending.reply, "withdraw", None)
        assert withdraw is not None
        withdraw()
    await settle()
    assert lab.filesystem.locks == set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_lost_connection_releases_only_its_sessions_partitions(stage: Stage) -> None:
    await stage.produce(1)
    member = stage.member()
    await member.take()
    stage.lab.broker.connection_closed(4711)
    assert await stage.member(2).take() == []
    member.client.disconnect()
    member.client.disconnect()
    assert await stage.member(3).take() == [(0, 0, 2)]


async def test_a_leader_is_loaded_for_every_caller(stage: Stage) -> None:
    key = SharePartitionKey(GROUP, *stage.partition)
    leader = await stage.lab.broker.fetch_source.load_leader(key)
    assert await stage.lab.broker.fetch_source.load_leader(key) is leader


async def test_a_deleted_topic_ends_its_leaders(stage: Stage) -> None:
    await stage.produce(1)
    await stage.member().take()
    broker = stage.lab.broker
    (leader,) = broker.share_partitions
    await stage.lab.delete_topic("t")
    assert leader.closed
    assert list(broker.share_partitions) == []


async def test_altered_settings_reach_the_open_logs(stage: Stage) -> None:
    await stage.produce(1)
    setting = {"name": "retention.ms", "config_operation": 0, "value": "1234"}
    resource = {"resource_type": 2, "resource_name": "t", "configs": [setting]}
    await stage.lab.admin.ask("incremental_alter_configs", resources=[resource])
    log = stage.lab.broker.logs.get(stage.lab.broker.metadata.image.topics_by_name["t"], 0)
    assert log is not None
    assert log.config.retention_ms == 1234


async def test_a_groups_limits_follow_its_settings(stage: Stage) -> None:
    assert stage.lab.broker.group_configs.limits_of(GROUP).delivery_count_max == 5
    await stage.lab.configure_group(GROUP, delivery_count_limit=7)
    assert stage.lab.broker.group_configs.limits_of(GROUP).delivery_count_max == 7


async def test_a_start_warns_that_no_client_is_asked_for_a_stored_password(stage: Stage) -> None:
    for mechanism in (1, 2):
        stage.lab.broker.metadata.alter_scram_credentials([], [Upsertion("a", mechanism, 4096, b"s", b"p")])
    with capture_logs() as lines:
        await stage.lab.restart()
    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert [(line["event"], line["users"]) for line in warnings] == [
        ("SCRAM users are stored, but no client is asked for a password", 1)
    ]
