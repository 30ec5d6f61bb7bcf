"""Copies records from one topic to another with confluent-kafka, each batch in a transaction with the group's
offsets, until it is killed, like `Copier.java` with Kafka's own client.

A program of its own, with its arguments: bootstrap, source topic, target topic, group, transactional id.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, Message, Producer, TopicPartition

RECORDS_PER_POLL = 10
ABORT_EVERY = 4
PRODUCER = {
    # Otherwise librdkafka 2.16 forgets its only broker after losing it, and the group's coordinator for good.
    "metadata.recovery.strategy": "none",
}


def copy(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    """Prints the number of committed records after each transaction, and aborts every fourth one."""
    servers = {"bootstrap.servers": bootstrap}
    producer = Producer({**servers, **PRODUCER, "transactional.id": transactional_id})
    consumer = Consumer(
        {
            **servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 300,
        }
    )
    producer.init_transactions()
    consumer.subscribe([source])
    committed = turn = 0
    while True:
        messages = [one for one in consumer.consume(RECORDS_PER_POLL, 0.2) if one.error() is None]
        if not messages:
            continue
        turn += 1
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), partition=_place(message).partition)
        if turn % ABORT_EVERY == 0:
            producer.flush()
            producer.abort_transaction()
            for place in _first(messages):
                consumer.seek(place)
            continue
        producer.send_offsets_to_transaction(
            consumer.position([_place(one) for one in messages]), consumer.consumer_group_metadata()
        )
        producer.commit_transaction()
        committed += len(messages)
        print(committed, flush=True)


def _place(message: Message) -> TopicPartition:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None and partition is not None and offset is not None
    return TopicPartition(topic, partition, offset)


def _first(messages: list[Message]) -> list[TopicPartition]:
    """The first message of each partition."""
    first: dict[int, TopicPartition] = {}
    for place in map(_place, messages):
        first.setdefault(place.partition, place)
    return list(first.values())


if __name__ == "__main__":
    copy(*sys.argv[1:])
