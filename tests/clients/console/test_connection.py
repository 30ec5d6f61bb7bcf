"""The console says that the broker is away, keeps the last state, and goes on when the broker is back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.clients.console.browser import Console, open_console
from tests.clients.console.workplace import PARTITION, console_at_work, open_workplace
from tests.clients.test_inspection_page import GROUP, TOPIC

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]


async def expect_alert(console: Console, text: str) -> None:
    await expect(console.page.get_by_role("alert")).to_contain_text(text)


async def test_a_lost_connection_is_told_and_mended(barnabas_command: Path, tmp_path: Path) -> None:
    async with (
        open_workplace(barnabas_command, tmp_path) as workplace,
        open_console(workplace.browser, workplace.address) as live,
        open_console(workplace.browser, workplace.address) as polled,
    ):
        await live.open(PARTITION, f"{TOPIC} 0")
        await polled.open(f"#/groups/{GROUP}", GROUP)
        workplace.broker.kill()
        await expect_alert(live, "The connection to the broker is lost. The console tries again.")
        await expect_alert(polled, "The broker does not answer. The console tries again.")
        await expect(live.page.get_by_text("not live", exact=True)).to_be_visible()
        await expect(live.page.get_by_role("row", name="2 archived")).to_be_visible()
        assert await live.violations() == []
        workplace.broker.start()
        for console in (live, polled):
            await expect(console.page.get_by_role("alert")).to_be_empty()
        await expect(live.page.get_by_text("live", exact=True)).to_be_visible()
        await expect(live.page.get_by_role("row", name="2 archived")).to_be_visible()


async def test_an_unknown_group_and_an_unknown_partition_are_errors_on_their_pages(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open("#/groups/nothing", "nothing")
        await expect_alert(console, "There is no group nothing.")
        await console.open(f"#/groups/{GROUP}/topics/{TOPIC}/7", f"{TOPIC} 7")
        await expect_alert(console, "UNKNOWN_TOPIC_OR_PARTITION")
        assert await console.violations() == []
