"""Malformed batches that an earlier version accepted: share groups skip them, and get all others."""

from __future__ import annotations

import pytest
from structlog.typing import EventDict

from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import Compression, validate_produced
from tests.broker.produce.odd_batches import batch_of, compressed
from tests.conformance.harness import Lab
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember
from tests.protocol.record_walk.walkers import record

MALFORMED = {
    "bits": (batch_of(b"\xff" * 30), 1),
    "a count without records": (batch_of(b"", 1_000_000), 1_000_000),
    "a record less": (batch_of(record() + record(1), 3), 3),
    "garbage of gzip": (compressed(b"\xff" * 40, Compression.GZIP, 2), 2),
    "a negative header count": (batch_of(record(headers=b"\1")), 1),
}
"""By name: a batch whose header alone does not show the error, and the number of records it states."""


async def taken_in(lab: Lab, *batches: bytes) -> TopicIdPartition:
    """A partition with two records, the batches as an earlier version stored them, and three records; the
    broker has restarted since.
    """
    topic_id = await lab.create_topic("t")
    await lab.configure_group(GROUP, auto_offset_reset="earliest")
    await lab.produce(topic_id, 2)
    log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_name["t"], 0)
    assert log is not None
    for one in batches:
        log.append_produced(one, validate_produced(one, message_bytes_max=1 << 20), lab.clock.wall_ms())
    await lab.produce(topic_id, 3)
    await lab.restart()
    return TopicIdPartition(topic_id, 0)


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_share_group_gets_the_records_around_a_malformed_batch(
    lab: Lab, name: str, log_lines: list[EventDict]
) -> None:
    malformed, count = MALFORMED[name]
    partition = await taken_in(lab, malformed)
    member = ShareMember(lab.client(), (partition,))
    await member.join("t")
    got: list[int] = []
    acks: list[tuple[int, ...]] = []
    for _ in range(3):
        fetched = await member.fetch(acks, max_wait=0)
        acks = [(first, last, ACCEPT) for first, last, _ in fetched.acquired]
        got += [offset for one in fetched.partitions.values() for offset in one.offsets]
    assert got == [0, 1, 2 + count, 3 + count, 4 + count]
    assert (await lab.offsets(GROUP, partition))[1] == 0
    (line,) = [line for line in log_lines if "malformed batch" in line["event"]]
    assert (line["partition"], line["first_offset"], line["last_offset"]) == ("t-0", 2, 1 + count)


async def test_a_malformed_batch_that_is_skipped_in_parts_is_reported_once(
    lab: Lab, log_lines: list[EventDict]
) -> None:
    partition = await taken_in(lab, batch_of(b"", 1_000))
    member = ShareMember(lab.client(), (partition,))
    await member.join("t")
    acks: list[tuple[int, ...]] = []
    got: list[int] = []
    for _ in range(6):
        fetched = await member.fetch(acks, max_wait=0, max_records=400, share_acquire_mode=1)
        acks = [(first, last, ACCEPT) for first, last, _ in fetched.acquired]
        got += [offset for one in fetched.partitions.values() for offset in one.offsets]
    assert got == [0, 1, 1002, 1003, 1004]
    assert len([line for line in log_lines if "malformed batch" in line["event"]]) == 1


async def test_oddities_that_clients_can_read_are_delivered(lab: Lab) -> None:
    partition = await taken_in(lab, batch_of(record() + record(), 2))
    member = ShareMember(lab.client(), (partition,))
    await member.join("t")
    fetched = await member.fetch(max_wait=0)
    assert fetched.partitions[partition].offsets == [0, 1, 2, 2, 4, 5, 6]
