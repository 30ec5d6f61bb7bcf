"""From produce to delivery through a share group at a steady rate, for the latency workloads."""

import threading
import time

from confluent_kafka import Producer
from tests.clients.polling import eventually

from benchmarks.clients import share_consumer

RECORDS_PER_SECOND = 500


class Delivery:
    """A producer and a share consumer of a topic with one partition; the consumer has joined its group."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._topic = topic
        self._consumer = share_consumer(bootstrap, topic, group, "implicit")
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
        eventually(self._is_delivered, awaited="the group delivers", deadline_seconds=60)
        while self._consumer.poll(0.5):
            pass

    def times_ms(self, count: int) -> list[float]:
        """The latency of each of `count` records, sent at 500 records per second."""
        sending = threading.Thread(target=self._send, args=(count,))
        sending.start()
        times: list[float] = []
        while len(times) < count:
            messages = self._consumer.poll(1.0)
            now = time.perf_counter()
            for message in messages:
                times.append((now - float(message.value() or b"0")) * 1000)  # noqa: PERF401
        sending.join()
        return times

    def close(self) -> None:
        self._consumer.close()

    def _is_delivered(self) -> int:
        """Sends a record each time, because a group may begin after the earlier ones."""
        self._producer.produce(self._topic, b"0", b"key")
        self._producer.flush(30)
        return len(self._consumer.poll(0.2))

    def _send(self, count: int) -> None:
        """Sends timestamps, with a key for topics that require one."""
        begin = time.perf_counter()
        for number in range(count):
            due = begin + number / RECORDS_PER_SECOND
            while (wait := due - time.perf_counter()) > 0:
                time.sleep(wait)
            self._producer.produce(self._topic, repr(time.perf_counter()).encode(), b"key")
            self._producer.poll(0)
        self._producer.flush(30)
