"""The phases of `barnabas bench`: produce at full speed, take and accept at full speed, single records at a
low rate.

Producer and share consumers run in this one process, on one core. Each phase also measures the processor time
of the process: if the client is busy all the time, the figure is that of the client.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from time import perf_counter, process_time
from typing import Final, NamedTuple

from barnabas.cli.measuring.summary import Delays, Throughput
from barnabas.cli.target import Target
from barnabas.client.errors import BrokerUnavailableError
from barnabas.client.produce.producer import Producer
from barnabas.client.produce.record_queue import RecordMetadata
from barnabas.client.share.share_consumer import ShareConsumer

UNANSWERED_MAX: Final = 20_000
"""The most records in flight."""
LINGER_MS: Final = 5
BATCH_BYTES: Final = 64 * 1024
POLL_RECORDS: Final = 500
WAIT_SECONDS: Final = 30.0
"""A phase fails if no record arrives for this time."""
DELAY_RATE: Final = 100
"""Records per second while delays are measured."""
DELAY_RECORDS: Final = 300

_POLL_SECONDS: Final = 0.5


class Load(NamedTuple):
    """The work of a measurement."""

    topic: str
    group_id: str
    record_count: int
    record_bytes: int
    consumer_count: int


async def measure_produce(target: Target, load: Load, advance: Callable[[int], None]) -> Throughput:
    """From the first record to the last answer of the broker. The values are random bytes."""
    value = os.urandom(load.record_bytes)
    async with Producer(
        target.bootstrap, linger_ms=LINGER_MS, batch_bytes=BATCH_BYTES, **target.options
    ) as producer:
        unanswered: deque[asyncio.Future[RecordMetadata]] = deque()
        begun, cpu_begun = perf_counter(), process_time()
        for _ in range(load.record_count):
            unanswered.append(await producer.send(load.topic, value))
            while unanswered and (unanswered[0].done() or len(unanswered) > UNANSWERED_MAX):
                await unanswered.popleft()
                advance(1)
        for sent in unanswered:
            await sent
            advance(1)
        seconds, cpu_seconds = perf_counter() - begun, process_time() - cpu_begun
        return Throughput("produce", load.record_count, load.record_bytes, seconds, cpu_seconds)


async def measure_share(target: Target, load: Load, advance: Callable[[int], None]) -> Throughput:
    """From the arrival of the first records to the answers to all acknowledgements.

    The first records are not counted: the consumers have joined, and fetched them, before. Raises
    `BrokerUnavailableError` if no record arrives for `WAIT_SECONDS`.
    """
    taking = _Taking(load.record_count, advance)
    async with _together() as group:
        for _ in range(load.consumer_count):
            group.create_task(taking.take(_consumer(target, load, POLL_RECORDS)))
    return Throughput(
        "share consume",
        taking.counted,
        load.record_bytes,
        taking.ended - taking.begun,
        taking.cpu_ended - taking.cpu_begun,
    )


async def measure_delays(target: Target, load: Load, advance: Callable[[int], None]) -> Delays:
    """From the call of `send` to the arrival at a share consumer that waits.

    Raises `BrokerUnavailableError` if a record is late by `WAIT_SECONDS`.
    """
    delays: list[float] = []
    arrivals: asyncio.Queue[float] = asyncio.Queue()

    async def take() -> None:
        async with _consumer(target, load, 1) as consumer:
            async for record in consumer:
                arrivals.put_nowait(perf_counter())
                record.accept()
                if record.value == last:
                    return

    last = b"%d" % DELAY_RECORDS
    async with _together() as group, Producer(target.bootstrap, **target.options) as producer:
        group.create_task(take())
        for number in range(DELAY_RECORDS + 1):
            sent_at = perf_counter()
            await producer.send(load.topic, b"%d" % number, partition=0)
            if number == 0:  # the consumer joins the group meanwhile, so this one does not count
                await _arrival(arrivals)
            else:
                delays.append(await _arrival(arrivals) - sent_at)
                advance(1)
                await asyncio.sleep(1 / DELAY_RATE)
    return Delays("delay", sorted(delays))


class _Taking:
    """The records that several consumers take together. It ends with the answer to the last acknowledgement:
    a consumer without records waits a moment longer, and that does not count.
    """

    def __init__(self, record_count: int, advance: Callable[[int], None]) -> None:
        self._left = record_count
        self._advance = advance
        self._arrived_at = perf_counter()
        self.begun = self.cpu_begun = self.ended = self.cpu_ended = 0.0
        self.counted = 0

    async def take(self, consumer: ShareConsumer[bytes | None, bytes | None]) -> None:
        async with consumer:
            while self._left > 0:
                records = await consumer.poll(timeout=_POLL_SECONDS)
                for record in records:
                    record.accept()
                self._note(len(records))
                if records and self._left <= 0:
                    await consumer.commit()
                    self.ended, self.cpu_ended = perf_counter(), process_time()
            await consumer.commit()

    def _note(self, count: int) -> None:
        now = perf_counter()
        if count == 0:
            if self._left > 0 and now - self._arrived_at > WAIT_SECONDS:
                raise BrokerUnavailableError(f"No record arrived for {WAIT_SECONDS:.0f} seconds.")
            return
        if self.begun:
            self.counted += count
        else:
            self.begun, self.cpu_begun = now, process_time()
        self._arrived_at = now
        self._left -= count
        self._advance(count)


@asynccontextmanager
async def _together() -> AsyncGenerator[asyncio.TaskGroup]:
    """Tasks that end together. The first error of one is raised without its group."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _arrival(arrivals: asyncio.Queue[float]) -> float:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            return await arrivals.get()
    except TimeoutError:
        raise BrokerUnavailableError(f"A record did not arrive within {WAIT_SECONDS:.0f} seconds.") from None


def _consumer(target: Target, load: Load, max_records: int) -> ShareConsumer[bytes | None, bytes | None]:
    return ShareConsumer(
        target.bootstrap, group=load.group_id, topics=[load.topic], max_records=max_records, **target.options
    )
