"""The parts of the client matrix with kafka-python: see `programs`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from tests.clients.matrix.facts import Facts, run_parts
from tests.clients.polling import eventually
from tests.clients.untyped_clients import kafka_python

kafka_admin: Any = import_module("kafka.admin")
kafka_errors: Any = import_module("kafka.errors")
kafka_structs: Any = import_module("kafka.structs")

POLL_MS = 500


class KafkaPythonRun:
    def __init__(self, address: str, prefix: str) -> None:
        self._settings = {"bootstrap_servers": address}
        self._prefix = prefix
        self._admin = kafka_admin.KafkaAdminClient(**self._settings)

    def basic(self) -> Facts:
        topic = f"{self._prefix}-basic"
        new = kafka_admin.NewTopic(topic, 1, 1, topic_configs={"retention.ms": "90000"})
        self._admin.create_topics([new])
        self._admin.create_partitions({topic: kafka_admin.NewPartitions(2)})
        kind = kafka_admin.ConfigResourceType.TOPIC
        self._admin.alter_configs([kafka_admin.ConfigResource(kind, topic, {"max.message.bytes": "50000"})])
        found = self._admin.describe_configs([kafka_admin.ConfigResource(kind, topic)])
        config = found["topic"][topic]
        listed = self._admin.list_topics()
        (described,) = self._admin.describe_topics([topic])
        self._produce(topic, 10, 2)
        consumer = self._consumer(topic)
        _subscribe(consumer, topic)
        values: set[bytes] = set()
        self._read(topic, values, 10, 10, consumer)
        consumer.close()
        facts: Facts = {
            "partitions": len(described["partitions"]),
            "retention": int(config["retention.ms"]["value"]),
            "bytes": int(config["max.message.bytes"]["value"]),
            "listed": topic in listed,
            "read": len(values),
            "committed": self._committed(topic),
            "group": topic in {one["group_id"] for one in self._admin.list_groups()},
        }
        self._admin.delete_groups([topic])
        self._admin.delete_topics([topic])
        return facts

    def rebalance(self) -> Facts:
        topic = f"{self._prefix}-rebalance"
        self._admin.create_topics([kafka_admin.NewTopic(topic, 2, 1)])
        self._produce(topic, 20, 2)
        first, second = self._consumer(topic), self._consumer(topic)
        values: set[bytes] = set()
        again: set[bytes] = set()

        def has(count: int, *consumers: Any) -> bool:
            return [len(one.assignment()) for one in consumers] == [count] * len(consumers)

        _subscribe(first, topic)
        eventually(lambda: _poll(values, first) and has(2, first), awaited="the first has all")
        self._read(topic, values, 20, 20, first)
        _subscribe(second, topic)
        eventually(lambda: _poll(values, first, second) and has(1, first, second), awaited="they share")
        self._produce(topic, 20, 2)
        self._read(topic, again, 20, 40, first, second)
        first.close()
        eventually(lambda: _poll(values, second) and has(2, second), awaited="the second has all")
        second.close()
        return {"read": len(values), "again": len(again), "committed": self._committed(topic)}

    def transactions(self) -> Facts:
        source, target = f"{self._prefix}-input", f"{self._prefix}-output"
        self._admin.create_topics([kafka_admin.NewTopic(name, 1, 1) for name in (source, target)])
        self._produce(source, 5, 1)
        consumer = self._consumer(source)
        _subscribe(consumer, source)
        values: set[bytes] = set()
        eventually(lambda: len(_poll(values, consumer)) == 5, awaited="the input is read")
        producer = kafka_python.KafkaProducer(**self._settings, transactional_id=f"{self._prefix}-tx")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(target, b"dropped")
        producer.flush()
        producer.abort_transaction()
        producer.begin_transaction()
        for value in values:
            producer.send(target, value)
        partition = kafka_structs.TopicPartition(source, 0)
        offsets = {partition: kafka_structs.OffsetAndMetadata(5, "", -1)}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
        producer.close()
        consumer.close()
        reader = self._consumer(target, isolation_level="read_committed")
        _subscribe(reader, target)
        seen: set[bytes] = set()
        eventually(lambda: len(_poll(seen, reader)) == 5, awaited="the output is read")
        reader.close()
        return {"seen": len(seen), "dropped": b"dropped" in seen, "committed": self._committed(source)}

    def _produce(self, topic: str, count: int, partition_count: int) -> None:
        producer = kafka_python.KafkaProducer(**self._settings, acks="all")
        for number in range(count):
            producer.send(topic, f"record-{number}".encode(), partition=number % partition_count)
        producer.close()

    def _consumer(self, group: str, **settings: object) -> Any:
        return kafka_python.KafkaConsumer(
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
            metadata_max_age_ms=1000,
            **self._settings,
            **settings,
        )

    def _read(self, group: str, values: set[bytes], count: int, committed: int, *consumers: Any) -> None:
        """Read until this number of values has arrived, and the group has committed as many offsets in total.

        A consumer that has to join again cannot commit, and starts again at the group's previous offset.
        """

        def is_done() -> bool:
            if len(_poll(values, *consumers)) < count:
                return False
            try:
                for consumer in consumers:
                    consumer.commit()
            except kafka_errors.RebalanceInProgressError:
                return False
            return self._committed(group) == committed

        eventually(is_done, awaited=f"{count} records are read and committed")

    def _committed(self, group: str) -> int:
        found = self._admin.list_group_offsets({group: None})
        return sum(one.offset for one in found[group].values())


def _subscribe(consumer: Any, topic: str) -> None:
    """With the topic known beforehand: otherwise the client may assign itself nothing, join again
    immediately, and lose the answer of the first join.
    """
    assert consumer.partitions_for_topic(topic)
    consumer.subscribe([topic])


def _poll(values: set[bytes], *consumers: Any) -> set[bytes]:
    """Poll all of them at once: a joining member waits for the others, and a join that outlasts its poll
    starts again with the next one.
    """

    def poll(consumer: Any) -> Any:
        return consumer.poll(timeout_ms=POLL_MS)

    with ThreadPoolExecutor() as threads:
        for polled in threads.map(poll, consumers):
            values.update(record.value for records in polled.values() for record in records)
    return values


if __name__ == "__main__":
    run = KafkaPythonRun(*sys.argv[1:3])
    run_parts(
        {"basic": run.basic, "rebalance": run.rebalance, "transactions": run.transactions}, sys.argv[3:]
    )
