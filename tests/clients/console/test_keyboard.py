"""The whole way from the first page to a change of a record, with the keyboard alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from tests.clients.console.browser import PHONE, Console
from tests.clients.console.workplace import TOKEN, console_at_work
from tests.clients.test_inspection_page import GROUP, TOPIC

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]

TABS_MAX = 40


async def tab_to(console: Console, target: Locator) -> None:
    """Press Tab until the focus is there."""
    await target.wait_for()
    for _ in range(TABS_MAX):
        await console.page.keyboard.press("Tab")
        if await target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"Tab does not reach {target}")


@pytest.mark.parametrize("width", [1120, PHONE])
async def test_the_keyboard_alone_archives_a_record(
    barnabas_command: Path, tmp_path: Path, width: int
) -> None:
    async with console_at_work(barnabas_command, tmp_path, width=width) as console:
        page, keyboard = console.page, console.page.keyboard
        await console.open("#/topics", "Topics")
        await tab_to(console, page.get_by_role("link", name="Groups"))
        await keyboard.press("Enter")
        await page.get_by_role("heading", name="Groups", level=1).wait_for()
        await expect(page.get_by_role("main")).to_be_focused()
        for link, heading in ((GROUP, GROUP), (f"{TOPIC} 0", f"{TOPIC} 0")):
            await tab_to(console, page.get_by_role("main").get_by_role("link", name=link, exact=True).first)
            await keyboard.press("Enter")
            await page.get_by_role("heading", name=heading, level=1, exact=True).wait_for()
        await tab_to(console, page.get_by_role("slider", name="Offsets in flight"))
        for key in ("End", "ArrowLeft"):
            await keyboard.press(key)
        await tab_to(console, page.locator(".chosen").get_by_role("button", name="Archive: 3"))
        await keyboard.press("Enter")
        await expect(page.get_by_role("dialog").get_by_label("Token")).to_be_focused()
        await keyboard.type(TOKEN)
        await keyboard.press("Enter")
        await expect(page.locator(".outcome")).to_have_text("Archive: 1 record changed.")
        await expect(page.locator(".chosen")).to_contain_text("Offset 3: archived")


async def test_the_first_stop_skips_the_navigation(barnabas_command: Path, tmp_path: Path) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open("#/groups", "Groups")
        await console.page.keyboard.press("Tab")
        await expect(console.page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await console.page.keyboard.press("Enter")
        await expect(console.page.get_by_role("main")).to_be_focused()
