"""The steps of a transcript besides commands: clients that run while a tool works, and files that it reads.

`@ file NAME` creates a file of the lines that follow. `@ consumer NAME GROUP TOPIC` joins a consumer group,
gets all partitions of the topic, reads and commits the records present, and stays. `@ share-consumer NAME
GROUP TOPIC COUNT` does so with a share group, and acknowledges COUNT records. `@ transaction ID TOPIC` writes
a record in a transaction that it leaves open. `@ commit ID`, `@ abort ID` and `@ close NAME` end them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from tests.clients.polling import SECONDS_MAX, eventually

_confluent: Any = import_module("confluent_kafka")
"""By name, because its type information is incomplete."""


class Actions:
    """The clients of one broker."""

    def __init__(self, address: str, directory: Path) -> None:
        self._settings: dict[str, object] = {"bootstrap.servers": address, "log_level": 0}
        self._directory = directory
        self._clients: dict[str, Any] = {}
        self._verbs: dict[str, Callable[..., None]] = {
            "consumer": self._consumer,
            "share-consumer": self._share_consumer,
            "transaction": self._transaction,
            "commit": self._commit,
            "abort": self._abort,
            "close": self._close,
        }

    def do(self, words: Sequence[str], lines: Sequence[str]) -> None:
        verb, *arguments = words
        if verb == "file":
            (self._directory / arguments[0]).write_text("".join(f"{line}\n" for line in lines))
        else:
            self._verbs[verb](*arguments)

    def close(self) -> None:
        """End the clients that are left."""
        for client in self._clients.values():
            with suppress(KafkaException, AttributeError):
                client.close()
        self._clients.clear()

    def _consumer(self, name: str, group: str, topic: str) -> None:
        """Client id and member's name are `name`."""
        settings = {**self._settings, "group.id": group, "client.id": name, "auto.offset.reset": "earliest"}
        consumer = _confluent.Consumer({**settings, "enable.auto.commit": False})
        consumer.subscribe([topic])
        self._clients[name] = consumer

        def at_the_end() -> bool:
            consumer.poll(0.1)
            assigned = consumer.assignment()
            positions = [one.offset for one in consumer.position(assigned)]
            ends = [consumer.get_watermark_offsets(one, timeout=SECONDS_MAX)[1] for one in assigned]
            return bool(assigned) and positions == ends

        eventually(at_the_end, awaited=f"{name} has read everything")
        consumer.commit(asynchronous=False)

    def _share_consumer(self, name: str, group: str, topic: str, count: str) -> None:
        settings = {**self._settings, "group.id": group, "client.id": name}
        consumer = _confluent.ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
        consumer.subscribe([topic])
        self._clients[name] = consumer
        left = int(count)

        def acknowledged() -> bool:
            nonlocal left
            for message in consumer.poll(0.2) or ():
                if left > 0:
                    consumer.acknowledge(message)
                    left -= 1
            return left == 0

        eventually(acknowledged, awaited=f"{name} has acknowledged {count} records")
        consumer.commit_sync(SECONDS_MAX)

    def _commit(self, transactional_id: str) -> None:
        self._clients.pop(transactional_id).commit_transaction(SECONDS_MAX)

    def _abort(self, transactional_id: str) -> None:
        self._clients.pop(transactional_id).abort_transaction(SECONDS_MAX)

    def _close(self, name: str) -> None:
        self._clients.pop(name).close()

    def _transaction(self, transactional_id: str, topic: str) -> None:
        producer = _confluent.Producer({**self._settings, "transactional.id": transactional_id})
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
        producer.produce(topic, b"in a transaction", partition=0)
        producer.flush(SECONDS_MAX)
        self._clients[transactional_id] = producer
