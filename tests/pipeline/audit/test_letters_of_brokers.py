"""Dead letters of a real broker, in both stores of share state: the audit agrees with the group's work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.client import ShareConsumer
from barnabas.pipeline.audit.tables import HISTORY, OPEN, VIOLATION
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.polling import eventually
from tests.pipeline.audit.auditing import Audited, Row, offsets_of
from tests.pipeline.audit.state_topic import AuditedStateTopic

RECORD_COUNT = 40
REJECTED = list(range(0, RECORD_COUNT, 5))
TOPIC_NAME = "errors.deadletterqueue.topic.name"
CLOSED_TOPIC = "dlq.closed"
"""It exists, and it takes no dead letters."""
SETTINGS = {
    "written": {TOPIC_NAME: "dlq.open"},
    "held": {TOPIC_NAME: CLOSED_TOPIC},
    "lost": {TOPIC_NAME: CLOSED_TOPIC, "share.dead.letter.on.failure": "archive"},
}

Tables = Callable[[str], Audited | AuditedStateTopic]
"""The tables of a group, while the broker goes on."""


@pytest.fixture
def tables(store: str, broker_with_store: BrokerProcess, tmp_path: Path) -> Tables:
    """After each group has rejected some of the records, and accepted the others."""
    cluster = Cluster(broker_with_store.address)
    cluster.topic(name=CLOSED_TOPIC)
    topic = cluster.topic(name="orders")
    cluster.produce(topic, [str(number) for number in range(RECORD_COUNT)])
    for group, settings in SETTINGS.items():
        cluster.set_group(group, {"share.auto.offset.reset": "earliest", **settings})
        asyncio.run(_reject_some(broker_with_store.address, group))

    def audited(group: str) -> Audited | AuditedStateTopic:
        if store == "topic":
            return AuditedStateTopic(tmp_path / "data", groups=[group])
        return Audited(tmp_path / "data", ("orders", 0), groups=[group])

    return audited


async def _reject_some(address: str, group: str) -> None:
    answered = 0
    async with ShareConsumer(address, group=group, topics=["orders"]) as consumer:
        while answered < RECORD_COUNT:
            for record in await consumer.poll():
                (record.reject if record.offset in REJECTED else record.accept)()
                answered += 1


def letters_of(tables: Tables, group: str) -> list[Row]:
    return [row for row in tables(group).deliveries if row["letter"] is not None]


def check(tables: Tables, group: str, outcome: str, letter: str) -> None:
    """Waits until the letters of the group have ended so, and checks its tables."""
    eventually(
        lambda: offsets_of(letters_of(tables, group), outcome=outcome, letter=letter) == REJECTED,
        awaited=f"the letters of {group} are {letter}",
    )
    audited = tables(group)
    assert audited.table(VIOLATION) == []
    deliveries = audited.deliveries
    assert offsets_of(deliveries) == list(range(RECORD_COUNT)), "one outcome for each record"
    assert {(row["cause"], row["deliveryCount"]) for row in letters_of(tables, group)} == {("reject", 1)}
    accepted = sorted(set(range(RECORD_COUNT)) - set(REJECTED))
    assert offsets_of(deliveries, outcome="acknowledged", letter=None) == accepted
    is_open = outcome == "archiving"
    assert offsets_of(audited.table(OPEN), state="archiving") == (REJECTED if is_open else [])
    (history,) = audited.table(HISTORY)
    assert history["startOffset"] == 0 if is_open else history["startOffset"] >= RECORD_COUNT


def test_each_rejected_record_has_one_outcome_and_its_letter(tables: Tables, store: str) -> None:
    is_told = store == "log"
    check(tables, "written", "archived", "written" if is_told else "unknown")
    check(tables, "lost", "archived", "failed" if is_told else "unknown")
    check(tables, "held", "archiving", "due")
