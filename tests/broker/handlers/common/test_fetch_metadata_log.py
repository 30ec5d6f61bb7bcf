"""Fetch of the metadata log: the followers, the errors, and the error for everyone else."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Client, Lab, open_lab
from tests.conformance.metadata_follower import MetadataFollower, partition_of


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    """A leader in its second epoch."""
    async with open_lab() as lab:
        await lab.restart()
        yield lab


def changes(**changed: Any) -> dict[str, Any]:
    return changed


def one_topic(**partition: Any) -> dict[str, Any]:
    return {"topic_id": METADATA_TOPIC_ID, "partitions": [partition]}


async def fetch(lab: Lab, **changed: Any) -> Any:
    return await lab.answered(MetadataFollower(lab).start_fetch(max_wait=0, **changed))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        (changes(current_leader_epoch=0), ErrorCode.fenced_leader_epoch),
        (changes(current_leader_epoch=2), ErrorCode.unknown_leader_epoch),
        (changes(fetch_offset=-1), ErrorCode.invalid_request),
        (changes(last_fetched_epoch=-1), ErrorCode.invalid_request),
        (changes(last_fetched_epoch=2), ErrorCode.invalid_request),
    ],
)
async def test_an_error_of_the_partition_has_the_current_leader(
    lab: Lab, changed: dict[str, Any], error: ErrorCode
) -> None:
    found = partition_of(await fetch(lab, **changed))
    assert (found.error_code, found.high_watermark) == (error, -1)
    assert found.current_leader.leader_epoch == 1


async def test_a_negative_wait_is_refused(lab: Lab) -> None:
    pending = MetadataFollower(lab).start_fetch(max_wait=-1)
    assert partition_of(await lab.answered(pending)).error_code is ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        (changes(cluster_id="another"), ErrorCode.inconsistent_cluster_id),
        (changes(topics=[one_topic(partition=1)]), ErrorCode.invalid_request),
        (changes(topics=[one_topic(partition=0), one_topic(partition=0)]), ErrorCode.invalid_request),
        (changes(topics=[{"topic_id": METADATA_TOPIC_ID, "partitions": []}]), ErrorCode.invalid_request),
    ],
)
async def test_a_wrong_request_is_refused_as_a_whole(
    lab: Lab, changed: dict[str, Any], error: ErrorCode
) -> None:
    response = await fetch(lab, **changed)
    assert (response.error_code, response.responses) == (error, ())


async def test_a_follower_need_not_know_the_cluster(lab: Lab) -> None:
    assert partition_of(await fetch(lab, cluster_id=None)).error_code is ErrorCode.none


async def as_consumer(client: Client, version: int, replica_id: int = -1) -> Any:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    topic = {"topic": METADATA_TOPIC, "topic_id": METADATA_TOPIC_ID, "partitions": [partition]}
    replica = {"replica_id": replica_id, "replica_state": {"replica_id": replica_id, "replica_epoch": -1}}
    return await client.ask("fetch", version, max_wait=0, max_bytes=1000, topics=[topic], **replica)


@pytest.mark.parametrize("version", [4, 11, 12])
async def test_the_topic_is_unknown_by_name(lab: Lab, version: int) -> None:
    response = await as_consumer(lab.another_broker(), version, replica_id=2)
    assert partition_of(response).error_code is ErrorCode.unknown_topic_or_partition


@pytest.mark.parametrize("version", [13, 15, 18])
async def test_the_topic_is_unknown_to_consumers(lab: Lab, version: int) -> None:
    for client in (lab.client(), lab.another_broker()):
        assert partition_of(await as_consumer(client, version)).error_code is ErrorCode.unknown_topic_id


async def test_the_topic_is_unknown_on_the_listener_for_clients(lab: Lab) -> None:
    response = await as_consumer(lab.client(), 18, replica_id=2)
    assert partition_of(response).error_code is ErrorCode.unknown_topic_id


async def test_a_node_does_not_follow_itself(lab: Lab) -> None:
    response = await as_consumer(lab.another_broker(), 18, replica_id=1)
    assert partition_of(response).error_code is ErrorCode.unknown_topic_id


@pytest.mark.usefixtures("records_only_in_files")
async def test_a_log_that_cannot_be_read_is_a_storage_error() -> None:
    async with open_lab() as lab:
        lab.filesystem.read_error = 5
        found = partition_of(await fetch(lab))
        lab.filesystem.read_error = None
        assert found.error_code is ErrorCode.kafka_storage_error


@pytest.mark.parametrize("version", [15, 16, 17, 18])
async def test_every_version_with_a_replica_state_is_served(lab: Lab, version: int) -> None:
    partition = {"partition": 0, "current_leader_epoch": 1, "fetch_offset": 2, "last_fetched_epoch": 0}
    response = await lab.another_broker().ask(
        "fetch",
        version,
        max_wait=0,
        max_bytes=1000,
        topics=[{"topic_id": METADATA_TOPIC_ID, "partitions": [partition]}],
        replica_state={"replica_id": 2, "replica_epoch": -1},
    )
    assert len(partition_of(response).records) > 0
