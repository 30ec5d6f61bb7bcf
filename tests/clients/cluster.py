"""Requests of a test besides consuming: topics, group settings, fresh names, records to read."""

import itertools
import os
import time
import uuid
from base64 import b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicCollection

from barnabas.protocol.records import Record, encode_records
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.raw_frames import RawConnection, produce_error, produce_request

confluent_admin: Any = import_module("confluent_kafka.admin")
"""By name, because its type information is incomplete."""

NEVER_MS = 3_600_000
"""The duration of locks that do not end during a test, however slow the machine is."""

_numbers = itertools.count()


def unique(word: str) -> str:
    """A name that no other test, process or run on the same broker uses."""
    return f"{word}-{os.getpid()}-{os.urandom(3).hex()}-{next(_numbers)}"


@dataclass
class Cluster:
    """A broker as a test sees it, through confluent-kafka's admin client and producer."""

    bootstrap: str
    admin: Any = field(init=False)

    def __post_init__(self) -> None:
        self.admin = confluent_admin.AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def topic(self, partition_count: int = 1, *, name: str | None = None, **config: str) -> str:
        """Create a topic, with a fresh name if none is given; settings are Kafka's, underscores for dots."""
        name = name or unique("topic")
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = confluent_admin.NewTopic(
            name, num_partitions=partition_count, replication_factor=1, config=settings
        )
        for created in self.admin.create_topics([new]).values():
            created.result()
        eventually(lambda: self._knows(name, partition_count), awaited=f"the broker knows {name}")
        return name

    def _knows(self, topic: str, partition_count: int) -> bool:
        """Whether the topic can be used. Apache Kafka's broker learns of it a little after its creation."""
        try:
            partitions = self._describe(topic).partitions
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return False
            raise
        return len(partitions) == partition_count and all(one.leader is not None for one in partitions)

    def _describe(self, topic: str) -> Any:
        (described,) = self.admin.describe_topics(TopicCollection([topic])).values()
        return described.result()

    def topic_id(self, topic: str) -> uuid.UUID:
        """A topic's id."""
        return uuid.UUID(bytes=b64decode(f"{self._describe(topic).topic_id}=="))

    def group(self, *, start: str = "earliest", **config: object) -> str:
        """Name a fresh share group with these settings (`share.` left out, underscores for dots)."""
        name = unique("group")
        settings = {"auto.offset.reset": start}
        settings |= {key.replace("_", "."): str(value) for key, value in config.items()}
        self.set_group(name, {f"share.{key}": value for key, value in settings.items()})
        return name

    def set_group(self, group: str, settings: dict[str, str]) -> None:
        """Set settings of a group by their full names."""
        self._set(confluent_admin.ResourceType.GROUP, group, settings)

    def set_topic(self, topic: str, settings: dict[str, str]) -> None:
        """Set settings of a topic."""
        self._set(confluent_admin.ResourceType.TOPIC, topic, settings)

    def _set(self, kind: Any, name: str, settings: dict[str, str]) -> None:
        entries = [
            confluent_admin.ConfigEntry(
                setting, value, incremental_operation=confluent_admin.AlterConfigOpType.SET
            )
            for setting, value in settings.items()
        ]
        resource = confluent_admin.ConfigResource(kind, name, incremental_configs=entries)
        for altered in self.admin.incremental_alter_configs([resource]).values():
            altered.result()

    def produce(self, topic: str, values: Iterable[str | bytes], **config: object) -> list[int]:
        """Produce values with confluent-kafka and wait for all of them; their offsets in that order."""
        settings: dict[str, object] = {
            "bootstrap.servers": self.bootstrap,
            "linger.ms": 50,
            "log_level": 0,
        }
        settings |= {key.replace("_", "."): value for key, value in config.items()}
        offsets: list[int] = []
        producer = Producer(settings)
        for value in values:
            producer.produce(topic, value, on_delivery=NoteOffset(offsets))
        assert producer.flush(SECONDS_MAX) == 0, "records were not delivered in time"
        return offsets

    def produce_batch(self, topic: str, values: Iterable[str]) -> None:
        """Produce values to partition 0 as one batch; how many of them a client sends together depends on
        the time.
        """
        now_ms = time.time_ns() // 1_000_000
        records = [Record(number, now_ms, None, value.encode()) for number, value in enumerate(values)]
        request = produce_request(topic, encode_records(records), version=7)
        with RawConnection(self.bootstrap) as connection:
            assert produce_error(connection.exchange(request)) == 0


@dataclass(frozen=True)
class NoteOffset:
    """Keeps the offset of each delivered record; a failed one raises out of the producer's flush."""

    offsets: list[int]

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        offset = message.offset()
        assert offset is not None
        self.offsets.append(offset)


def numbered(count: int, word: str = "record") -> Sequence[str]:
    """`record-0`, `record-1`, ..."""
    return [f"{word}-{number}" for number in range(count)]
