"""`__consumer_offsets`, made and opened when it is first needed."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator

import pytest

from barnabas.broker.offsets_topic import OffsetsTopic
from tests.conformance.harness import Lab, open_lab, settle

RECORDS: list[tuple[bytes, bytes | None]] = [(b"a", b"1"), (b"b", None)]


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as lab:
        yield lab


def offsets_topic(lab: Lab) -> OffsetsTopic:
    return OffsetsTopic(lab.broker.metadata, lab.broker.logs, lab.clock, 50)


async def test_a_broker_without_groups_has_none_of_it(lab: Lab) -> None:
    assert "__consumer_offsets" not in lab.broker.metadata.image.topics_by_name
    assert await offsets_topic(lab).read(0) == []
    assert "__consumer_offsets" not in lab.broker.metadata.image.topics_by_name


async def test_the_first_append_makes_it(lab: Lab) -> None:
    topic = offsets_topic(lab)
    ticket = topic.append(7, RECORDS)
    assert not ticket.done
    await ticket
    created = lab.broker.metadata.image.topics_by_name["__consumer_offsets"]
    assert (len(created.partitions), created.is_internal) == (50, True)
    assert await topic.read(7) == RECORDS
    assert await topic.read(8) == []


async def test_appends_that_make_it_together_make_it_once(lab: Lab) -> None:
    topic = offsets_topic(lab)
    tickets = [topic.append(partition, RECORDS) for partition in (1, 2, 1)]
    for ticket in tickets:
        await ticket
    assert await topic.read(1) == RECORDS * 2
    assert await topic.read(2) == RECORDS


async def test_later_appends_are_done_at_once(lab: Lab) -> None:
    topic = offsets_topic(lab)
    await topic.append(7, RECORDS)
    assert topic.append(7, RECORDS).done


async def test_a_long_log_is_read_to_its_end(lab: Lab) -> None:
    topic = offsets_topic(lab)
    value = b"v" * 100_000
    for number in range(25):
        await topic.append(3, [(str(number).encode(), value)])
    assert [key for key, _ in await topic.read(3)] == [str(number).encode() for number in range(25)]


async def test_a_partition_beyond_the_last_has_nothing(lab: Lab) -> None:
    topic = offsets_topic(lab)
    await topic.append(0, RECORDS)
    assert await topic.read(50) == []


async def test_a_failure_is_in_the_ticket(lab: Lab) -> None:
    topic = offsets_topic(lab)
    await topic.append(0, RECORDS)
    lab.filesystem.write_error, lab.filesystem.failing_suffix = errno.EIO, ".log"
    assert topic.append(0, RECORDS).error is not None
    not_open_yet = topic.append(1, RECORDS)
    await settle()
    assert not_open_yet.error is not None
    lab.filesystem.write_error = None


async def test_closing_waits_for_what_is_being_appended(lab: Lab) -> None:
    topic = offsets_topic(lab)
    ticket = topic.append(0, RECORDS)
    await topic.close()
    assert ticket.done
