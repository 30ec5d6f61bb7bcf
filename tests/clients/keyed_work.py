"""Keyed records that several share consumers process, and the check of `share.order=key`.

A record's value is its key with its number in the key. One thread uses the consumers, one after another, so
the test knows at each moment which of them holds which records.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer

from tests.clients.confluent_polling import poll, text
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import JavaRecord, JavaShareConsumer

KEYS = 12
UNANSWERED_SECONDS = 2.0
"""How long a client tries to commit while the broker is down."""
_SETTLES, _ACCEPTS_ALL = 0.6, 0.8
"""Chances of a step."""


class KeyedRecord(NamedTuple):
    """The key and the number of a record in its key, from its value."""

    key: str
    number: int


class Worker(Protocol):
    """A share consumer with explicit acknowledgement, which holds the records of its last poll."""

    def poll(self) -> Sequence[KeyedRecord]: ...

    def settle(self, accepted: int, seconds_max: float) -> bool:
        """Accepts this number of the held records, the lowest first, and releases the others; whether the
        broker confirmed it within this time.
        """
        ...


class JavaWorker:
    """Java's consumer as a worker."""

    def __init__(self, consumer: JavaShareConsumer) -> None:
        self._consumer = consumer
        self._held: list[JavaRecord] = []

    def poll(self) -> Sequence[KeyedRecord]:
        self._held = self._consumer.poll(50)
        return [_keyed(record.value or "") for record in self._held]

    def settle(self, accepted: int, seconds_max: float) -> bool:
        self._consumer.acknowledge(self._held[:accepted])
        self._consumer.acknowledge(self._held[accepted:], "RELEASE")
        results = self._consumer.commit_sync(round(seconds_max * 1000))
        return bool(results) and all(result.error is None for result in results)


class ConfluentWorker:
    """confluent-kafka's consumer as a worker."""

    def __init__(self, consumer: ShareConsumer) -> None:
        self._consumer = consumer
        self._held: list[Message] = []

    def poll(self) -> Sequence[KeyedRecord]:
        self._held = poll(self._consumer)
        return [_keyed(text(message)) for message in self._held]

    def settle(self, accepted: int, seconds_max: float) -> bool:
        for index, message in enumerate(self._held):
            is_accepted = index < accepted
            self._consumer.acknowledge(
                message, AcknowledgeType.ACCEPT if is_accepted else AcknowledgeType.RELEASE
            )
        results = self._consumer.commit_sync(seconds_max)
        return bool(results) and set(results.values()) == {None}


def _keyed(value: str) -> KeyedRecord:
    key, number = value.rsplit("/", 1)
    return KeyedRecord(key, int(number))


def produce_keyed(bootstrap: str, topic: str, numbers: Iterable[int], *, codec: str = "none") -> None:
    """One record of each key for each number, in large batches. The keys come in another order each time."""
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "linger.ms": 200,
        "compression.type": codec,
        "log_level": 0,
    }
    producer = Producer(settings)
    for number in numbers:
        for key in random.Random(number).sample(range(KEYS), KEYS):
            producer.produce(topic, key=f"key-{key}", value=f"key-{key}/{number}")
    assert producer.flush(SECONDS_MAX) == 0


@dataclass
class KeyedWork:
    """The work of some consumers, by the broker's answers."""

    workers: Sequence[Worker]
    chance: random.Random
    run_max: int = 1
    """The most records of one key in one delivery."""
    held: dict[int, list[KeyedRecord]] = field(default_factory=dict[int, list[KeyedRecord]])
    """By worker."""
    confirmed: dict[str, int] = field(default_factory=dict[str, int])
    """By key, the number of records whose acceptance the broker has confirmed."""
    accepted: dict[str, int] = field(default_factory=dict[str, int])
    """The same, with those whose acceptance was sent."""
    was_killed: bool = False
    """The broker was killed. A client may still return records that it had fetched before; the broker refuses
    their acknowledgements. So from now on only confirmed acceptances show the order.
    """

    def finish(self, count: int) -> None:
        """Works until `count` records of each key are accepted."""

        def is_done() -> bool:
            self.step()
            return len(self.confirmed) == KEYS and min(self.confirmed.values()) >= count

        eventually(is_done, awaited=f"{count} records of each key are accepted")
        assert set(self.confirmed.values()) == {count}

    def finish_some(self, count: int) -> None:
        """Works until this number of records is accepted, over all keys."""

        def is_done() -> bool:
            self.step()
            return sum(self.confirmed.values()) >= count

        eventually(is_done, awaited=f"{count} records are accepted")

    def step(self) -> None:
        """One worker polls, or acknowledges its records."""
        index = self.chance.randrange(len(self.workers))
        if self.held and self.chance.random() < _SETTLES:
            index = self.chance.choice(list(self.held))
        if index in self.held:
            count = len(self.held[index])
            accepts_all = self.chance.random() < _ACCEPTS_ALL
            self.settle(index, count if accepts_all else self.chance.randint(0, count))
            return
        records = list(self.workers[index].poll())
        self._check(records)
        if records:
            self.held[index] = records

    def settle(self, index: int, accepted: int, seconds_max: float = SECONDS_MAX) -> None:
        """This worker accepts some of its records, and releases the others."""
        records = self.held.pop(index)[:accepted]
        before = dict(self.accepted)
        for key, number in records:
            self.accepted[key] = max(self.accepted.get(key, 0), number + 1)
        if self.workers[index].settle(accepted, seconds_max):
            for key, number in records:
                assert number <= max(self.confirmed.get(key, 0), before.get(key, 0)), (key, number)
                assert number >= self.confirmed.get(key, 0), "a record is accepted once"
                self.confirmed[key] = number + 1

    def outlive(self) -> None:
        """The broker is down: each worker gives up the records that it has or had fetched."""
        self.was_killed = True
        for index, worker in enumerate(self.workers):
            while index in self.held:
                self.settle(index, 0, UNANSWERED_SECONDS)
                records = list(worker.poll())
                if records:
                    self.held[index] = records

    def _check(self, records: Sequence[KeyedRecord]) -> None:
        if self.was_killed:
            return
        held_keys = {record.key for others in self.held.values() for record in others}
        assert held_keys.isdisjoint(record.key for record in records), "a key is held by another consumer"
        by_key: dict[str, list[int]] = {}
        for key, number in records:
            by_key.setdefault(key, []).append(number)
        for key, numbers in by_key.items():
            first = numbers[0]
            assert self.confirmed.get(key, 0) <= first <= self.accepted.get(key, 0), (key, numbers)
            assert numbers == list(range(first, first + len(numbers)))
            assert len(numbers) <= self.run_max
