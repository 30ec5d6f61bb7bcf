"""A broker with HTTP and a share group at work, for the tests of the console."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from playwright.async_api import Browser

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, free_port, started
from tests.clients.console.browser import Console, open_browser, open_console
from tests.clients.test_inspection_page import GROUP, TOPIC, story

TOKEN: Final = "the-token-of-this-test"
PARTITION: Final = f"#/groups/{GROUP}/topics/{TOPIC}/0"


class Workplace(NamedTuple):
    """The group of docs/inspection.md: of eight records a member has accepted 1, rejected 2 and released 3,
    and it holds 0 and 4.
    """

    address: str
    """Of HTTP."""
    browser: Browser


@asynccontextmanager
async def open_workplace(command: Path, folder: Path) -> AsyncGenerator[Workplace]:
    """`folder` gets the data and the token."""
    async with (
        open_broker(command, folder) as (broker, address),
        story(broker),
        open_browser() as browser,
    ):
        yield Workplace(address, browser)


@asynccontextmanager
async def console_at_work(command: Path, folder: Path) -> AsyncGenerator[Console]:
    """A console of a workplace, in the light theme and at the width of a desk."""
    async with (
        open_workplace(command, folder) as workplace,
        open_console(workplace.browser, workplace.address) as console,
    ):
        yield console


@asynccontextmanager
async def open_broker(command: Path, folder: Path) -> AsyncGenerator[tuple[BrokerProcess, str]]:
    """A broker, and the address of its HTTP."""
    token = folder / "token"
    token.write_text(TOKEN, encoding="utf-8")
    port = free_port()
    settings = {"http.listener": str(port), "http.token.file": str(token), **TEST_SETTINGS}
    with started(BrokerProcess(command, folder / "data", settings)) as broker:
        yield broker, f"http://127.0.0.1:{port}"
