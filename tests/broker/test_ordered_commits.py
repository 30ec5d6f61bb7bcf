"""Transactional commits that wait for the stable offset, over the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.broker.handlers.common.interruptible_commit import InterruptibleCommit
from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Lab, Pending, open_lab, settle
from tests.conformance.transacting import GROUP, OK, TIMEOUT_MS, Transacting, committed


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    """A group that commits in order, with everything up to offset 39 committed."""
    async with open_lab() as lab:
        await lab.create_topic("t")
        await lab.set_group_configs(GROUP, {"individual.commit.order": "partition"})
        first = await producer(lab, "first")
        assert await first.commit_offset(40) is OK
        assert await first.end() is OK
        yield lab


async def producer(lab: Lab, transactional_id: str) -> Transacting:
    made = Transacting(lab.client(transactional_id), transactional_id=transactional_id)
    assert await made.init() is OK
    return made


async def test_a_commit_is_answered_when_it_reaches_the_stable_offset(lab: Lab) -> None:
    a, b = await producer(lab, "a"), await producer(lab, "b")
    of_b = b.start_commit_ranges(GROUP, [(45, 49)])
    assert await a.commit_ranges(GROUP, [(40, 44)]) is OK
    assert await b.committed(of_b) is OK
    for one in (b, a):
        assert await one.end() is OK
    assert await committed(lab) == 50


async def test_a_wait_ends_before_the_transaction_times_out(lab: Lab) -> None:
    b = await producer(lab, "b")
    of_b = b.start_commit_ranges(GROUP, [(45, 49)])
    await lab.advance(TIMEOUT_MS)
    assert await b.committed(of_b) is ErrorCode.transaction_abortable
    assert await b.end(commit=False) is OK


async def test_a_wait_is_no_longer_than_the_timeout_though_the_clock_was_set_back(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = await producer(lab, "b")
    assert await b.write() is OK
    began_ms = lab.clock.wall_ms()
    monkeypatch.setattr(lab.clock, "wall_ms", lambda: began_ms - 10 * TIMEOUT_MS)
    of_b = b.start_commit_ranges(GROUP, [(45, 49)])
    await lab.advance(TIMEOUT_MS)
    assert await b.committed(of_b) is ErrorCode.transaction_abortable


async def test_a_request_behind_the_commit_ends_the_wait(lab: Lab) -> None:
    b = await producer(lab, "b")
    of_b = b.start_commit_ranges(GROUP, [(45, 49)])
    await settle()
    waiting_reply(of_b).hurry()
    assert await b.committed(of_b) is ErrorCode.transaction_abortable


async def test_a_commit_of_a_closed_connection_does_not_take_place(lab: Lab) -> None:
    a, b = await producer(lab, "a"), await producer(lab, "b")
    of_b = b.start_commit_ranges(GROUP, [(45, 49)])
    await settle()
    waiting_reply(of_b).withdraw()
    assert await a.commit_ranges(GROUP, [(40, 44)]) is OK
    for one in (a, b):
        assert await one.end() is OK
    assert await committed(lab, require_stable=True) == 45
    assert lab.broker.groups.offsets.waiting_count == 0


def waiting_reply(commit: Pending) -> InterruptibleCommit[Any]:
    """The reply as its connection sees it."""
    assert isinstance(commit.reply, InterruptibleCommit)
    return commit.reply
