"""Lists that are empty say the next step, and long ones have pages and a filter."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import expect

from barnabas.client import ShareConsumer
from tests.clients.cluster import Cluster
from tests.clients.console.browser import PHONE
from tests.clients.console.workplace import BUSY_GROUP, BUSY_RECORDS, BUSY_TOPIC, busy_group, empty_console

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]

TOPICS = [f"topic-{number:02}" for number in range(60)]


async def test_an_empty_broker_says_the_next_step_on_each_page(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with empty_console(barnabas_command, tmp_path, width=PHONE) as (_, console):
        for fragment, heading, text, step in (
            ("#/groups", "Groups", "There are no groups yet", "Start a consumer"),
            ("#/topics", "Topics", "There are no topics yet", "A producer creates one"),
            ("#/stuck", "Stuck records", "No record is stuck", "when a member releases it"),
        ):
            await console.open(fragment, heading)
            await expect(console.page.locator(".empty")).to_contain_text(text)
            await expect(console.page.locator(".empty")).to_contain_text(step)
            assert await console.violations() == []
            assert await console.overflow_px() <= 0


async def test_a_group_without_records_and_without_members_says_so(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with empty_console(barnabas_command, tmp_path) as (broker, console):
        Cluster(broker.address).topic(name="orders")
        async with ShareConsumer(broker.address, group="packing", topics=["orders"]):
            await console.open("#/groups/packing/topics/orders/0", "orders 0")
            await expect(console.page.get_by_text("No record is in flight")).to_be_visible()
            assert await console.violations() == []
        await console.open("#/groups/packing", "packing")
        await expect(console.page.get_by_text("The group has no members")).to_be_visible()
        assert await console.violations() == []


async def test_groups_are_listed_with_their_members_and_their_lag(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with empty_console(barnabas_command, tmp_path) as (broker, console), busy_group(broker):
        await console.open("#/groups", "Groups")
        cells = console.page.get_by_role("row", name=BUSY_GROUP).get_by_role("cell")
        await expect(cells).to_have_text(["share", "stable", "1", str(BUSY_RECORDS // 2)])
        Cluster(broker.address).produce(BUSY_TOPIC, ["one more"])
        await expect(cells.last).to_have_text(str(BUSY_RECORDS // 2 + 1))


async def test_a_long_list_has_pages_and_a_filter(barnabas_command: Path, tmp_path: Path) -> None:
    async with empty_console(barnabas_command, tmp_path) as (broker, console):
        cluster = Cluster(broker.address)
        for topic in TOPICS:
            cluster.topic(name=topic)
        await console.open("#/topics", "Topics")
        topics = console.page.get_by_role("table", name="Topics").get_by_role("rowheader")
        await expect(topics).to_have_text(TOPICS[:50])
        await console.page.get_by_role("button", name="Next").press("Enter")
        await expect(topics).to_have_text(TOPICS[50:])
        await console.page.get_by_role("searchbox", name="Filter topics by name").fill("C-1")
        await expect(topics).to_have_text(TOPICS[10:20])
        await console.page.get_by_role("searchbox").fill("nothing")
        await expect(console.page.get_by_text("No topic has this name")).to_be_visible()
        assert await console.violations() == []


async def test_stuck_records_beyond_a_page_are_its_further_records(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with (
        empty_console(barnabas_command, tmp_path) as (broker, console),
        busy_group(broker, 500, are_released=True),
    ):
        await console.open("#/stuck", "Stuck records")
        rows = console.page.get_by_role("rowheader")
        first, further = (console.page.get_by_role("button", name=name) for name in ("First rec", "Further"))
        await expect(rows.first).to_have_text(f"{BUSY_TOPIC} 0: 0")
        await expect(console.page.get_by_role("navigation", name="Pages: Stuck")).to_contain_text("50 of 200")
        await expect(first).to_be_disabled()
        await further.press("Enter")
        await expect(rows).to_have_text([f"{BUSY_TOPIC} 0: {offset}" for offset in range(400, 500, 2)])
        await expect(further).to_be_disabled()
        assert await console.violations() == []
        await first.press("Enter")
        await expect(rows.first).to_have_text(f"{BUSY_TOPIC} 0: 0")


async def test_a_desk_of_1300_px_shows_stuck_records_with_their_holder_and_all_buttons(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with empty_console(barnabas_command, tmp_path, width=1300) as (broker, console):
        cluster = Cluster(broker.address)
        cluster.topic(name="orders")
        settings = {"share.auto.offset.reset": "earliest", "share.retry.backoff.max.ms": "3600000"}
        cluster.set_group("ship-orders", settings)
        cluster.produce("orders", ["order 0", "order 1"])
        consumer = ShareConsumer(
            broker.address,
            group="ship-orders",
            topics=["orders"],
            client_id="shipping",
            prefetch_records=0,
            renew_locks=False,
        )
        async with consumer:
            records = aiter(consumer)
            first, second = [await anext(records) for _ in range(2)]
            second.release(delay=timedelta(hours=1))
            first.release()
            held = await anext(records)
            assert (held.offset, held.delivery_count) == (0, 2)
            await console.open("#/stuck", "Stuck records")
            table = console.page.get_by_role("region", name="Stuck records")
            await expect(table).to_contain_text("shipping")
            await expect(table).to_contain_text("due")
            await expect(table.get_by_role("button", name="Dead-letter")).to_have_count(2)
            assert await table.evaluate("region => region.scrollWidth - region.clientWidth") <= 0
            assert await console.violations() == []
