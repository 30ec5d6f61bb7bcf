"""The records of a topic as a reader of committed records sees them."""

from __future__ import annotations

from confluent_kafka import Consumer, Message

from tests.clients.cluster import unique
from tests.clients.polling import eventually

FURTHER_POLLS = 5
"""They find records that are there too often."""


def committed_records(address: str, topic: str, count: int) -> list[Message]:
    """The committed records, as soon as there are this many or more; those of a partition in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": unique("reader"),
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found: list[Message] = []

    def poll() -> bool:
        found.extend(one for one in consumer.consume(100, 0.1) if one.error() is None)
        return len(found) >= count

    try:
        eventually(poll, awaited=f"{count} records are read")
        for _ in range(FURTHER_POLLS):
            poll()
    finally:
        consumer.close()
    return found
