"""A person releases and archives records in the console."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.console.browser import Console
from tests.clients.console.workplace import PARTITION, TOKEN, console_at_work
from tests.clients.test_inspection_page import GROUP, TOPIC

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]


async def press(console: Console, button: str, confirmation: str, token: str | None) -> None:
    """Ask for a change and confirm it, with the keyboard alone."""
    await console.page.get_by_role("button", name=button, exact=True).focus()
    await console.page.keyboard.press("Enter")
    dialog = console.page.get_by_role("dialog")
    await dialog.get_by_role("heading").wait_for()
    if token is not None:
        await dialog.get_by_label("Token").fill(token)
    await dialog.get_by_role("button", name=confirmation, exact=True).focus()
    await console.page.keyboard.press("Enter")


async def test_records_are_released_and_archived_with_the_token(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open(PARTITION, f"{TOPIC} 0")
        outcome = console.page.get_by_role("status")
        await press(console, "Archive: 3", "Archive", "a-wrong-token-of-this-test")
        dialog = console.page.get_by_role("dialog")
        await dialog.get_by_role("alert").get_by_text("needs the token").wait_for()
        assert await console.violations() == []
        await dialog.get_by_label("Token").fill(TOKEN)
        await dialog.get_by_role("button", name="Archive", exact=True).press("Enter")
        await outcome.get_by_text("Archive: 1 record changed.").wait_for()
        await console.page.get_by_role("row", name="3 archived").wait_for()
        await press(console, "Release: 4", "Release", None)
        await outcome.get_by_text("Release: 1 record changed.").wait_for()
        await console.page.get_by_role("row", name="4 available").wait_for()
        stored = await console.page.evaluate("[JSON.stringify(localStorage), document.cookie]")
        assert TOKEN not in "".join(stored)


async def test_stuck_records_are_archived_from_their_list(barnabas_command: Path, tmp_path: Path) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open(f"#/groups/{GROUP}/stuck", "Stuck records")
        await console.page.get_by_role("row", name=f"{TOPIC} 0: 3").wait_for()
        await press(console, "Archive: 3", "Archive", TOKEN)
        await console.page.get_by_text("No record is stuck").wait_for()


async def test_a_refused_change_says_the_reason_and_can_be_cancelled(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open(f"{PARTITION}/records/0", "Record 0")
        await console.page.get_by_role("button", name="Archive: 0", exact=True).click()
        await console.page.keyboard.press("Escape")
        await console.page.get_by_role("dialog").wait_for(state="hidden")
        await press(console, "Release: 0", "Release", TOKEN)
        await console.page.get_by_role("status").get_by_text("1 record changed").wait_for()
