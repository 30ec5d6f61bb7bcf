"""A broker with HTTP and a share group at work, for the tests of the console."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from playwright.async_api import Browser

from barnabas.client import ShareConsumer
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, reserved_port, started
from tests.clients.cluster import NEVER_MS, Cluster, numbered
from tests.clients.console.browser import WIDE, Console, open_browser, open_console
from tests.clients.test_inspection_page import GROUP, TOPIC, story

TOKEN: Final = "the-token-of-this-test"
PARTITION: Final = f"#/groups/{GROUP}/topics/{TOPIC}/0"

BUSY_GROUP: Final = "resize"
BUSY_TOPIC: Final = "images"
BUSY_PARTITION: Final = f"#/groups/{BUSY_GROUP}/topics/{BUSY_TOPIC}/0"
BUSY_RECORDS: Final = 120

NO_SETTINGS: Mapping[str, str] = {}


class Workplace(NamedTuple):
    """The group of docs/inspection.md: of eight records a member has accepted 1, rejected 2 and released 3,
    and it holds 0 and 4.
    """

    broker: BrokerProcess
    address: str
    """Of HTTP."""
    browser: Browser


@asynccontextmanager
async def open_workplace(
    command: Path, folder: Path, settings: Mapping[str, str] = NO_SETTINGS
) -> AsyncGenerator[Workplace]:
    """`folder` gets the data and the token."""
    async with (
        open_broker(command, folder, settings) as (broker, address),
        story(broker),
        open_browser() as browser,
    ):
        yield Workplace(broker, address, browser)


@asynccontextmanager
async def console_at_work(
    command: Path, folder: Path, settings: Mapping[str, str] = NO_SETTINGS, *, width: int = WIDE
) -> AsyncGenerator[Console]:
    """A console of a workplace, in the light theme."""
    async with (
        open_workplace(command, folder, settings) as workplace,
        open_console(workplace.browser, workplace.address, width=width) as console,
    ):
        yield console


@asynccontextmanager
async def empty_console(
    command: Path, folder: Path, *, width: int = WIDE
) -> AsyncGenerator[tuple[BrokerProcess, Console]]:
    """A broker without topics and groups, and a console of it, in the light theme."""
    async with (
        open_broker(command, folder) as (broker, address),
        open_browser() as browser,
        open_console(browser, address, width=width) as console,
    ):
        yield broker, console


@asynccontextmanager
async def open_broker(
    command: Path, folder: Path, settings: Mapping[str, str] = NO_SETTINGS
) -> AsyncGenerator[tuple[BrokerProcess, str]]:
    """A broker, and the address of its HTTP."""
    token = folder / "token"
    token.write_text(TOKEN, encoding="utf-8")
    port = reserved_port()
    given = {
        **TEST_SETTINGS,
        "http.listener": str(port),
        "http.token.file": str(token),
        "group.share.record.lock.duration.ms": str(NEVER_MS),
        **settings,
    }
    with started(BrokerProcess(command, folder / "data", given)) as broker:
        yield broker, f"http://127.0.0.1:{port}"


@asynccontextmanager
async def busy_group(
    broker: BrokerProcess, record_count: int = BUSY_RECORDS, *, are_released: bool = False
) -> AsyncGenerator[None]:
    """A member has got these records, and has accepted every second one, so that each record is a range: it
    holds the even offsets, or has released them.
    """
    cluster = Cluster(broker.address)
    cluster.topic(name=BUSY_TOPIC)
    cluster.set_group(BUSY_GROUP, {"share.auto.offset.reset": "earliest"})
    cluster.produce(BUSY_TOPIC, numbered(record_count, "image"))
    consumer = ShareConsumer(
        broker.address,
        group=BUSY_GROUP,
        topics=[BUSY_TOPIC],
        member_id="worker-7",
        client_id="resizing",
        max_records=record_count,
        prefetch_records=0,
        renew_locks=False,
    )
    async with consumer:
        records = aiter(consumer)
        held = [await anext(records) for _ in range(record_count)]
        for record in held[1::2]:
            record.accept()
        for record in held[0::2] if are_released else ():
            record.release()
        await consumer.commit()
        yield


@asynccontextmanager
async def busy_console(command: Path, folder: Path) -> AsyncGenerator[Console]:
    """A console beside a busy group."""
    async with empty_console(command, folder) as (broker, console), busy_group(broker):
        yield console
