"""Each page of the console, in both themes, at the width of a desk and of a phone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.clients.console.browser import PHONE, WIDE, Console, Theme, open_console
from tests.clients.console.workplace import PARTITION, console_at_work, open_workplace
from tests.clients.test_inspection_page import GROUP, TOPIC

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]

THEMES: tuple[Theme, ...] = ("light", "dark")
PAGES = (
    ("groups", "#/groups", "Groups", GROUP),
    ("group", f"#/groups/{GROUP}", GROUP, "worker-1"),
    ("stuck", f"#/groups/{GROUP}/stuck", "Stuck records", f"{TOPIC} 0: 3"),
    ("all-stuck", "#/stuck", "Stuck records", GROUP),
    ("share-partition", PARTITION, f"{TOPIC} 0", "acknowledged"),
    ("record", f"{PARTITION}/records/3", "Record 3", "release"),
    ("topics", "#/topics", "Topics", TOPIC),
    ("topic", f"#/topics/{TOPIC}", TOPIC, "Offsets in the log"),
    ("unknown", "#/nothing", "There is no such page", "Begin with the groups"),
)
"""The name of each page, its fragment, its heading, and a text in it."""


async def check(console: Console, text: str) -> None:
    await console.page.get_by_role("main").get_by_text(text).first.wait_for()
    assert await console.violations() == []
    assert await console.overflow_px() <= 0


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("theme", THEMES)
async def test_every_page_is_accessible_and_fits_the_screen(
    barnabas_command: Path, tmp_path: Path, console_pictures: Path | None, theme: Theme, width: int
) -> None:
    async with (
        open_workplace(barnabas_command, tmp_path) as workplace,
        open_console(workplace.browser, workplace.address, theme=theme, width=width) as console,
    ):
        for name, fragment, heading, text in PAGES:
            await console.open(fragment, heading)
            await check(console, text)
            if console_pictures is not None:
                picture = console_pictures / f"{name}-{theme}-{width}.png"
                await console.page.screenshot(path=picture, full_page=True)


async def test_a_held_record_has_the_time_of_its_acquisition_on_its_page_and_in_the_table(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with (
        open_workplace(barnabas_command, tmp_path) as workplace,
        open_console(workplace.browser, workplace.address) as console,
    ):
        records = f"{workplace.address}/api/v1/share-groups/{GROUP}/topics/{TOPIC}/partitions/0/records"
        answer = await (await console.page.request.get(records)).json()
        acquired_ms = answer["ranges"][0]["holder"]["acquired_ms"]
        acquired_at = datetime.fromtimestamp(acquired_ms / 1000, UTC).isoformat(" ", "milliseconds")
        exact_time = acquired_at.replace("+00:00", " UTC")
        await console.open(f"{PARTITION}/records/0", "Record 0")
        figure = console.page.locator(".figure").filter(has_text="Held since")
        await expect(figure.get_by_title(exact_time)).to_be_visible()
        await expect(figure).to_contain_text(exact_time)
        assert await console.violations() == []
        await console.open(PARTITION, f"{TOPIC} 0")
        row = console.page.get_by_role("row").filter(has_text="worker-1").first
        await expect(row).to_contain_text("shipping, acquired ")
        await expect(row.get_by_title(exact_time)).to_be_visible()


async def test_the_age_of_the_oldest_record_is_among_the_figures_and_in_the_table_of_partitions(
    barnabas_command: Path, tmp_path: Path
) -> None:
    age = re.compile(r"\d+ (s|min)")
    async with console_at_work(barnabas_command, tmp_path) as console:
        for fragment, heading in ((f"#/groups/{GROUP}", GROUP), (PARTITION, f"{TOPIC} 0")):
            await console.open(fragment, heading)
            figure = console.page.locator(".figure").filter(has_text="Oldest")
            await expect(figure).to_have_text(age)
        await console.open(f"#/groups/{GROUP}", GROUP)
        row = console.page.get_by_role("row").filter(has_text=f"{TOPIC} 0").first
        await expect(row).to_have_text(age)


async def test_the_theme_can_be_chosen_and_is_kept(barnabas_command: Path, tmp_path: Path) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open("#/groups", "Groups")
        await shows(console, "light")
        await console.page.get_by_label("Theme").select_option("dark")
        await shows(console, "dark")
        await console.open("#/topics", "Topics")
        await shows(console, "dark")
        await console.page.get_by_label("Theme").select_option("system")
        await shows(console, "light")
        await console.page.emulate_media(color_scheme="dark")
        await shows(console, "dark")


async def shows(console: Console, theme: Theme) -> None:
    await console.page.locator(f"html[data-theme={theme}]").wait_for()
