"""The console follows a share-partition whose records are delivered all the time, and can be paused."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Mapping
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
CHANGES: Final = 8
"""So many start offsets are shown before the test goes on."""
CHART_VALUES: Final = 8
RELEASED: Final = 34
"""A record that is released once, and then accepted."""
SHORT_LOCKS: Mapping[str, str] = {"share.record.lock.duration.ms": "3000"}
"""For the pictures: the rest of each lock is visibly less than the whole."""
UPPER_PART: FloatRect = {"x": 0, "y": 0, "width": WIDE, "height": 535}

_START_OFFSET: Final = 'document.querySelector(".figure dd")?.firstChild?.data'
"""Undefined while the page shows something else."""
_CHANGES: Final = f"""wanted => new Promise(done => {{
    const offsets = new Set();
    const look = () => {{
        const offset = {_START_OFFSET};
        if (offset !== undefined) offsets.add(offset);
        if (offsets.size < wanted) requestAnimationFrame(look);
        else done();
    }};
    requestAnimationFrame(look);
}})"""
"""Ends when this number of start offsets were shown, one after the other. Frames that show something else are
passed over: an exception in one would end the look at all further ones, and the test would hang.
"""


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

    async def deliver(self, count: int) -> None:
        """Return when this number of records more were delivered."""
        wanted = self.delivered_count + count
        while self.delivered_count < wanted:  # noqa: ASYNC110  the work of another task
            await asyncio.sleep(0.05)

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
    """A producer and a member at work, in a group with these settings. An error of theirs ends the test."""
    cluster = Cluster(address)
    cluster.topic(name=TOPIC)
    cluster.set_group(GROUP, {"share.auto.offset.reset": "earliest", **settings})
    work = Work()
    async with (
        Producer(address) as producer,
        ShareConsumer(address, group=GROUP, topics=[TOPIC]) as consumer,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(produce(producer)), group.create_task(work.acknowledge(consumer))]
        try:
            yield work
        finally:
            for task in tasks:
                task.cancel()


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


async def test_a_share_partition_is_followed_while_its_records_are_delivered(
    barnabas_command: Path, tmp_path: Path, console_pictures: Path | None
) -> None:
    async with (
        open_broker(barnabas_command, tmp_path) as (broker, http),
        open_browser() as browser,
        working(broker.address, {} if console_pictures is None else SHORT_LOCKS) as work,
        open_console(browser, http) as console,
    ):
        await console.open(FRAGMENT, f"{TOPIC} 0")
        await console.page.evaluate(_CHANGES, CHANGES)
        strip = console.page.get_by_role("slider", name="Offsets in flight")
        await strip.hover(position={"x": WIDE * 0.8, "y": 20})
        tip = console.page.locator(".tip")
        seen = await tip.inner_text()
        await expect(tip).not_to_have_text(seen, use_inner_text=True)
        await expect(tip).to_contain_text("Deliveries")
        if console_pictures is not None:
            await take_pictures(browser, http, console, console_pictures / "docs")
        await console.page.get_by_role("button", name="Pause").press("Enter")
        await work.deliver(PER_SECOND)
        shown: Any = await console.page.evaluate(_START_OFFSET)
        await work.deliver(PER_SECOND)
        assert await console.page.evaluate(_START_OFFSET) == shown
        await console.page.get_by_role("button", name="Pause").press("Enter")
        await console.page.evaluate(_CHANGES, 2)
