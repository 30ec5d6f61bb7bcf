"""The console in Debian's Chromium, driven by Playwright, and checked with axe-core."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

from playwright.async_api import Browser, Page, Request, async_playwright, expect

from tests.clients.java_build import PROJECT
from tests.clients.polling import SECONDS_MAX
from tests.pipeline.audit.browser import MISSING, find_chromium

Theme = Literal["light", "dark"]

WIDE: Final = 1120
PHONE: Final = 360
_HEIGHT: Final = 900
_MS_MAX: Final = SECONDS_MAX * 1000
_AXE: Final = PROJECT / "console" / "node_modules" / "axe-core" / "axe.min.js"


expect.set_options(timeout=_MS_MAX)


class Console:
    """One page of the console. It collects the errors of the page, and its requests to other hosts."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self._address = address
        self.errors: list[str] = []
        self.foreign_requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._note)

    def _note(self, request: Request) -> None:
        if not request.url.startswith(f"{self._address}/"):
            self.foreign_requests.append(request.url)

    async def open(self, fragment: str, heading: str) -> None:
        """Load the page anew, and wait for its content."""
        await self.page.goto("about:blank")
        await self.page.goto(f"{self._address}/console{fragment}")
        await self.page.get_by_role("heading", level=1, name=heading, exact=True).wait_for()
        await self.page.get_by_text("Loading …").wait_for(state="detached")

    async def violations(self) -> list[str]:
        """The findings of axe-core, each with its place."""
        await self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        result: Any = await self.page.evaluate("axe.run()")
        return [
            f"{finding['id']}: {node['html']}"
            for finding in result["violations"]
            for node in finding["nodes"]
        ]

    async def overflow_px(self) -> int:
        """The width of the part that a reader must scroll to."""
        width: int = await self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return width


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    """One browser."""
    command = find_chromium()
    assert command is not None, MISSING
    assert _AXE.is_file(), "the libraries of the console are missing: make console"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=command, args=["--no-sandbox"], timeout=_MS_MAX
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def open_console(
    browser: Browser, address: str, *, theme: Theme = "light", width: int = WIDE
) -> AsyncGenerator[Console]:
    """A tab of its own, with the theme of the system. At the end nothing was loaded from elsewhere, and no
    script has failed.
    """
    context = await browser.new_context(
        color_scheme=theme, viewport={"width": width, "height": _HEIGHT}, reduced_motion="reduce"
    )
    context.set_default_timeout(_MS_MAX)
    console = Console(await context.new_page(), address)
    yield console
    await context.close()
    assert console.foreign_requests == []
    assert console.errors == []
