"""The report in a real browser: nothing is cut off, hidden, doubled or hard to read, in both themes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.audit.report import render
from tests.pipeline.audit.browser import MISSING, Browser, find_chromium
from tests.pipeline.audit.summaries import BEGAN, full_summary

pytestmark = pytest.mark.skipif(find_chromium() is None, reason=MISSING)

WIDTHS = (400, 800, 1200, 1600)
THEMES = ("light", "dark")
CONTRAST_MIN = 4.5
"""Of text, as WCAG 2.2 demands at level AA."""

READ_TEXTS = """
[...document.querySelectorAll('body *')].filter(one => one.checkVisibility()
  && [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())).map(one => {
  let background = one;
  const of = box => getComputedStyle(box).backgroundColor;
  while (of(background) === 'rgba(0, 0, 0, 0)') background = background.parentElement;
  const range = document.createRange();
  range.selectNodeContents(one);
  const text = range.getBoundingClientRect(), box = one.getBoundingClientRect();
  return {text: one.textContent.trim().slice(0, 60), color: getComputedStyle(one).color,
    background: of(background), left: text.left, right: text.right,
    size: parseFloat(getComputedStyle(one).fontSize),
    isCut: one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible'};
})
"""
READ_BOXES = """
[...document.querySelectorAll('body, body *')].filter(one => one.checkVisibility()).map(one => {
  const box = one.getBoundingClientRect();
  return [one.tagName + '.' + one.className, box.left, box.right];
})
"""
READ_TILES = """
[...document.querySelectorAll('.facts div')].map(one => {
  const box = one.getBoundingClientRect();
  return [Math.round(box.top), Math.round(box.width), one.lastChild.getBoundingClientRect().height];
})
"""
READ_BARS = "[...document.querySelectorAll('{}')].map(one => one.getBoundingClientRect().{})"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def browser(directory: Path) -> Iterator[Browser]:
    command = find_chromium()
    assert command is not None
    started = Browser(command, directory / "profile")
    yield started
    started.close()


@pytest.fixture(scope="module")
def page(directory: Path) -> Path:
    path = directory / "audit.html"
    path.write_text(render(full_summary()), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=[(theme, width) for theme in THEMES for width in WIDTHS], ids=str)
def shown(request: pytest.FixtureRequest, browser: Browser, page: Path) -> Browser:
    """The report, with everything unfolded."""
    theme, width = request.param
    browser.show(page, width=width, theme=theme)
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true })")
    return browser


def test_nothing_is_wider_than_the_window_or_cut_off(shown: Browser) -> None:
    width = shown.run("document.documentElement.clientWidth")
    assert shown.run("document.documentElement.scrollWidth") == width
    outside = [box for box in shown.run(READ_BOXES) if box[1] < -0.5 or box[2] > width + 0.5]
    assert outside == []
    texts = shown.run(READ_TEXTS)
    assert [one["text"] for one in texts if one["isCut"] or one["right"] > width + 0.5] == []
    assert min(one["size"] for one in texts) >= 12


def test_every_text_can_be_read_on_its_background(shown: Browser) -> None:
    faint = [
        (one["text"], one["color"], one["background"])
        for one in shown.run(READ_TEXTS)
        if contrast(one["color"], one["background"]) < CONTRAST_MIN
    ]
    assert faint == []


def test_the_tiles_fill_their_grid(shown: Browser) -> None:
    rows: dict[int, list[int]] = {}
    tiles = shown.run(READ_TILES)
    for top, width, _ in tiles:
        rows.setdefault(top, []).append(width)
    counts = {len(widths) for widths in rows.values()}
    assert len(counts) == 1, f"a row of tiles has a hole: {rows}"
    widths = [width for row in rows.values() for width in row]
    assert max(widths) - min(widths) <= 1
    assert len({height for _, _, height in tiles}) == 1, "a number takes two lines"


def test_words_of_the_time_axis_do_not_overlap(shown: Browser) -> None:
    boxes = shown.run(
        "[...document.querySelectorAll('.ticks span')].map(one => one.getBoundingClientRect())"
        ".map(box => [box.left, box.right])"
    )
    assert len(boxes) >= 3
    assert all(left[1] <= right[0] for left, right in pairwise(boxes)), boxes


def test_the_themes_differ(browser: Browser, page: Path) -> None:
    papers: list[float] = []
    for theme in THEMES:
        browser.show(page, width=800, theme=theme)
        papers.append(luminance(browser.run("getComputedStyle(document.body).backgroundColor")))
    assert papers[0] > 0.8 > 0.1 > papers[1]


def test_no_caption_stands_there_twice(browser: Browser, page: Path) -> None:
    browser.show(page, width=1200, theme="light")
    captions = browser.run(
        "[...document.querySelectorAll('figcaption, caption')].map(one => one.textContent)"
    )
    assert len(captions) == len(set(captions))
    assert len(captions) >= 8


def test_a_small_bar_is_seen_beside_a_large_one(browser: Browser, page: Path) -> None:
    """Some are a hundred million times another; all of them have a length."""
    browser.show(page, width=800, theme="light")
    assert min(browser.run(READ_BARS.format(".track i", "width"))) >= 4
    heights = [height for height in browser.run(READ_BARS.format(".plot i", "height")) if height]
    assert min(heights) >= 3
    assert max(heights) / min(heights) < 40


def test_every_step_of_time_has_a_place_also_without_records(browser: Browser, page: Path) -> None:
    browser.show(page, width=800, theme="light")
    lanes: list[list[float]] = browser.run(
        "[...document.querySelectorAll('.plot')].map(plot => [...plot.children].map(one => one.offsetHeight))"
    )
    assert [len(lane) for lane in lanes] == [56, 56, 56, 56]
    assert [index for index, height in enumerate(lanes[0]) if height] == [0, 1, 2, 3, 20, 21, 40, 55]
    assert [index for index, height in enumerate(lanes[1]) if height] == [3]


def test_a_report_of_days_has_the_days_on_its_axis(browser: Browser, directory: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"from": BEGAN.replace(hour=0, minute=0) + timedelta(days=day), "outcome": "acknowledged"}
        | {"rangeCount": 1, "recordCount": 5}
        for day in (0, 3, 40)
    ]
    path = directory / "days.html"
    path.write_text(render(replace(full_summary(), times=rows, bucket_seconds=86_400)), encoding="utf-8")
    browser.show(path, width=400, theme="light")
    ticks = browser.run("[...document.querySelectorAll('.ticks span')].map(one => one.innerText)")
    assert 2 <= len(ticks) <= 6
    assert all(":" not in tick and "-" in tick for tick in ticks)


def contrast(color: str, background: str) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((luminance(color), luminance(background)))
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    """Of `rgb(...)`, from 0 to 1."""
    channels = [int(one) / 255 for one in color.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
