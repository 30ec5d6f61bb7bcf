"""Groups whose settings decide when, and in which order, members get records: the export has the state that
the broker has recorded, and a restore repeats it although the settings would keep the records back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

import pytest
from benchmarks.brokers.process import LocalBroker
from confluent_kafka import Producer

from barnabas.broker.config import tables
from barnabas.client import ShareBrowser
from barnabas.pipeline.export.group_restoring import EARLY_SETTINGS
from barnabas.pipeline.export.manifest import (
    ACCEPTED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    InFlight,
    ShareGroup,
    SharePosition,
)
from barnabas.pipeline.export.planning import plan_export
from barnabas.protocol.record_inspection import Wait
from tests.clients.cluster import Cluster, unique
from tests.clients.polling import SECONDS_MAX, eventually
from tests.pipeline.brokers import new_broker
from tests.pipeline.export.both_ways import export_request, left_for, work
from tests.pipeline.export.test_letters import TOPIC_NAME, letters, restore

HOUR_MS = 3_600_000
DELAY_HEADER = "deliver.after.ms"
Exported = list[tuple[int, int, str, int]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    started = new_broker("barnabas", tmp_path_factory.mktemp("broker"))
    try:
        started.start()
        yield started
    finally:
        started.kill()


def produce(broker: LocalBroker, *, ages_ms: Sequence[int], delays: Sequence[int | None] = ()) -> str:
    """A topic with records of these ages, some with a delay in their header; returns its name."""
    topic = Cluster(broker.address).topic()
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50})
    now_ms = int(time.time() * 1000)
    for number, age_ms in enumerate(ages_ms):
        delay_ms = delays[number] if delays else None
        producer.produce(
            topic,
            key="one key",
            value=f"value {number}",
            headers=[] if delay_ms is None else [(DELAY_HEADER, str(delay_ms))],
            timestamp=now_ms - age_ms,
            partition=0,
        )
    assert producer.flush(SECONDS_MAX) == 0
    return topic


def new_group(broker: LocalBroker, **settings: str) -> str:
    """A group with these settings, `__` in their names standing for a dot."""
    group_id = unique("workers")
    named = {name.replace("__", "."): value for name, value in settings.items()}
    Cluster(broker.address).set_group(group_id, {"share.auto.offset.reset": "earliest", **named})
    return group_id


def export(broker: LocalBroker, topic: str, group_id: str) -> ShareGroup:
    groups = asyncio.run(plan_export(export_request(broker, topic))).share_groups
    (group,) = (one for one in groups if one.group_id == group_id)
    return group


def states(group: ShareGroup) -> Exported:
    """First and last offset, state and delivery count of each range in flight."""
    (position,) = group.positions
    return [
        (one.first_offset, one.last_offset, one.state, one.delivery_count) for one in position.in_flight or ()
    ]


def restored(broker: LocalBroker, topic: str, group: ShareGroup) -> ShareGroup:
    """The group as another one beside it, exported again after two restores: the first may be stopped."""
    target = ShareGroup(unique("target"), group.settings, group.positions)
    assert restore(broker, topic, target) == []
    assert restore(broker, topic, target) == []
    again = export(broker, topic, target.group_id)
    assert again.settings == group.settings
    return again


def due_after_ms(broker: LocalBroker, topic: str, group_id: str) -> dict[int, int]:
    """By offset, the time from now until each record that waits is due."""

    async def look() -> dict[int, int]:
        async with ShareBrowser(broker.address, group=group_id) as browser:
            return {
                one.first_offset: (one.due_ms or 0) - int(time.time() * 1000)
                async for one in browser.ranges(topic, 0)
                if one.wait is Wait.DUE
            }

    return asyncio.run(look())


def test_records_that_are_not_due_wait_again_after_a_restore(broker: LocalBroker) -> None:
    topic = produce(broker, ages_ms=[0] * 7, delays=[None, HOUR_MS, None, None, HOUR_MS, None, HOUR_MS])
    group_id = new_group(broker, share__delay__header=DELAY_HEADER)
    work(broker, group_id, topic, 4, lambda number, record: (record.accept, record.reject)[number == 3]())

    group = export(broker, topic, group_id)
    assert states(group) == [
        (1, 1, AVAILABLE, 0),
        (2, 3, ACCEPTED, 1),
        (4, 4, AVAILABLE, 0),
        (5, 5, ARCHIVED, 1),
        (6, 6, AVAILABLE, 0),
    ]
    again = restored(broker, topic, group)
    assert left_for(broker, again.group_id, topic) == []
    *left, _accepted = states(export(broker, topic, again.group_id))
    assert left == states(group)
    due = due_after_ms(broker, topic, again.group_id)
    assert list(due) == [1, 4, 6]
    assert all(0 < one <= HOUR_MS + 1_000 for one in due.values())


def test_records_that_have_become_due_are_delivered_by_the_target(broker: LocalBroker) -> None:
    """One of them lies between the others, so the restore meets it."""
    topic = produce(broker, ages_ms=[0] * 4, delays=[None, 1, None, None])
    states_of_source = (
        InFlight(0, 0, ACCEPTED, 1),
        InFlight(1, 1, AVAILABLE, 0),
        InFlight(2, 2, AVAILABLE, 3),
    )
    settings = {"share.auto.offset.reset": "earliest", "share.delay.header": DELAY_HEADER}
    group = ShareGroup(unique("target"), settings, (SharePosition(topic, 0, 0, states_of_source),))
    assert restore(broker, topic, group) == []
    left = {one.value: one.delivery_count for one in left_for(broker, group.group_id, topic)}
    assert left == {b"value 1": 2, b"value 2": 4, b"value 3": 1}


def test_records_that_wait_for_a_retry_keep_their_counts(broker: LocalBroker) -> None:
    topic = produce(broker, ages_ms=[0] * 3)
    group_id = new_group(broker, share__retry__backoff__ms="60000")
    work(broker, group_id, topic, 3, lambda number, record: (record.release, record.accept)[number == 1]())

    group = export(broker, topic, group_id)
    expected = [(0, 0, AVAILABLE, 1), (1, 1, ACCEPTED, 1), (2, 2, AVAILABLE, 1)]
    assert states(group) == expected
    again = restored(broker, topic, group)
    assert states(again) == expected
    left = [(one.value, one.delivery_count) for one in left_for(broker, again.group_id, topic)]
    assert left == [(b"value 0", 2), (b"value 2", 2)], "the wait itself is not restored"


def test_expired_records_are_exported_as_archived(broker: LocalBroker) -> None:
    topic = produce(broker, ages_ms=[0, HOUR_MS, HOUR_MS, 0])
    group_id = new_group(broker, share__record__ttl__ms=str(HOUR_MS // 2))
    work(broker, group_id, topic, 2, lambda number, record: (record.release, record.accept)[number]())

    group = export(broker, topic, group_id)
    assert states(group) == [(0, 0, AVAILABLE, 1), (1, 2, ARCHIVED, 0), (3, 3, ACCEPTED, 1)]
    again = restored(broker, topic, group)
    assert states(again) == [(0, 0, AVAILABLE, 1), (1, 2, ARCHIVED, 1), (3, 3, ACCEPTED, 1)]
    assert [one.value for one in left_for(broker, again.group_id, topic)] == [b"value 0"]


def test_a_record_that_has_expired_since_the_export_is_not_delivered(broker: LocalBroker) -> None:
    topic = produce(broker, ages_ms=[HOUR_MS, HOUR_MS, 0])
    in_flight = (InFlight(0, 0, AVAILABLE, 1), InFlight(1, 1, ACCEPTED, 1))
    settings = {"share.auto.offset.reset": "earliest", "share.record.ttl.ms": str(HOUR_MS // 2)}
    group = ShareGroup(unique("target"), settings, (SharePosition(topic, 0, 0, in_flight),))
    assert restore(broker, topic, group) == []
    assert [one.value for one in left_for(broker, group.group_id, topic)] == [b"value 2"]


def test_expired_records_on_their_way_to_letters_get_them_from_the_target(broker: LocalBroker) -> None:
    topic = produce(broker, ages_ms=[0, HOUR_MS, HOUR_MS, 0])
    closed, letter_topic = Cluster(broker.address).topic(name=unique("dlq.closed")), unique("dlq.letters")
    settings = {"share.record.ttl.ms": str(HOUR_MS // 2), TOPIC_NAME: closed}
    group_id = new_group(broker, **settings)
    work(broker, group_id, topic, 2, lambda _, record: record.accept())

    group = export(broker, topic, group_id)
    assert states(group) == [(1, 2, ARCHIVING, 0), (3, 3, ACCEPTED, 1)]
    target = ShareGroup(unique("target"), {**group.settings, TOPIC_NAME: letter_topic}, group.positions)
    assert restore(broker, topic, target) == []
    eventually(lambda: letters(broker, letter_topic) == [(1, 1), (2, 1)], awaited="the letters are written")
    assert left_for(broker, target.group_id, topic) == []


@pytest.mark.parametrize(
    "setting",
    [
        ("share.order", "key"),
        ("share.priority.header", "urgency"),
        ("share.delivery.delay.ms", str(HOUR_MS)),
    ],
    ids=["order", "priorities", "delay"],
)
def test_no_setting_keeps_records_from_a_restore(broker: LocalBroker, setting: tuple[str, str]) -> None:
    """All records have one key, and none is due by the delay."""
    topic = produce(broker, ages_ms=[0] * 5)
    in_flight = (
        InFlight(0, 0, AVAILABLE, 2),
        InFlight(1, 1, ARCHIVED, 1),
        InFlight(2, 2, AVAILABLE, 1),
        InFlight(3, 3, ACCEPTED, 1),
    )
    settings = {"share.auto.offset.reset": "earliest", setting[0]: setting[1]}
    source = ShareGroup(unique("source"), settings, (SharePosition(topic, 0, 0, in_flight),))
    again = restored(broker, topic, source)
    assert states(again) == [
        (one.first_offset, one.last_offset, one.state, one.delivery_count) for one in in_flight
    ]


def test_the_settings_that_a_restore_sets_first_exist() -> None:
    assert tables.GROUP.keys() >= EARLY_SETTINGS
