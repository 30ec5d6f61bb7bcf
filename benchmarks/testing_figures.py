"""`python -m benchmarks.testing_figures`: the times of the test kit that a test suite notices.

It prints the medians of the start of a broker, of the time from `Broker()` to the first delivered record, and
of a reset of 10 topics with 20 partitions and 3 groups that have read them. TMPDIR decides about the disk;
the figures in docs/testing.md are of a tmpfs.
"""

import argparse
import asyncio
import logging
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from barnabas.client import Producer, ShareConsumer
from barnabas.testing import Broker

TOPICS: Final = [f"topic-{number}" for number in range(10)]
PARTITIONS: Final = 2
GROUPS: Final = [f"group-{number}" for number in range(3)]
RECORDS_PER_TOPIC: Final = 20
EARLIEST: Final = {"share.auto.offset.reset": "earliest"}
_POLL_SECONDS: Final = 20.0
_MS_PER_SECOND: Final = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the start and the reset of the test kit's broker.")
    parser.add_argument("--starts", type=int, default=10, help="the starts (default: %(default)s)")
    parser.add_argument("--resets", type=int, default=100, help="the resets (default: %(default)s)")
    options = parser.parse_args()
    logging.getLogger("barnabas.client").setLevel(logging.CRITICAL)  # A reset disconnects the clients.
    starts, first_records = zip(*(asyncio.run(_start()) for _ in range(options.starts)), strict=True)
    _print("start", starts)
    _print("Broker() to the first record", first_records)
    with Broker() as broker:
        _print("reset", [asyncio.run(_reset(broker)) for _ in range(options.resets)])


def _print(name: str, seconds: Sequence[float]) -> None:
    median, greatest = (round(one * _MS_PER_SECOND) for one in (statistics.median(seconds), max(seconds)))
    print(f"{name}: median {median} ms, longest {greatest} ms, of {len(seconds)}")


async def _start() -> tuple[float, float]:
    """Seconds until the broker serves, and until a consumer has a record."""
    began = time.perf_counter()
    with Broker() as broker:
        started = time.perf_counter() - began
        broker.create_topic(TOPICS[0])
        broker.configure_group(GROUPS[0], EARLIEST)
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send_and_wait(TOPICS[0], b"record")
            consumer = ShareConsumer(broker.bootstrap_servers, group=GROUPS[0], topics=TOPICS[:1])
            async with consumer:
                assert await consumer.poll(timeout=_POLL_SECONDS)
                return started, time.perf_counter() - began


async def _reset(broker: Broker) -> float:
    """Seconds of a reset, with clients that are connected."""
    for topic in TOPICS:
        broker.create_topic(topic, partitions=PARTITIONS)
    for group in GROUPS:
        broker.configure_group(group, EARLIEST)
    async with AsyncExitStack() as clients:
        producer = Producer(broker.bootstrap_servers, close_timeout_ms=1)
        await clients.enter_async_context(producer)
        for topic in TOPICS:
            for number in range(RECORDS_PER_TOPIC):
                await producer.send(topic, b"record", partition=number % PARTITIONS)
        await producer.flush()
        for group in GROUPS:
            consumer = ShareConsumer(broker.bootstrap_servers, group=group, topics=TOPICS, close_timeout_ms=1)
            await clients.enter_async_context(consumer)
            left = len(TOPICS) * RECORDS_PER_TOPIC
            while left:
                for record in await consumer.poll(timeout=_POLL_SECONDS):
                    record.accept()
                    left -= 1
        began = time.perf_counter()
        broker.reset()
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
