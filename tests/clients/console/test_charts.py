"""The charts tell the values under the pointer, and the same values as a table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.clients.console.workplace import console_at_work
from tests.clients.test_inspection_page import GROUP

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]

TIME = re.compile(r"at \d\d:\d\d:\d\d")


async def test_a_chart_tells_the_values_under_the_pointer_and_in_a_table(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open(f"#/groups/{GROUP}", GROUP)
        lag, flow = (console.page.get_by_role("figure").filter(has_text=name) for name in ("Lag", "Flow"))
        await expect(lag).to_contain_text("lag6")
        await expect(lag).to_contain_text("locked2")
        await expect(flow).to_contain_text("written0/s")
        await expect(lag).not_to_contain_text(TIME)
        box = await lag.locator(".u-over").bounding_box()
        assert box is not None
        await console.page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 10)
        for chart in (lag, flow):
            await expect(chart).to_contain_text(TIME)
        await expect(lag).to_contain_text("lag6")
        await console.page.mouse.move(0, 0)
        await expect(lag).not_to_contain_text(TIME)
        await lag.get_by_text("Values", exact=False).last.press("Enter")
        table = console.page.get_by_role("table", name="Lag: the last values, newest first")
        await expect(table.get_by_role("cell").first).to_have_text("6")
        await expect(table.get_by_role("columnheader")).to_have_text(["Time", "lag", "locked"])
        assert await console.violations() == []
