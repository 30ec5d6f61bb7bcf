"""The console follows a share-partition with 500 deliveries a second, and the page stays responsive."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, FloatRect, expect

from barnabas.client import Producer, ShareConsumer, ShareRecord
from tests.clients.cluster import Cluster
from tests.clients.console.browser import WIDE, Console, open_browser, open_console
from tests.clients.console.workplace import open_broker

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]

GROUP, TOPIC = "workers", "jobs"
FRAGMENT: Final = f"#/groups/{GROUP}/topics/{TOPIC}/0"
PER_SECOND: Final = 500
BATCH: Final = 50
HELD: Final = 120
"""The records that the member works on at a time."""
MEASURED_SECONDS: Final = 8.0
FRAME_MS_MAX: Final = 1_000.0
"""No frame is longer, on a machine that also runs the broker, the clients and other tests."""
CHART_VALUES: Final = 8
RELEASED: Final = 34
"""A record that is released once, and then accepted."""
SHORT_LOCKS: Mapping[str, str] = {"share.record.lock.duration.ms": "3000"}
"""For the pictures: the rest of each lock is visibly less than the whole."""
UPPER_PART: FloatRect = {"x": 0, "y": 0, "width": WIDE, "height": 535}
PAUSED_SECONDS: Final = 1.5

_MEASURE: Final = """seconds => new Promise(done => {
    const frames = [], offsets = new Set(), start = performance.now();
    let last = start;
    const look = now => {
        frames.push(now - last);
        last = now;
        offsets.add(document.querySelector(".figure dd").firstChild.data);
        if (now - start < seconds * 1000) requestAnimationFrame(look);
        else done({ frames: frames.sort((one, other) => one - other), changes: offsets.size });
    };
    requestAnimationFrame(look);
})"""
"""The times of all frames, ascending, and the number of start offsets that were shown."""


async def produce(producer: Producer) -> None:
    """Write at the rate of the test, until the task is cancelled."""
    started_at = time.monotonic()
    sent = 0
    while True:
        for _ in range(BATCH):
            await producer.send(TOPIC, b"job")
        sent += BATCH
        await asyncio.sleep(max(started_at + sent / PER_SECOND - time.monotonic(), 0))


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
async def working(address: str, settings: Mapping[str, str]) -> AsyncGenerator[Work]:
    """A producer and a member at work, in a group with these settings."""
    cluster = Cluster(address)
    cluster.topic(name=TOPIC)
    cluster.set_group(GROUP, {"share.auto.offset.reset": "earliest", **settings})
    work = Work()
    async with Producer(address) as producer, ShareConsumer(address, group=GROUP, topics=[TOPIC]) as consumer:
        tasks = [asyncio.create_task(produce(producer)), asyncio.create_task(work.acknowledge(consumer))]
        try:
            yield work
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def take_pictures(browser: Browser, http: str, live: Console, folder: Path) -> None:
    """The pictures of docs/console.md."""
    await live.page.screenshot(path=folder / "console.png")
    async with open_console(browser, http) as console:
        await console.open(f"#/groups/{GROUP}", GROUP)
        values = console.page.get_by_text("Values", exact=False).first
        await values.click()
        await console.page.get_by_role("row").nth(CHART_VALUES).wait_for()
        await values.click()
        await console.page.screenshot(path=folder / "console-group.png")
        await console.open("#/stuck", "Stuck records")
        await console.page.get_by_role("button", name="Archive").first.wait_for()
        await console.page.screenshot(path=folder / "console-stuck.png", clip=UPPER_PART)
    async with open_console(browser, http, theme="dark") as console:
        await console.open(f"{FRAGMENT}/records/{RELEASED}", f"Record {RELEASED}")
        await console.page.get_by_role("row", name="accept").wait_for()
        await console.page.screenshot(path=folder / "console-record-dark.png", clip=UPPER_PART)


def percentiles(frames: Sequence[float]) -> str:
    """Of ascending times."""
    points = (0.5, 0.95, 0.99, 1.0)
    return ", ".join(f"{point:.0%} {frames[round(point * (len(frames) - 1))]:.0f}" for point in points)


async def test_a_share_partition_is_followed_at_500_deliveries_a_second(
    barnabas_command: Path, tmp_path: Path, console_pictures: Path | None
) -> None:
    async with (
        open_broker(barnabas_command, tmp_path) as (broker, http),
        open_browser() as browser,
        working(broker.address, {} if console_pictures is None else SHORT_LOCKS) as work,
        open_console(browser, http) as console,
    ):
        await console.open(FRAGMENT, f"{TOPIC} 0")
        before, started_at = work.delivered_count, time.monotonic()
        measured: Any = await console.page.evaluate(_MEASURE, MEASURED_SECONDS)
        rate = (work.delivered_count - before) / (time.monotonic() - started_at)
        assert rate >= PER_SECOND * 0.9
        assert measured["changes"] >= MEASURED_SECONDS
        frames = measured["frames"]
        print(f"{len(frames)} frames, ms: {percentiles(frames)}")
        assert frames[-1] <= FRAME_MS_MAX, frames[-10:]
        strip = console.page.get_by_role("slider", name="Offsets in flight")
        await strip.hover(position={"x": WIDE * 0.8, "y": 20})
        tip = console.page.locator(".tip")
        seen = await tip.inner_text()
        await expect(tip).not_to_have_text(seen, use_inner_text=True)
        await expect(tip).to_contain_text("Deliveries")
        if console_pictures is not None:
            await take_pictures(browser, http, console, console_pictures / "docs")
        await console.page.get_by_role("button", name="Pause").press("Enter")
        paused: Any = await console.page.evaluate(_MEASURE, PAUSED_SECONDS)
        assert paused["changes"] == 1
        await console.page.get_by_role("button", name="Pause").press("Enter")
        resumed: Any = await console.page.evaluate(_MEASURE, PAUSED_SECONDS)
        assert resumed["changes"] > 1
