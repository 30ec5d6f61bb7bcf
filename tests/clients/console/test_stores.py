"""The console with a broker that keeps the state of share groups in `__share_group_state`."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.clients.console.workplace import PARTITION, TOKEN, console_at_work
from tests.clients.test_inspection_page import TOPIC

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]


async def test_states_and_changes_work_with_the_topic_store_and_the_missing_history_is_told(
    barnabas_command: Path, tmp_path: Path
) -> None:
    settings = {"share.state.store": "topic"}
    async with console_at_work(barnabas_command, tmp_path, settings) as console:
        await console.open(PARTITION, f"{TOPIC} 0")
        for row in ("0 acquired", "1 acknowledged", "2 archived", "3 available"):
            await expect(console.page.get_by_role("row", name=row)).to_be_visible()
        await console.open(f"{PARTITION}/records/3", "Record 3")
        await expect(console.page.get_by_text("This broker keeps no history")).to_be_visible()
        assert await console.violations() == []
        await console.page.get_by_role("button", name="Archive: 3").press("Enter")
        await console.page.get_by_label("Token").fill(TOKEN)
        await console.page.keyboard.press("Enter")
        await expect(console.page.locator(".title")).to_contain_text("archived")
        await console.open("#/stuck", "Stuck records")
        await expect(console.page.get_by_text("No record is stuck")).to_be_visible()
