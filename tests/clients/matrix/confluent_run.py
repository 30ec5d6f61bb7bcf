"""The parts of the client matrix with confluent-kafka: see `programs`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tests.clients.matrix.facts import Facts, run_parts
from tests.clients.polling import SECONDS_MAX, eventually

confluent: Any = import_module("confluent_kafka")
confluent_admin: Any = import_module("confluent_kafka.admin")
"""By name, because their type information is incomplete."""


class ConfluentRun:
    def __init__(self, address: str, prefix: str) -> None:
        self._settings: dict[str, object] = {"bootstrap.servers": address, "log_level": 0}
        self._prefix = prefix
        self._admin = confluent_admin.AdminClient(self._settings)

    def basic(self) -> Facts:
        topic = f"{self._prefix}-basic"
        self._create(topic, 1, {"retention.ms": "90000"})
        _done(self._admin.create_partitions([confluent_admin.NewPartitions(topic, 2)]))
        self._set(confluent_admin.ResourceType.TOPIC, topic, "max.message.bytes", "50000")
        resource = confluent_admin.ConfigResource(confluent_admin.ResourceType.TOPIC, topic)
        config = _done(self._admin.describe_configs([resource]))
        described = self._admin.list_topics(timeout=SECONDS_MAX).topics
        self._produce(topic, 10)
        consumer = self._consumer(topic)
        consumer.subscribe([topic])
        values: set[bytes] = set()
        eventually(lambda: len(_poll(values, consumer)) == 10, awaited="records are read")
        consumer.commit(asynchronous=False)
        consumer.close()
        facts: Facts = {
            "partitions": len(described[topic].partitions),
            "retention": int(config["retention.ms"].value),
            "bytes": int(config["max.message.bytes"].value),
            "listed": topic in described,
            "read": len(values),
            "committed": self._committed(topic),
            "group": topic in {one.group_id for one in self._admin.list_consumer_groups().result().valid},
        }
        _done(self._admin.delete_consumer_groups([topic]))
        _done(self._admin.delete_topics([topic]))
        return facts

    def rebalance(self) -> Facts:
        return self._rebalance({})

    def rebalance_consumer(self) -> Facts:
        return self._rebalance({"group.protocol": "consumer"})

    def _rebalance(self, settings: Mapping[str, object]) -> Facts:
        topic = f"{self._prefix}-rebalance-{len(settings)}"
        self._create(topic, 2)
        self._produce(topic, 20)
        first, second = self._consumer(topic, **settings), self._consumer(topic, **settings)
        values: set[bytes] = set()
        again: set[bytes] = set()

        def has(count: int, *consumers: Any) -> bool:
            return [len(one.assignment()) for one in consumers] == [count] * len(consumers)

        first.subscribe([topic])
        eventually(lambda: len(_poll(values, first)) == 20 and has(2, first), awaited="the first has all")
        first.commit(asynchronous=False)
        second.subscribe([topic])
        eventually(lambda: _poll(values, first, second) and has(1, first, second), awaited="they share")
        self._produce(topic, 20)
        eventually(lambda: len(_poll(again, first, second)) == 20, awaited="both have read")
        for consumer in (first, second):
            consumer.commit(asynchronous=False)
        first.close()
        eventually(lambda: _poll(values, second) and has(2, second), awaited="the second has all")
        second.close()
        return {"read": len(values), "again": len(again), "committed": self._committed(topic)}

    def transactions(self) -> Facts:
        source, target = f"{self._prefix}-input", f"{self._prefix}-output"
        self._create(source, 1)
        self._create(target, 1)
        self._produce(source, 5)
        consumer = self._consumer(source)
        consumer.subscribe([source])
        values: set[bytes] = set()
        eventually(lambda: len(_poll(values, consumer)) == 5, awaited="the input is read")
        producer = confluent.Producer({**self._settings, "transactional.id": f"{self._prefix}-tx"})
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
        producer.produce(target, b"dropped")
        producer.flush(SECONDS_MAX)
        producer.abort_transaction(SECONDS_MAX)
        producer.begin_transaction()
        for value in values:
            producer.produce(target, value)
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), SECONDS_MAX)
        producer.commit_transaction(SECONDS_MAX)
        consumer.close()
        reader = self._consumer(target, **{"isolation.level": "read_committed"})
        reader.subscribe([target])
        seen: set[bytes] = set()
        eventually(lambda: len(_poll(seen, reader)) == 5, awaited="the output is read")
        reader.close()
        return {"seen": len(seen), "dropped": b"dropped" in seen, "committed": self._committed(source)}

    def share(self) -> Facts:
        topic = f"{self._prefix}-share"
        self._create(topic, 1)
        self._set(confluent_admin.ResourceType.GROUP, topic, "share.auto.offset.reset", "earliest")
        self._produce(topic, 10)
        settings = {**self._settings, "group.id": topic, "share.acknowledgement.mode": "explicit"}
        consumer = confluent.ShareConsumer(settings)
        consumer.subscribe([topic])
        accepted: set[tuple[bytes, int]] = set()
        released: list[bytes] = []

        def accept() -> bool:
            for message in consumer.poll(0.2) or ():
                if message.value() == b"record-7" and not released:
                    released.append(message.value())
                    consumer.acknowledge(message, confluent.AcknowledgeType.RELEASE)
                else:
                    consumer.acknowledge(message, confluent.AcknowledgeType.ACCEPT)
                    accepted.add((message.value(), message.delivery_count()))
            consumer.commit_sync(SECONDS_MAX)
            return len(accepted) == 10

        eventually(accept, awaited="records are accepted")
        consumer.close()
        return {"accepted": len(accepted), "again": (b"record-7", 2) in accepted}

    def _create(self, topic: str, partition_count: int, config: Mapping[str, str] | None = None) -> None:
        new = confluent_admin.NewTopic(topic, partition_count, 1, config=dict(config or {}))
        _done(self._admin.create_topics([new]))

    def _set(self, kind: object, name: str, setting: str, value: str) -> None:
        operation = confluent_admin.AlterConfigOpType.SET
        entry = confluent_admin.ConfigEntry(setting, value, incremental_operation=operation)
        resource = confluent_admin.ConfigResource(kind, name, incremental_configs=[entry])
        _done(self._admin.incremental_alter_configs([resource]))

    def _produce(self, topic: str, count: int) -> None:
        producer = confluent.Producer(self._settings)
        partition_count = len(self._admin.list_topics(topic, timeout=SECONDS_MAX).topics[topic].partitions)
        for number in range(count):
            producer.produce(topic, f"record-{number}", partition=number % partition_count)
        assert producer.flush(SECONDS_MAX) == 0

    def _consumer(self, group: str, **settings: object) -> Any:
        own = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        quick = {} if "group.protocol" in settings else {"heartbeat.interval.ms": 300}
        return confluent.Consumer({**self._settings, **own, **quick, **settings})

    def _committed(self, group: str) -> int:
        asked = confluent.ConsumerGroupTopicPartitions(group)
        (found,) = self._admin.list_consumer_group_offsets([asked]).values()
        return sum(one.offset for one in found.result().topic_partitions)


def _done(futures: Mapping[Any, Any]) -> Any:
    """The result of the only future."""
    (future,) = futures.values()
    return future.result()


def _poll(values: set[bytes], *consumers: Any) -> set[bytes]:
    for consumer in consumers:
        for message in consumer.consume(50, 0.1):
            assert message.error() is None, message.error()
            values.add(message.value())
    return values


if __name__ == "__main__":
    run = ConfluentRun(*sys.argv[1:3])
    parts: dict[str, Callable[[], Facts]] = {
        "basic": run.basic,
        "rebalance": run.rebalance,
        "rebalance-consumer": run.rebalance_consumer,
        "transactions": run.transactions,
        "share": run.share,
    }
    run_parts(parts, sys.argv[3:])
