"""A follower of the metadata log keeps up after the leader has deleted, lost or written records (KIP-630)."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.coordinator.metadata.snapshot import SnapshotId
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.metadata_records import MetadataRecord
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.metadata_follower import MetadataFollower, partition_of

SNAPSHOT_BYTES = "metadata.log.max.record.bytes.between.snapshots"
OFTEN: dict[str, str] = {
    SNAPSHOT_BYTES.replace(".", "__"): "1000",
    "metadata__snapshot__min__cleanable__ratio": "0",
}


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    """A leader that takes a snapshot after every topic of 20 partitions."""
    async with open_lab(**OFTEN) as lab:
        yield lab


def content(image: MetadataImage) -> list[MetadataRecord]:
    return list(image.to_records())


def is_kept_up(lab: Lab, follower: MetadataFollower) -> bool:
    return content(follower.image()) == content(lab.broker.metadata.image)


async def with_topics(lab: Lab, names: Iterable[str]) -> None:
    for name in names:
        await lab.create_topic(name, 20)
        await settle()


def log_start(lab: Lab) -> int:
    return lab.broker.metadata.log.store.log_start_offset


async def test_an_empty_follower_of_a_log_without_snapshots_reads_the_log() -> None:
    async with open_lab() as lab:
        follower = MetadataFollower(lab)
        await lab.create_topic("t")
        await follower.catch_up()
        assert is_kept_up(lab, follower)
        assert follower.steps == [f"records 0-{follower.next_offset}"]
        assert follower.high_watermark == follower.next_offset


async def test_a_follower_below_the_log_start_reads_a_snapshot_and_goes_on_after_it(lab: Lab) -> None:
    follower = MetadataFollower(lab)
    await follower.catch_up()
    was_at = follower.next_offset
    lab.clock.now_ms += 300_000  # It was silent for so long that the leader no longer waits for it.
    await with_topics(lab, "abcd")
    assert log_start(lab) > was_at > 0
    await lab.create_topic("small")
    await follower.catch_up()
    newest = lab.broker.metadata.log.snapshots.ids[-1]
    assert follower.steps[1:] == [
        f"snapshot {newest.file_name}",
        f"records {newest.end_offset}-{follower.next_offset}",
    ]
    assert follower.log_start_offset == newest.end_offset
    assert is_kept_up(lab, follower)


@pytest.mark.parametrize("piece_bytes", [1, 97, 1_000])
async def test_pieces_may_end_anywhere(piece_bytes: int) -> None:
    async with open_lab(**OFTEN) as lab:
        await with_topics(lab, "ab")
        follower = MetadataFollower(lab, piece_bytes=piece_bytes, fetch_bytes=1)
        await follower.catch_up()
        assert follower.snapshot is not None
        assert is_kept_up(lab, follower)


async def test_a_snapshot_stays_while_a_follower_reads_it_though_newer_ones_come(lab: Lab) -> None:
    await with_topics(lab, "ab")
    follower = MetadataFollower(lab)
    told = lab.broker.metadata.log.snapshots.ids[-1]
    first = await follower.fetch_piece(told, 0, max_bytes=100)
    assert first.error_code is ErrorCode.none
    await with_topics(lab, "cdef")
    assert log_start(lab) == told.end_offset
    await follower.read_snapshot(told)
    await follower.catch_up()
    assert follower.snapshot is not None
    assert follower.snapshot[0] == told
    assert is_kept_up(lab, follower)
    await with_topics(lab, "gh")
    assert log_start(lab) > told.end_offset


async def test_a_snapshot_deleted_while_it_was_read_is_replaced_by_the_newest(lab: Lab) -> None:
    await with_topics(lab, "ab")
    follower = MetadataFollower(lab, piece_bytes=100)
    told = lab.broker.metadata.log.snapshots.ids[-1]
    assert (await follower.fetch_piece(told, 0)).error_code is ErrorCode.none
    lab.clock.now_ms += 300_000
    await with_topics(lab, "cdef")
    await follower.read_snapshot(told)
    assert follower.steps == ["snapshot gone"]
    await follower.catch_up()
    assert is_kept_up(lab, follower)


async def test_the_log_waits_for_a_follower_that_fetches(lab: Lab) -> None:
    follower = MetadataFollower(lab)
    await follower.catch_up()
    await with_topics(lab, "abc")
    assert log_start(lab) == 0
    await follower.catch_up()
    await settle()
    assert log_start(lab) > 0
    assert follower.snapshot is None
    assert is_kept_up(lab, follower)


async def test_records_that_the_leader_lost_are_cut(lab: Lab) -> None:
    follower = MetadataFollower(lab)
    await lab.create_topic("a")
    before = lab.filesystem.copy()
    await lab.create_topic("b")
    await follower.catch_up()
    assert "b" in follower.image().topics_by_name
    lab.filesystem.files.clear()
    lab.filesystem.files.update(before.files)
    await lab.crash()
    await lab.create_topic("c")
    await follower.catch_up()
    assert any(step.startswith("cut at") for step in follower.steps)
    assert set(follower.image().topics_by_name) == {"a", "c"}
    assert is_kept_up(lab, follower)


async def test_a_leader_that_started_over_at_its_snapshot_is_followed(lab: Lab) -> None:
    follower = MetadataFollower(lab)
    await follower.catch_up()
    await with_topics(lab, "ab")
    directory = "/data/__cluster_metadata-0"
    left = lab.filesystem.copy()
    for name in left.list_directory(directory):
        if name.endswith(".log"):
            del left.files[f"{directory}/{name}"][200:]
    lab.filesystem.files.clear()
    lab.filesystem.files.update(left.files)
    await lab.crash()
    assert log_start(lab) == lab.broker.metadata.log.snapshots.ids[0].end_offset > 0
    assert set(lab.broker.metadata.image.topics_by_name) == {"a", "b"}
    await lab.create_topic("c")
    await follower.catch_up()
    assert is_kept_up(lab, follower)


async def test_a_fetch_at_the_end_of_the_log_is_answered_with_the_next_record(lab: Lab) -> None:
    follower = MetadataFollower(lab)
    await follower.catch_up()
    waiting = follower.start_fetch(max_wait=5_000)
    await settle()
    assert not waiting.done
    await lab.create_topic("t")
    await settle()
    assert len(partition_of(waiting.response()).records) > 0


async def test_a_fetch_at_the_end_of_the_log_ends_with_its_time(lab: Lab) -> None:
    follower = MetadataFollower(lab)
    await follower.catch_up()
    waiting = follower.start_fetch(max_wait=5_000)
    await lab.advance(5_000)
    found = partition_of(waiting.response())
    assert (found.error_code, bytes(found.records or b"")) == (ErrorCode.none, b"")


async def test_a_new_high_watermark_is_returned_immediately(lab: Lab) -> None:
    follower = MetadataFollower(lab)
    await follower.catch_up()
    waiting = follower.start_fetch(max_wait=5_000, high_watermark=follower.high_watermark - 1)
    await settle()
    assert partition_of(waiting.response()).high_watermark == follower.high_watermark


async def test_every_answer_names_the_leader(lab: Lab) -> None:
    follower = MetadataFollower(lab)
    response: Any = await lab.answered(follower.start_fetch(max_wait=0))
    leader = partition_of(response).current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, lab.broker.metadata.node_epoch)
    (endpoint,) = response.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (1, "broker.example", 19092)


async def test_a_snapshot_is_taken_when_the_interval_is_over() -> None:
    async with open_lab(metadata__log__max__snapshot__interval__ms="60000") as lab:
        await lab.advance(59_000)
        assert lab.broker.metadata.log.snapshots.ids == []
        await lab.advance(1_000)
        end_offset = lab.broker.metadata.log.end_offset
        assert lab.broker.metadata.log.snapshots.ids == [SnapshotId(end_offset, 0)]
