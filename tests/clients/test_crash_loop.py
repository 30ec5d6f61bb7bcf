"""SIGKILL in a loop under load: confirmed data is kept.

A producer and two share consumers of one group, one Java and one librdkafka, work on while the broker is
killed and started again on the same data. Two promises are checked: a record whose production was confirmed
is delivered, and a record whose acceptance was confirmed is never delivered again. While it is
down, both consumers are polled until they hold no record of the old process, so that all records delivered
later come from the new one. At the end no record is left. The workload `recovery` of the benchmarks measures
the time until the broker serves again.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer, ShareConsumer, TopicPartition

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import Cluster
from tests.clients.confluent_polling import text
from tests.clients.java_polling import wait_for_lag
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import JavaError, ShareProbe

pytestmark = [pytest.mark.barnabas, pytest.mark.clients]

KILLS = 8
PARTITIONS = 3
ACCEPTED_BETWEEN_KILLS = 300
LOCK_MS = 3000
UNCONFIRMED_MAX = 200
POLL_SECONDS = 0.1
COMMIT_SECONDS = 1.0
"""A commit that the broker does not answer in time counts as not confirmed."""


@dataclass
class Ledger:
    """The broker's confirmations, and the records that it delivered although it had confirmed their
    acceptance.
    """

    produced: set[str] = field(default_factory=set[str])
    delivered: set[str] = field(default_factory=set[str])
    accepted: set[str] = field(default_factory=set[str])
    delivered_again: list[str] = field(default_factory=list[str])

    def note_delivery(self, values: Iterable[str]) -> None:
        """Values that a poll returned."""
        delivered = list(values)
        self.delivered_again.extend(value for value in delivered if value in self.accepted)
        self.delivered.update(delivered)

    def wait_for_acceptances(self, count: int) -> None:
        """Return when the broker has confirmed this number of acceptances."""
        eventually(lambda: len(self.accepted) >= count, awaited=f"{count} acceptances are confirmed")


class Worker:
    """A thread that repeats `work` until it is ended. It rests when a rest is requested and it is idle.

    `work` does one round and returns whether there was anything to do.
    """

    def __init__(self, name: str, work: Callable[[], bool]) -> None:
        self._work = work
        self._rest_asked = threading.Event()
        self._resting = threading.Event()
        self._end_asked = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def ask_to_rest(self) -> None:
        """Let it rest as soon as there is nothing to do."""
        self._rest_asked.set()

    def await_rest(self) -> None:
        """Return when it rests."""
        eventually(lambda: self._resting.is_set() or self._failure, awaited=f"{self._thread.name} rests")

    def resume(self) -> None:
        """Let it work again."""
        self._rest_asked.clear()
        self._resting.clear()

    def end(self) -> None:
        """End the thread; raises its error if it failed."""
        self._end_asked.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._end_asked.is_set():
                self._round()
        except BaseException as failure:
            self._failure = failure

    def _round(self) -> None:
        if self._resting.is_set():
            self._end_asked.wait(0.02)
        elif not self._work() and self._rest_asked.is_set():
            self._resting.set()


@contextmanager
def at_work(worker: Worker) -> Generator[Worker]:
    """Ends the worker in any case."""
    try:
        yield worker
    finally:
        worker.end()


class ProducerWork:
    """Produces numbered values, no more than UNCONFIRMED_MAX ahead of the broker's confirmations."""

    def __init__(self, bootstrap: str, topic: str, ledger: Ledger) -> None:
        self._topic = topic
        self._ledger = ledger
        self._count = 0
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "batch.num.messages": 10,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def __call__(self) -> bool:
        if len(self.producer) < UNCONFIRMED_MAX:
            value = f"value-{self._count}"
            self._count += 1
            self.producer.produce(self._topic, value, on_delivery=self._note)
        self.producer.poll(0.001)
        return True

    def _note(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._ledger.produced.add(text(message))


class JavaWork:
    """Polls a KafkaShareConsumer, accepts the records and commits synchronously."""

    def __init__(self, probe: ShareProbe, group: str, topic: str, ledger: Ledger) -> None:
        self._consumer = probe.consumer("java", group, [topic], share_acknowledgement_mode="explicit")
        self._ledger = ledger
        self._values: dict[tuple[int, int], str] = {}

    def __call__(self) -> bool:
        records = self._consumer.poll(round(POLL_SECONDS * 1000))
        self._ledger.note_delivery(record.value or "" for record in records)
        for record in records:
            self._values[record.partition, record.offset] = record.value or ""
        if records:
            self._consumer.acknowledge(records)
            self._commit()
        for outcome in self._consumer.outcomes():
            if outcome.error is None:
                self._ledger.accepted.update(
                    self._values[outcome.partition, each] for each in outcome.offsets
                )
        return bool(records)

    def _commit(self) -> None:
        """While the broker is down, the client may raise its timeout instead of returning an outcome."""
        try:
            self._consumer.commit_sync(round(COMMIT_SECONDS * 1000))
        except JavaError as error:
            if error.kind != "TimeoutException":
                raise


class ConfluentWork:
    """The same with librdkafka's share consumer."""

    def __init__(self, consumer: ShareConsumer, ledger: Ledger) -> None:
        self._consumer = consumer
        self._ledger = ledger
        self._values: dict[tuple[int, int], str] = {}
        consumer.set_acknowledgement_commit_callback(self._note)

    def __call__(self) -> bool:
        messages = [message for message in self._consumer.poll(POLL_SECONDS) if message.error() is None]
        self._ledger.note_delivery(map(text, messages))
        for message in messages:
            self._values[message.partition() or 0, message.offset() or 0] = text(message)
            self._consumer.acknowledge(message)
        if messages:
            self._consumer.commit_sync(COMMIT_SECONDS)
        return bool(messages)

    def _note(self, offsets: dict[TopicPartition, set[int]], failure: KafkaException | None) -> None:
        if failure is None:
            for partition, confirmed in offsets.items():
                self._ledger.accepted.update(self._values[partition.partition, each] for each in confirmed)


@contextmanager
def working_consumers(
    broker: BrokerProcess, group: str, topic: str, ledger: Ledger
) -> Generator[tuple[ShareProbe, list[Worker]]]:
    """One Java and one librdkafka share consumer at work, and the probe of the former."""
    probe = ShareProbe(broker.address)
    confluent = ShareConsumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    confluent.subscribe([topic])
    workers = [
        Worker("java consumer", JavaWork(probe, group, topic, ledger)),
        Worker("librdkafka consumer", ConfluentWork(confluent, ledger)),
    ]
    try:
        with at_work(workers[0]), at_work(workers[1]):
            yield probe, workers
    finally:
        confluent.close()
        probe.kill()


def crash(broker: BrokerProcess, consumers: Sequence[Worker]) -> None:
    """Kill the broker, let the consumers run dry, and start it again."""
    broker.kill()
    for consumer in consumers:
        consumer.ask_to_rest()
    for consumer in consumers:
        consumer.await_rest()
    broker.start()
    for consumer in consumers:
        consumer.resume()


@pytest.mark.parametrize("share_state_store", ["log", "topic"])
def test_nothing_confirmed_is_lost_and_nothing_accepted_comes_again(
    barnabas_command: Path, tmp_path: Path, share_state_store: str
) -> None:
    settings = {
        **TEST_SETTINGS,
        "share.state.store": share_state_store,
        "group.share.record.lock.duration.ms": str(LOCK_MS),
    }
    with started(BrokerProcess(barnabas_command, tmp_path / "data", settings)) as broker:
        check_crashes(broker)


def check_crashes(broker: BrokerProcess) -> None:
    cluster = Cluster(broker.address)
    topic, group = cluster.topic(PARTITIONS), cluster.group()
    ledger = Ledger()
    production = ProducerWork(broker.address, topic, ledger)
    with (
        working_consumers(broker, group, topic, ledger) as (probe, consumers),
        at_work(Worker("producer", production)) as producing,
    ):
        for kill in range(1, KILLS + 1):
            ledger.wait_for_acceptances(kill * ACCEPTED_BETWEEN_KILLS)
            crash(broker, consumers)
        producing.end()
        assert production.producer.flush(SECONDS_MAX) == 0
        # An acceptance may be recorded while its confirmation is lost with the broker: it is never confirmed.
        eventually(lambda: ledger.delivered >= ledger.produced, awaited="all produced records are delivered")
        wait_for_lag(probe, group, 0)
    assert len(ledger.produced) >= KILLS * ACCEPTED_BETWEEN_KILLS
    assert ledger.delivered_again == []
