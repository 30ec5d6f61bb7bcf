"""Records on their way to dead letters: exported with their state, and restored so that they get a letter."""

from __future__ import annotations

import asyncio

from benchmarks.brokers.process import LocalBroker

from barnabas.pipeline.export.group_restoring import GroupRestorer
from barnabas.pipeline.export.manifest import (
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    InFlight,
    ShareGroup,
    SharePosition,
)
from barnabas.pipeline.export.offset_marks import Place
from barnabas.pipeline.export.planning import plan_export
from barnabas.pipeline.export.restore_partition import RestoredPartition
from barnabas.pipeline.export.restore_state import RestoredTopic
from tests.clients.cluster import Cluster, unique
from tests.clients.polling import eventually
from tests.pipeline.brokers import SharedBrokers
from tests.pipeline.export.both_ways import (
    export_request,
    left_for,
    produce_all_kinds,
    read_all,
    servers_of,
    some_of_each,
    topic_id_of,
    topic_names,
    work,
)

RECORD_COUNT = 12
TOPIC_NAME = "errors.deadletterqueue.topic.name"


def restore(broker: LocalBroker, topic: str, group: ShareGroup) -> list[str]:
    """Restores the group beside the one that it was exported from, on the same topic; returns the notes."""
    places = {offset: Place(offset, offset) for offset in range(RECORD_COUNT + 1)}
    restored = RestoredTopic(topic, is_ours=True, topic_id=topic_id_of(broker, topic), begin_offsets=(0,))

    async def run() -> list[str]:
        cluster = servers_of(broker).cluster()
        partitions = [RestoredPartition(topic, 0, RECORD_COUNT, places)]
        restorer = GroupRestorer(cluster, {topic: restored}, partitions)
        try:
            return await restorer.restore_share_group(group)
        finally:
            restorer.close()
            cluster.close()

    return asyncio.run(run())


def letters(broker: LocalBroker, topic: str) -> list[tuple[int, int]]:
    """The offset and the delivery count in each letter."""
    if topic not in topic_names(broker):
        return []
    found: list[tuple[int, int]] = []
    for rows in read_all(broker, topic).values():
        for row in rows:
            values = {one["key"]: one["value"] for one in row["headers"]}
            found.append((int(values["__dlq.errors.offset"]), int(values["__dlq.errors.delivery.count"])))
    return found


def lettered_group(letter_topic: str) -> dict[str, str]:
    return {"share.auto.offset.reset": "earliest", TOPIC_NAME: letter_topic}


def test_held_letters_are_exported_and_written_after_the_restore(brokers: SharedBrokers) -> None:
    broker = brokers["barnabas"]
    cluster = Cluster(broker.address)
    topic, closed = cluster.topic(), cluster.topic(name=unique("dlq.letters"))
    produce_all_kinds(broker, topic, 0, RECORD_COUNT)
    source = unique("source")
    cluster.set_group(source, lettered_group(closed))
    work(broker, source, topic, RECORD_COUNT, some_of_each)

    (group,) = (
        one
        for one in asyncio.run(plan_export(export_request(broker, topic))).share_groups
        if one.group_id == source
    )
    (position,) = group.positions
    states = {
        offset: one.state
        for one in position.in_flight or ()
        for offset in range(one.first_offset, one.last_offset + 1)
    }
    rejected = list(range(1, RECORD_COUNT, 3))
    assert [offset for offset, state in states.items() if state == ARCHIVING] == rejected

    target, letter_topic = unique("target"), unique("dlq.letters")
    moved = ShareGroup(target, {**group.settings, TOPIC_NAME: letter_topic}, group.positions)
    assert restore(broker, topic, moved) == []
    eventually(
        lambda: letters(broker, letter_topic) == [(offset, 1) for offset in rejected],
        awaited="the letters are written",
    )
    assert len(left_for(broker, target, topic)) == RECORD_COUNT // 3, "the released records"


def test_records_that_are_archived_already_get_no_second_letter(brokers: SharedBrokers) -> None:
    broker = brokers["barnabas"]
    topic, letter_topic = Cluster(broker.address).topic(), unique("dlq.letters")
    produce_all_kinds(broker, topic, 0, RECORD_COUNT)
    states = (
        InFlight(0, 0, AVAILABLE, 1),
        InFlight(1, 2, ARCHIVED, 1),
        InFlight(3, 3, ARCHIVING, 3),
        InFlight(4, 5, ARCHIVED, 2),
    )
    group = ShareGroup(unique("target"), lettered_group(letter_topic), (SharePosition(topic, 0, 0, states),))
    assert restore(broker, topic, group) == []
    eventually(lambda: letters(broker, letter_topic) == [(3, 3)], awaited="the letter is written")
    left = {one.value for one in left_for(broker, group.group_id, topic)}
    open_numbers = [0, *range(6, RECORD_COUNT)]
    assert left == {None if number % 5 == 0 else f"value {number}".encode() for number in open_numbers}


def test_a_target_without_dead_letters_is_reported(brokers: SharedBrokers) -> None:
    broker = brokers["barnabas"]
    topic, group_id = Cluster(broker.address).topic(), unique("target")
    produce_all_kinds(broker, topic, 0, RECORD_COUNT)
    settings = {"share.auto.offset.reset": "earliest"}
    position = SharePosition(topic, 0, 0, (InFlight(0, 0, AVAILABLE, 1), InFlight(1, 3, ARCHIVING, 1)))
    assert restore(broker, topic, ShareGroup(group_id, settings, (position,))) == [
        (
            f"The share group {group_id} gets no dead letters for 3 records of {topic}-0 that waited for "
            f"them: the target writes none for the group ({TOPIC_NAME})."
        )
    ]
