"""Dead letters as Apache Kafka 4.4 writes them, for tests: source records, their letters, and a reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.clients.cluster import Cluster, NoteOffset, unique
from tests.clients.polling import SECONDS_MAX

REJECTED = "Offset rejected by client."
EXCEEDED = "Offset delivery count exceeded the threshold."

Headers = Sequence[tuple[str, bytes | None]]


class Written(NamedTuple):
    """One record of a topic, without its place."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def letter_headers(
    topic: str, partition: int, offset: int, *, group: str = "billing", count: int = 1, reason: str = REJECTED
) -> list[tuple[str, bytes | None]]:
    """The headers of a letter, in Apache Kafka's order."""
    values = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "group": group,
        "delivery.count": count,
        "message": reason,
    }
    return [(f"__dlq.errors.{name}", str(value).encode()) for name, value in values.items()]


@dataclass
class LetterBox:
    """A source topic and its dead letter topic on a broker, created unless they are given."""

    address: str
    partition_count: int = 1
    source: str = ""
    dlq: str = ""
    cluster: Cluster = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = Cluster(self.address)
        self.source = self.source or self.cluster.topic(self.partition_count, name=unique("orders"))
        self.dlq = self.dlq or self.cluster.topic(self.partition_count, name=f"dlq.{self.source}")

    def add(
        self,
        *records: Written,
        partition: int = 0,
        group: str = "billing",
        reason: str = REJECTED,
        copied: bool = False,
    ) -> list[int]:
        """Produce the records to the source topic, and a letter for each; returns their offsets there."""
        offsets = self.produce(self.source, records, partition)
        letters = [
            Written(
                record.key if copied else None,
                record.value if copied else None,
                letter_headers(self.source, partition, offset, group=group, reason=reason),
            )
            for record, offset in zip(records, offsets, strict=True)
        ]
        self.produce(self.dlq, letters, partition % self.partition_count)
        return offsets

    def produce(
        self, topic: str, records: Iterable[Written], partition: int = 0, *, timestamp_ms: int = 0
    ) -> list[int]:
        """Produce to one partition, at the present time if none is given; returns the offsets."""
        offsets: list[int] = []
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 5, "log_level": 0})
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition,
                NoteOffset(offsets),
                timestamp=timestamp_ms,
                headers=list(record.headers),
            )
        assert producer.flush(SECONDS_MAX) == 0, "records were not delivered in time"
        return offsets

    def read(self, topic: str, partition: int = 0, *, after: int = 0) -> list[Written]:
        """The committed records of a partition from this offset on."""
        return [
            Written(
                one.key(),
                one.value(),
                cast("list[tuple[str, bytes | None]]", one.headers() or []),
            )
            for one in self._messages(topic, partition, after)
        ]

    def times_ms(self, topic: str) -> list[int]:
        """The times of the committed records of partition 0."""
        return [one.timestamp()[1] for one in self._messages(topic, 0, 0)]

    def _messages(self, topic: str, partition: int, after: int) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": unique("reader"),
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(topic, partition, after)])
        found: list[Message] = []
        try:
            while True:
                message = consumer.poll(SECONDS_MAX)
                assert message is not None, f"{topic}-{partition} is not read to its end in time"
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return found
                found.append(message)
        finally:
            consumer.close()


def numbered_records(count: int, *, keys: int = 3) -> list[Written]:
    """Records with the values 0, 1, ..., with keys in turn, each with a header."""
    return [
        Written(b"key-%d" % (number % keys), b"%d" % number, [("trace", b"t%d" % number)])
        for number in range(count)
    ]
