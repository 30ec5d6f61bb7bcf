"""A person finds records by their contents."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Route

from tests.clients.console.workplace import TOKEN, console_at_work
from tests.clients.test_inspection_page import ORDERS, TOPIC

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]


async def test_records_are_found_by_a_text_in_their_values(barnabas_command: Path, tmp_path: Path) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open(f"#/topics/{TOPIC}", TOPIC)
        page = console.page
        await page.get_by_label("Text").fill("order 3")
        await page.get_by_label("Token").fill("a-wrong-token-of-this-test")
        await page.keyboard.press("Enter")
        await page.get_by_role("alert").get_by_text("needs the token").wait_for()
        await page.get_by_label("Token").fill(TOKEN)
        await page.keyboard.press("Enter")
        await page.get_by_role("status").get_by_text(f"1 match in {ORDERS} records").wait_for()
        await page.get_by_role("row", name="3").get_by_text("order 3", exact=True).wait_for()
        assert await console.violations() == []
        await page.get_by_label("value", exact=True).uncheck()
        await page.get_by_role("button", name="Search", exact=True).click()
        await page.get_by_text("No record has this text").wait_for()


async def test_the_late_answer_of_a_search_is_not_shown_for_another_text(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open(f"#/topics/{TOPIC}", TOPIC)
        page = console.page
        held: asyncio.Queue[Route] = asyncio.Queue()
        await page.route("**/search", held.put)
        await page.get_by_label("Text").fill("order 3")
        await page.get_by_label("Token").fill(TOKEN)
        await page.keyboard.press("Enter")
        late = await held.get()
        await page.get_by_label("Text").fill("nothing like this")
        async with page.expect_response("**/search") as answered:
            await late.continue_()
        await (await answered.value).finished()
        await page.get_by_label("Token").wait_for(state="detached")
        assert await page.get_by_text(f"in {ORDERS} records").count() == 0
        await page.get_by_role("button", name="Search", exact=True).click()
        await (await held.get()).continue_()
        await page.get_by_text("No record has this text").wait_for()
