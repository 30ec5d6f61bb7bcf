"""The unmodified clients that put load on brokers, and the rate that each reports."""

import re
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from tests.clients.java_build import java_classpath, require
from tests.clients.polling import eventually

SHARE_CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ShareConsumerPerformance"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"

_NO_MORE_SECONDS = 60.0
_PROGRESS = re.compile(r"^(?P<start>[^,]+), (?P<end>[^,]+), [\d.]+, [\d.]+, [\d.]+, (?P<count>\d+), \d+")
_PRODUCED = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")


def java_tool(main: str, *arguments: str) -> str:
    """Run one of Kafka's tools in its own JVM. Returns its output."""
    heap = ("-Xmx1G", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
    done = subprocess.run(
        [require("java"), *heap, "-cp", java_classpath(), main, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{main} failed: {done.stderr.strip()[-1000:]}")
    return done.stdout


def share_consumer_performance(bootstrap: str, topic: str, group: str, count: int, threads: int = 1) -> float:
    """Records per second of Kafka's own benchmark from its first delivery on, without the join."""
    printed = java_tool(
        SHARE_CONSUMER_PERFORMANCE,
        *("--bootstrap-server", bootstrap, "--topic", topic, "--group", group),
        *("--num-records", str(count), "--threads", str(threads), "--timeout", "60000", "--hide-header"),
        *("--show-detailed-stats", "--reporting-interval", "50"),
    )
    return rate_from_progress(printed, count)


def rate_from_progress(printed: str, count: int) -> float:
    """The rate between the earliest progress line (a consumer's first record) and the last line's total."""
    rows = [found for line in printed.splitlines() if (found := _PROGRESS.match(line))]
    if not rows or int(rows[-1]["count"]) < count:
        raise RuntimeError(f"the benchmark did not get its {count} records:\n{printed}")
    first = min(rows[:-1], key=lambda row: _milliseconds(row["end"]))
    seconds = (_milliseconds(rows[-1]["end"]) - _milliseconds(first["end"])) / 1000
    return (int(rows[-1]["count"]) - int(first["count"])) / seconds


def _milliseconds(text: str) -> float:
    moment, fraction = text.strip().rsplit(":", 1)
    return datetime.strptime(moment, "%Y-%m-%d %H:%M:%S").timestamp() * 1000 + int(fraction)  # noqa: DTZ007


def producer_performance(bootstrap: str, topic: str, count: int, value_bytes: int) -> float:
    """Records per second of Kafka's own producer benchmark."""
    printed = java_tool(
        PRODUCER_PERFORMANCE,
        *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(count)),
        *("--record-size", str(value_bytes), "--throughput", "-1"),
    )
    return float(_PRODUCED.findall(printed)[-1][1])


def fill(bootstrap: str, topic: str, count: int, value_bytes: int, **config: object) -> float:
    """Produce records of one size with librdkafka. Returns records per second until the last is confirmed."""
    settings: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 1_000_000,
    }
    settings |= {name.replace("_", "."): value for name, value in config.items()}
    failures: list[KafkaError] = []

    def note(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(settings)
    value = bytes(value_bytes)
    begin = time.perf_counter()
    for _ in range(count):
        _produce(producer, topic, value, note)
    producer.flush(120)
    if failures:
        raise KafkaException(failures[0])
    return count / (time.perf_counter() - begin)


def _produce(producer: Producer, topic: str, value: bytes, note: Callable[..., None]) -> None:
    while True:
        try:
            producer.produce(topic, value, on_delivery=note)
        except BufferError:
            producer.poll(0.05)
        else:
            producer.poll(0)
            return


def share_consumer(bootstrap: str, topic: str, group: str, mode: str, **config: object) -> ShareConsumer:
    """A librdkafka share consumer, subscribed."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "share.acknowledgement.mode": mode,
        "log_level": 0,
    }
    settings |= {name.replace("_", "."): value for name, value in config.items()}
    consumer = ShareConsumer(settings)
    consumer.subscribe([topic])
    return consumer


def share_rate(bootstrap: str, topic: str, group: str, count: int, mode: str, **config: object) -> float:
    """Records per second that a librdkafka share consumer acquires and accepts, after its first batch."""
    consumer = share_consumer(bootstrap, topic, group, mode, **config)
    explicit = mode == "explicit"

    def take() -> int:
        messages = consumer.poll(1.0)
        if explicit:
            for message in messages:
                consumer.acknowledge(message)
        return len(messages)

    rate = _rate_after_first_batch(take, count)
    consumer.commit_sync(30)
    consumer.close()
    return rate


def plain_rate(bootstrap: str, topic: str, count: int) -> float:
    """Records per second that a librdkafka consumer reads from partition 0, after its first batch.

    It may fetch ahead without limit. By default librdkafka stops at 100,000 records for a second at a time
    (`fetch.queue.backoff.ms`), and the benchmark would measure that pause with every broker.
    """
    settings = {"queued.min.messages": 10_000_000, "queued.max.messages.kbytes": 2_000_000}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0, **settings})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    rate = _rate_after_first_batch(lambda: len(consumer.consume(10_000, 1.0)), count)
    consumer.close()
    return rate


def _rate_after_first_batch(take: Callable[[], int], count: int) -> float:
    first = eventually(take, awaited="the first records come", deadline_seconds=_NO_MORE_SECONDS)
    begin = last = time.perf_counter()
    taken = 0
    while first + taken < count:
        taken += (got := take())
        now = time.perf_counter()
        if got:
            last = now
        elif now - last > _NO_MORE_SECONDS:
            raise RuntimeError(f"no records for {_NO_MORE_SECONDS} s after {first + taken} of {count}")
    return taken / (last - begin)


def one_at_a_time_ms(bootstrap: str, topic: str, count: int, value_bytes: int) -> Sequence[float]:
    """Milliseconds from produce to confirmation; each record is sent after the previous one is confirmed."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    value = bytes(value_bytes)
    times: list[float] = []
    for _ in range(count):
        begin = time.perf_counter()
        producer.produce(topic, value)
        if producer.flush(30):
            raise RuntimeError("a record was not confirmed")
        times.append((time.perf_counter() - begin) * 1000)
    return times
