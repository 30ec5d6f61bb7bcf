"""A person changes records and deletes things, in the console and with the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from barnabas.client import ShareConsumer
from tests.clients.cluster import Cluster
from tests.clients.console.browser import Console, open_console
from tests.clients.console.workplace import PARTITION, TOKEN, console_at_work, open_workplace
from tests.clients.test_inspection_page import GROUP, TOPIC

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]

WRONG_TOKEN = "a-wrong-token-of-this-test"
LETTERS = "dlq.orders"


async def ask(console: Console, button: str) -> Locator:
    """Press a button, and get the dialog that confirms."""
    await console.page.get_by_role("button", name=button, exact=True).press("Enter")
    dialog = console.page.get_by_role("dialog")
    await dialog.get_by_role("heading").wait_for()
    return dialog


async def confirm(
    console: Console, button: str, verb: str, *, token: str | None = None, name: str | None = None
) -> Locator:
    """Ask for a change and confirm it, with the name and the token as far as they are asked for."""
    dialog = await ask(console, button)
    if name is not None:
        await dialog.get_by_label("to confirm").fill(name)
    if token is not None:
        await dialog.get_by_label("Token").fill(token)
    await dialog.get_by_role("button", name=verb, exact=True).press("Enter")
    return dialog


async def expect_outcome(console: Console, text: str) -> None:
    await expect(console.page.locator(".outcome")).to_have_text(text)


async def test_records_are_released_and_archived_with_the_token(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open(PARTITION, f"{TOPIC} 0")
        await confirm(console, "Archive: 3", "Archive", token=TOKEN)
        await expect_outcome(console, "Archive: 1 record changed.")
        await console.page.get_by_role("row", name="3 archived").wait_for()
        await confirm(console, "Release: 4", "Release")
        await expect_outcome(console, "Release: 1 record changed.")
        await console.page.get_by_role("row", name="4 available").wait_for()
        assert await console.violations() == []
        stored = await console.page.evaluate("[JSON.stringify(localStorage), document.cookie]")
        assert TOKEN not in "".join(stored)


async def test_each_change_is_refused_with_a_wrong_token_and_changes_nothing(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        for fragment, heading, button, verb, name in (
            (PARTITION, f"{TOPIC} 0", "Release: 4", "Release", None),
            (PARTITION, f"{TOPIC} 0", "Archive: 3", "Archive", None),
            (PARTITION, f"{TOPIC} 0", "Dead-letter: 3", "Dead-letter", None),
            (f"#/groups/{GROUP}", GROUP, "Delete group", "Delete", GROUP),
            (f"#/topics/{TOPIC}", TOPIC, "Delete topic", "Delete", TOPIC),
        ):
            await console.open(fragment, heading)
            dialog = await confirm(console, button, verb, token=WRONG_TOKEN, name=name)
            await expect(dialog.get_by_role("alert")).to_contain_text("needs the token")
            assert await console.violations() == []
            await console.page.keyboard.press("Escape")
            await expect(dialog).to_be_hidden()
            await expect(console.page.get_by_role("button", name=button, exact=True)).to_be_focused()
        await console.open(PARTITION, f"{TOPIC} 0")
        for row in ("3 available", "4 acquired"):
            await expect(console.page.get_by_role("row", name=row)).to_be_visible()


async def test_a_record_goes_to_dead_letters_if_the_group_has_them(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with (
        open_workplace(barnabas_command, tmp_path) as workplace,
        open_console(workplace.browser, workplace.address) as console,
    ):
        await console.open(f"{PARTITION}/records/3", "Record 3")
        dialog = await confirm(console, "Dead-letter: 3", "Dead-letter", token=TOKEN)
        await expect(dialog.get_by_role("alert")).to_contain_text("dead letter")
        await dialog.get_by_role("button", name="Cancel").press("Enter")
        cluster = Cluster(workplace.broker.address)
        cluster.topic(name=LETTERS, errors_deadletterqueue_group_enable="true")
        cluster.set_group(GROUP, {"errors.deadletterqueue.topic.name": LETTERS})
        await confirm(console, "Dead-letter: 3", "Dead-letter")
        await expect_outcome(console, "Dead-letter: 1 record changed.")
        await expect(console.page.locator(".title")).to_contain_text("archived")
        await console.open(f"#/topics/{LETTERS}", LETTERS)
        await expect(console.page.locator(".figure", has_text="Offsets in the log")).to_contain_text("1")


async def test_stuck_records_are_archived_from_their_list(barnabas_command: Path, tmp_path: Path) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open("#/stuck", "Stuck records")
        await expect(console.page.get_by_role("row", name=f"{TOPIC} 0: 3")).to_contain_text("release")
        await console.page.get_by_label("Failed deliveries, at least").select_option("2")
        await expect(console.page.get_by_text("No record is stuck")).to_be_visible()
        await console.page.get_by_label("Failed deliveries, at least").select_option("1")
        await confirm(console, "Archive: 3", "Archive", token=TOKEN)
        await expect(console.page.get_by_text("No record is stuck")).to_be_visible()
        await console.open(f"#/groups/{GROUP}/stuck", "Stuck records")
        await expect(console.page.get_by_text("No record is stuck")).to_be_visible()


async def test_topics_and_empty_groups_are_deleted_when_their_names_are_typed(
    barnabas_command: Path, tmp_path: Path
) -> None:
    async with console_at_work(barnabas_command, tmp_path) as console:
        await console.open(f"#/groups/{GROUP}", GROUP)
        dialog = await confirm(console, "Delete group", "Delete", token=TOKEN, name=GROUP)
        await expect(dialog.get_by_role("alert")).to_have_text("The group is not empty.")
        await dialog.get_by_label("to confirm").fill("another")
        await expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
        await console.page.keyboard.press("Escape")
        await console.open(f"#/topics/{TOPIC}", TOPIC)
        await confirm(console, "Delete topic", "Delete", name=TOPIC)
        await console.page.get_by_role("heading", name="Topics", exact=True).wait_for()
        await expect_outcome(console, f"The topic {TOPIC} is deleted.")
        await expect(console.page.get_by_text("There are no topics yet")).to_be_visible()
        assert await console.violations() == []


async def test_a_group_without_members_is_deleted(barnabas_command: Path, tmp_path: Path) -> None:
    async with (
        open_workplace(barnabas_command, tmp_path) as workplace,
        open_console(workplace.browser, workplace.address) as console,
    ):
        async with ShareConsumer(workplace.broker.address, group="idle", topics=[TOPIC]):
            await console.open("#/groups/idle", "idle")
            await expect(console.page.get_by_role("row", name=f"{TOPIC} 0").first).to_be_visible()
        await expect(console.page.get_by_text("The group has no members")).to_be_visible()
        await confirm(console, "Delete group", "Delete", token=TOKEN, name="idle")
        await expect_outcome(console, "The group idle is deleted.")
        await expect(console.page.get_by_role("rowheader")).to_have_text([GROUP])
