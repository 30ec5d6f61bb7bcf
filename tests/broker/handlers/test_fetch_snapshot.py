"""FetchSnapshot: errors, and the contents of a piece."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.coordinator.metadata.snapshot import BOOTSTRAP_ID, SnapshotId
from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Client, Lab, open_lab
from tests.conformance.metadata_follower import send_fetch_snapshot


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    """A leader with one snapshot, in its second epoch."""
    async with open_lab() as lab:
        await lab.create_topic("t", 20)
        await lab.restart()
        yield lab


def newest(lab: Lab) -> SnapshotId:
    return lab.broker.metadata.log.snapshots.ids[-1]


async def ask(lab: Lab, client: Client | None = None, position: int = 0, **changed: Any) -> Any:
    client = client or lab.another_broker()
    pending = send_fetch_snapshot(client, lab, newest(lab), position, 1 << 20, **changed)
    return await client.answered(pending)


def changes(**changed: Any) -> dict[str, Any]:
    return changed


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        (changes(topic="t"), ErrorCode.unknown_topic_or_partition),
        (changes(partition=1), ErrorCode.unknown_topic_or_partition),
        (changes(replica_id=-1), ErrorCode.unknown_topic_or_partition),
        (changes(replica_id=1), ErrorCode.unknown_topic_or_partition),
        (changes(current_leader_epoch=0), ErrorCode.fenced_leader_epoch),
        (changes(current_leader_epoch=-1), ErrorCode.fenced_leader_epoch),
        (changes(current_leader_epoch=2), ErrorCode.unknown_leader_epoch),
        (changes(snapshot_id={"end_offset": 7, "epoch": 0}), ErrorCode.snapshot_not_found),
        (changes(position=-1), ErrorCode.position_out_of_range),
        (changes(position=1 << 40), ErrorCode.position_out_of_range),
    ],
)
async def test_an_error_of_the_partition_has_the_current_leader(
    lab: Lab, changed: dict[str, Any], error: ErrorCode
) -> None:
    response = await ask(lab, **changed)
    assert response.error_code is ErrorCode.none
    piece = response.topics[0].partitions[0]
    assert piece.error_code is error
    assert (piece.size, bytes(piece.unaligned_records)) == (0, b"")
    assert (piece.current_leader.leader_id, piece.current_leader.leader_epoch) == (1, 1)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        (changes(cluster_id="another"), ErrorCode.inconsistent_cluster_id),
        (changes(topics=[]), ErrorCode.invalid_request),
        (changes(max_bytes=-1), ErrorCode.invalid_request),
    ],
)
async def test_a_wrong_request_is_refused_as_a_whole(
    lab: Lab, changed: dict[str, Any], error: ErrorCode
) -> None:
    response = await ask(lab, **changed)
    assert (response.error_code, response.topics) == (error, ())


async def test_several_partitions_at_once_are_refused(lab: Lab) -> None:
    partition = {
        "partition": 0,
        "current_leader_epoch": 1,
        "snapshot_id": {"end_offset": 1, "epoch": 0},
        "position": 0,
    }
    topics = [{"name": "__cluster_metadata", "partitions": [partition, partition]}]
    assert (await ask(lab, topics=topics)).error_code is ErrorCode.invalid_request


async def test_a_follower_need_not_know_the_cluster(lab: Lab) -> None:
    assert (await ask(lab, cluster_id=None)).topics[0].partitions[0].error_code is ErrorCode.none


async def test_the_bootstrap_snapshot_of_kafkas_tool_is_not_served(lab: Lab) -> None:
    path = f"/data/__cluster_metadata-0/{BOOTSTRAP_ID.file_name}"
    lab.filesystem.files[path] = bytearray(
        lab.filesystem.files[f"/data/__cluster_metadata-0/{newest(lab).file_name}"]
    )
    await lab.crash()
    assert BOOTSTRAP_ID in lab.broker.metadata.log.snapshots.ids
    response = await ask(lab, snapshot_id={"end_offset": 0, "epoch": 0}, current_leader_epoch=2)
    assert response.topics[0].partitions[0].error_code is ErrorCode.snapshot_not_found


async def test_a_piece_has_its_position_and_the_size_of_the_snapshot(lab: Lab) -> None:
    whole = bytes(lab.filesystem.files[f"/data/__cluster_metadata-0/{newest(lab).file_name}"])
    response = await ask(lab, position=10, max_bytes=20)
    piece = response.topics[0].partitions[0]
    assert bytes(piece.unaligned_records) == whole[10:30]
    assert (piece.position, piece.size) == (10, len(whole))
    assert (piece.snapshot_id.end_offset, piece.snapshot_id.epoch) == newest(lab)
    assert [(one.node_id, one.host, one.port) for one in response.node_endpoints] == [
        (1, "broker.example", 19092)
    ]


@pytest.mark.interpreted
async def test_the_response_budget_limits_a_piece(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.runtime.response_budget.RESPONSE_BYTES_MAX", 50)
    response = await ask(lab)
    assert len(response.topics[0].partitions[0].unaligned_records) == 50


async def test_version_0_is_served_without_endpoints(lab: Lab) -> None:
    response = await ask(lab, version=0)
    assert response.topics[0].partitions[0].error_code is ErrorCode.none
    assert not hasattr(response, "node_endpoints")


async def test_a_snapshot_that_cannot_be_read_is_a_storage_error(lab: Lab) -> None:
    lab.filesystem.read_error = 5
    response = await ask(lab)
    lab.filesystem.read_error = None
    assert response.topics[0].partitions[0].error_code is ErrorCode.kafka_storage_error


async def test_a_missing_file_is_a_deleted_snapshot(lab: Lab) -> None:
    lab.filesystem.remove(f"/data/__cluster_metadata-0/{newest(lab).file_name}")
    response = await ask(lab)
    assert response.topics[0].partitions[0].error_code is ErrorCode.snapshot_not_found


async def test_clients_are_not_served(lab: Lab) -> None:
    with pytest.raises(Exception, match="59"):
        await ask(lab, lab.client())
