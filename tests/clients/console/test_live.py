"""The console follows a share-partition with 500 deliveries a second, and the page stays responsive."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from barnabas.client import Producer, ShareConsumer, ShareRecord
from tests.clients.cluster import Cluster
from tests.clients.console.browser import open_browser, open_console
from tests.clients.console.workplace import open_broker

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]

GROUP, TOPIC = "workers", "jobs"
FRAGMENT: Final = f"#/groups/{GROUP}/topics/{TOPIC}/0"
PER_SECOND: Final = 500
BATCH: Final = 50
HELD: Final = 120
"""The records that the member works on at a time."""
MEASURED_SECONDS: Final = 8.0
FRAME_MS_MAX: Final = 250.0
"""Of 100 frames, 95 are shorter, on a machine that also runs the broker, the clients and other tests."""

_MEASURE: Final = """seconds => new Promise(done => {
    const frames = [], offsets = new Set(), begin = performance.now();
    let last = begin;
    const look = now => {
        frames.push(now - last);
        last = now;
        offsets.add(document.querySelector(".figure dd").firstChild.data);
        if (now - begin < seconds * 1000) requestAnimationFrame(look);
        else done({ frames: frames.sort((one, other) => one - other), changes: offsets.size });
    };
    requestAnimationFrame(look);
})"""
"""The times of all frames, ascending, and the number of start offsets that were shown."""


async def produce(producer: Producer) -> None:
    """Write at the rate of the test, until the task is cancelled."""
    begin = time.monotonic()
    sent = 0
    while True:
        for _ in range(BATCH):
            await producer.send(TOPIC, b"job")
        sent += BATCH
        await asyncio.sleep(max(begin + sent / PER_SECOND - time.monotonic(), 0))


class Work:
    """Holds some records, and acknowledges them in a random order, so that the strip has many ranges."""

    def __init__(self) -> None:
        self.delivered_count = 0
        self._held: list[ShareRecord[bytes | None, bytes | None]] = []
        self._random = random.Random(1)

    async def acknowledge(self, consumer: ShareConsumer[bytes | None, bytes | None]) -> None:
        """Accept most records, release some once, and reject a few."""
        async for record in consumer:
            self.delivered_count += 1
            self._held.append(record)
            if len(self._held) > HELD:
                self._end(self._held.pop(self._random.randrange(HELD // 4)))

    def _end(self, record: ShareRecord[bytes | None, bytes | None]) -> None:
        if record.offset % 23 == 0:
            record.reject()
        elif record.offset % 17 == 0 and record.delivery_count == 1:
            record.release()
        else:
            record.accept()


@asynccontextmanager
async def working(address: str) -> AsyncGenerator[Work]:
    """A producer and a member at work."""
    cluster = Cluster(address)
    cluster.topic(name=TOPIC)
    cluster.set_group(GROUP, {"share.auto.offset.reset": "earliest"})
    work = Work()
    async with Producer(address) as producer, ShareConsumer(address, group=GROUP, topics=[TOPIC]) as consumer:
        tasks = [asyncio.create_task(produce(producer)), asyncio.create_task(work.acknowledge(consumer))]
        try:
            yield work
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_share_partition_is_followed_at_500_deliveries_a_second(
    barnabas_command: Path, tmp_path: Path, console_pictures: Path | None
) -> None:
    async with (
        open_broker(barnabas_command, tmp_path) as (broker, http),
        open_browser() as browser,
        working(broker.address) as work,
        open_console(browser, http) as console,
    ):
        await console.open(FRAGMENT, f"{TOPIC} 0")
        before, begin = work.delivered_count, time.monotonic()
        measured: Any = await console.page.evaluate(_MEASURE, MEASURED_SECONDS)
        rate = (work.delivered_count - before) / (time.monotonic() - begin)
        assert rate >= PER_SECOND * 0.9
        assert measured["changes"] >= MEASURED_SECONDS
        frames = measured["frames"]
        assert frames[int(len(frames) * 0.95)] <= FRAME_MS_MAX, frames[-10:]
        if console_pictures is not None:
            await console.page.get_by_role("slider", name="Offsets in flight").hover()
            await console.page.screenshot(path=console_pictures / "live.png")
