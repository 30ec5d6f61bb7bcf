"""The strip of offsets: records are found, read and enlarged with the keyboard and with a pointer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from tests.clients.console.browser import Console
from tests.clients.console.workplace import (
    BUSY_PARTITION,
    BUSY_RECORDS,
    BUSY_TOPIC,
    PARTITION,
    busy_console,
    console_at_work,
)
from tests.clients.test_inspection_page import TOPIC

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]

LAST = BUSY_RECORDS - 1


def strip_of(console: Console) -> Locator:
    return console.page.get_by_role("slider", name="Offsets in flight")


async def shows(console: Console, first: int, last: int) -> None:
    """The strip has these offsets at its ends."""
    await expect(console.page.locator(".strip-ends")).to_have_text(re.compile(rf"^{first}\D.*\D{last}$"))


async def place_of(strip: Locator, share: float) -> tuple[float, float]:
    """The coordinates at a part of the strip's width."""
    box = await strip.bounding_box()
    assert box is not None
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


async def test_the_keyboard_reads_each_record_and_opens_its_history(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open(PARTITION, f"{TOPIC} 0")
        keyboard, strip, tip = console.page.keyboard, strip_of(console), console.page.locator(".tip")
        await strip.focus()
        for words in ("acquired", "Deliveries", "worker-1", re.compile(r"Lock ends in[\d,]+ s")):
            await expect(tip).to_contain_text(words)
        assert await console.violations() == []
        await keyboard.press("Escape")
        await expect(tip).to_have_count(0)
        for key, value in (
            ("End", "4"),
            ("ArrowLeft", "3"),
            ("Home", "0"),
            ("PageUp", "4"),
            ("ArrowDown", "3"),
        ):
            await keyboard.press(key)
            await expect(strip).to_have_attribute("aria-valuenow", value)
        await expect(strip).to_have_attribute("aria-valuetext", "Offset 3: available, delivery count 1")
        await expect(tip).to_contain_text("available")
        await keyboard.press("Enter")
        await console.page.get_by_role("heading", name="Record 3").wait_for()
        assert re.search(r"/records/3$", console.page.url)


async def test_the_keyboard_zooms(barnabas_command: Path, tmp_path: Path) -> None:
    async with busy_console(barnabas_command, tmp_path) as console:
        await console.open(BUSY_PARTITION, f"{BUSY_TOPIC} 0")
        await shows(console, 0, LAST)
        await strip_of(console).focus()
        for key, first, last in (
            ("End", 0, LAST),
            ("+", 60, LAST),
            ("+", 90, LAST),
            ("Home", 0, 29),
            ("-", 0, 59),
            ("0", 0, LAST),
        ):
            await console.page.keyboard.press(key)
            await shows(console, first, last)
        for _ in range(8):
            await console.page.keyboard.press("+")
        await shows(console, 0, 7)
        assert await console.page.get_by_role("button", name="Zoom in").is_disabled()
        await console.page.get_by_role("button", name="Show all").press("Enter")
        await shows(console, 0, LAST)


async def test_a_pointer_reads_chooses_and_zooms(barnabas_command: Path, tmp_path: Path) -> None:
    async with busy_console(barnabas_command, tmp_path) as console:
        await console.open(BUSY_PARTITION, f"{BUSY_TOPIC} 0")
        mouse, strip, tip = console.page.mouse, strip_of(console), console.page.locator(".tip")
        await mouse.move(*await place_of(strip, 90.5 / BUSY_RECORDS))
        for words in ("90", "acquired", "worker-7"):
            await expect(tip).to_contain_text(words)
        await mouse.down()
        await mouse.up()
        await console.page.get_by_role("link", name="History of record 90").wait_for()
        await mouse.move(*await place_of(strip, 30.5 / BUSY_RECORDS))
        await expect(tip).to_contain_text("30")
        await mouse.down()
        await mouse.move(*await place_of(strip, 59.5 / BUSY_RECORDS), steps=3)
        await mouse.up()
        await shows(console, 30, 59)
        await mouse.move(0, 0)
        await expect(tip).to_have_count(0)
        await mouse.dblclick(*await place_of(strip, 0.01))
        await shows(console, 30, 44)
        await mouse.move(*await place_of(strip, 0.99))
        await console.page.keyboard.down("Control")
        await mouse.wheel(0, 100)
        await console.page.keyboard.up("Control")
        await shows(console, 26, 44)


async def test_the_ranges_are_a_table_in_pages(barnabas_command: Path, tmp_path: Path) -> None:
    async with busy_console(barnabas_command, tmp_path) as console:
        await console.open(BUSY_PARTITION, f"{BUSY_TOPIC} 0")
        rows = console.page.get_by_role("table", name="Ranges in flight").get_by_role("rowheader")
        pages = console.page.get_by_role("navigation", name="Pages: Ranges in flight")
        await expect(pages).to_contain_text(f"50 of {BUSY_RECORDS}")
        await expect(rows).to_have_text([str(offset) for offset in range(50)])
        await pages.get_by_role("button", name="Next").press("Enter")
        await pages.get_by_role("button", name="Next").press("Enter")
        await expect(rows).to_have_text([str(offset) for offset in range(100, BUSY_RECORDS)])
        assert await pages.get_by_role("button", name="Next").is_disabled()
        assert await console.violations() == []
        await pages.get_by_role("button", name="Previous").press("Enter")
        await expect(pages).to_contain_text(f"100 of {BUSY_RECORDS}")
