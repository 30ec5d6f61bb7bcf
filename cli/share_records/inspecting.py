"""Asks a broker for the records of a share group, and prints them partition by partition."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple, TypeVar

from barnabas.cli.exit_codes import ExitCode
from barnabas.cli.printing import Printer
from barnabas.cli.share_records.report import (
    print_more,
    print_progress,
    print_ranges,
    print_records,
    print_unavailable,
)
from barnabas.cli.target import Target
from barnabas.client.errors import BrokerUnavailableError
from barnabas.client.inspect.share_browser import ShareBrowser
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.record_inspection import DescribedState

T = TypeVar("T")


class Wanted(NamedTuple):
    """The records to print."""

    topic: str | None
    """None for all topics that the group reads."""
    partition: int | None
    """None for all of them."""
    from_offset: int | None
    """None for the start offset of each partition."""
    to_offset: int | None
    """Inclusive; None for the end."""
    states: Sequence[DescribedState]
    """Empty for all."""
    limit: int
    """The most ranges, or records, of each partition."""
    with_records: bool


async def inspect(target: Target, group_id: str, wanted: Wanted, printer: Printer) -> ExitCode:
    """NOT_FOUND if the group reads none of the wanted partitions, NOT_ALL if some of several are not
    available.

    Raises `ConsumerError`.
    """
    exit_code = ExitCode.NOT_FOUND
    async with ShareBrowser(target.bootstrap, group=group_id, **target.options) as browser:
        partitions = await _partitions(browser, wanted)
        for number, partition in enumerate(partitions):
            if number:
                printer.text()
            try:
                await _print_partition(browser, partition, wanted, printer)
            except BrokerUnavailableError as error:
                if len(partitions) == 1:
                    raise
                print_unavailable(printer, partition, str(error))
                exit_code = ExitCode.NOT_ALL
            else:
                exit_code = ExitCode.DONE if exit_code is ExitCode.NOT_FOUND else exit_code
    return exit_code


async def _partitions(browser: ShareBrowser, wanted: Wanted) -> list[TopicPartition]:
    if wanted.topic is not None and wanted.partition is not None:
        return [TopicPartition(wanted.topic, wanted.partition)]
    known = await browser.partitions()
    return [partition for partition in known if wanted.topic in (None, partition.topic)]


async def _print_partition(
    browser: ShareBrowser, partition: TopicPartition, wanted: Wanted, printer: Printer
) -> None:
    print_progress(printer, partition, await browser.progress(*partition))
    print_found = _print_records if wanted.with_records else _print_ranges
    next_offset = await print_found(browser, partition, wanted, printer)
    if next_offset is not None:
        print_more(printer, partition, next_offset)


async def _print_ranges(
    browser: ShareBrowser, partition: TopicPartition, wanted: Wanted, printer: Printer
) -> int | None:
    """The offset behind the limit, if it was reached."""
    found = browser.ranges(
        *partition, first_offset=wanted.from_offset, last_offset=wanted.to_offset, states=wanted.states
    )
    ranges, following = await _first(found, wanted.limit)
    print_ranges(printer, ranges)
    return None if following is None else following.first_offset


async def _print_records(
    browser: ShareBrowser, partition: TopicPartition, wanted: Wanted, printer: Printer
) -> int | None:
    """The offset behind the limit, if it was reached."""
    found = browser.records(
        *partition, first_offset=wanted.from_offset, last_offset=wanted.to_offset, states=wanted.states
    )
    records, following = await _first(found, wanted.limit)
    print_records(printer, records)
    return None if following is None else following.offset


async def _first(found: AsyncGenerator[T], limit: int) -> tuple[list[T], T | None]:
    """The first ones, and the one behind them."""
    taken: list[T] = []
    async with aclosing(found) as rest:
        async for entry in rest:
            if len(taken) == limit:
                return taken, entry
            taken.append(entry)
    return taken, None
