"""Settings of the group that the options change before the query joins."""

from __future__ import annotations

import pytest

from barnabas.client.cluster.cluster import Cluster as ClientCluster
from barnabas.client.network.address import parse_bootstrap
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.group_admin import GroupAdmin
from tests.clients.cluster import Cluster, confluent_admin, numbered, unique
from tests.clients.polling import eventually
from tests.pipeline.share_source.driving import query


def setting(cluster: Cluster, group: str, name: str) -> str:
    """The group's setting."""
    resource = confluent_admin.ConfigResource(confluent_admin.ResourceType.GROUP, group)
    (described,) = cluster.admin.describe_configs([resource]).values()
    value: str = described.result()[name].value
    return value


@pytest.mark.parametrize(
    ("start", "is_earlier"), [("earliest", True), ("latest", False), ("by_duration:PT1H", True)]
)
def test_a_new_group_begins_where_the_option_says(cluster: Cluster, start: str, is_earlier: bool) -> None:
    topic, group = cluster.topic(), unique("group")
    cluster.produce(topic, numbered(10))
    reading = query(cluster, group, topic, startingOffsets=start, isolation="read_committed")

    def is_begun() -> bool:
        """The group begins in the partition when it is first read: only then are records new to it."""
        cluster.produce(topic, ["later"])
        return reading.trigger() is not None

    with reading.running():
        eventually(is_begun, awaited="the group begins")
    assert set(reading.values) - {"later"} == (set(numbered(10)) if is_earlier else set())
    assert setting(cluster, group, "share.auto.offset.reset") == start
    assert setting(cluster, group, "share.isolation.level") == "read_committed"


async def test_a_setting_that_the_broker_refuses_is_an_error(cluster: Cluster) -> None:
    group = unique("group")
    way = ClientCluster(parse_bootstrap(cluster.bootstrap), client_id="test", request_timeout_ms=10_000)
    with pytest.raises(
        PipelineError, match=f"The group {group} cannot be set to share.record.lock.duration.ms=1:"
    ):
        await GroupAdmin(way, group).ensure_settings({"share.record.lock.duration.ms": "1"})
    way.close()


def test_the_limit_of_locks_of_a_group_bounds_its_batches(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group(partition_max_record_locks=100)
    cluster.produce(topic, numbered(900), linger_ms=0, batch_num_messages=50)
    reading = query(cluster, group, topic, recordLocks=300)
    with reading.running():
        reading.drain(900)
    assert 300 <= max(map(len, reading.sink.values())) < 400
    assert setting(cluster, group, "share.partition.max.record.locks") == "300"


def test_more_locks_than_the_broker_allows_are_an_error_that_names_its_setting(cluster: Cluster) -> None:
    reading = query(cluster, unique("group"), cluster.topic(), recordLocks=1_000_000)
    with (
        pytest.raises(PipelineError, match=r"recordLocks: the broker's group\.share\.max\.partition"),
        reading.running(available_now=True),
    ):
        pass
