"""Share groups with `share.order=key`: no fetch sleeps while a record could be delivered to it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.share.leader import batch_keys
from tests.conformance.conftest import Stage
from tests.conformance.harness import settle
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE, RENEW, ShareMember, fetched
from tests.conformance.test_order_of_keys import produce

MEMBERS = 4
STEPS = 150
LOCK_MS = 30_000
WAIT_MS = 10**9


class History:
    """Members that work at random, and one whose fetch waits for the next record."""

    def __init__(self, stage: Stage, chance: random.Random) -> None:
        self._stage = stage
        self._chance = chance
        self._members = [stage.member(number) for number in range(MEMBERS)]
        self._waiter = stage.member(MEMBERS)
        self._fresh = stage.member(MEMBERS + 1)
        self._waiting: Any = None
        self._held: dict[ShareMember, list[int]] = {}

    async def begin(self) -> None:
        for member in (*self._members, self._waiter, self._fresh):
            await member.join("t")
            await self._fetch(member)

    async def step(self) -> None:
        """Something happens; then the waiting fetch has an answer, or a fresh one gets no record either."""
        actions: list[Callable[[], Awaitable[None]]] = [
            self._produce,
            self._fetch_any,
            self._fetch_any,
            self._acknowledge,
            self._acknowledge,
            self._acknowledge,
            self._end_session,
            self._let_locks_expire,
            self._delete_records,
        ]
        await self._chance.choice(actions)()
        await settle()
        await self._check()

    async def _check(self) -> None:
        if self._waiting is None:
            self._waiting = self._waiter.start_fetch(max_wait=WAIT_MS)
            await settle()
        elif self._waiting.done:
            self._note(self._waiter, fetched(self._waiting.response()).acquired)
            self._waiting = None
        elif self._chance.random() < 0.5:
            acquired = await self._fetch(self._fresh)
            assert acquired == [], "a fetch sleeps"

    async def _produce(self) -> None:
        keys = [self._chance.choice([None, "a", "b", "c", "d"]) for _ in range(self._chance.randint(1, 8))]
        await produce(self._stage, keys)

    async def _fetch_any(self) -> None:
        await self._fetch(self._chance.choice(self._members))

    async def _fetch(self, member: ShareMember) -> list[tuple[int, int, int]]:
        got = await member.fetch(
            max_records=self._chance.choice((1, 3, 50)),
            max_bytes=self._chance.choice((1, 1 << 20)),
            share_acquire_mode=self._chance.choice((0, 1)),
        )
        self._note(member, got.acquired)
        return got.acquired

    def _note(self, member: ShareMember, acquired: list[tuple[int, int, int]]) -> None:
        held = self._held.setdefault(member, [])
        held += [offset for first, last, _ in acquired for offset in range(first, last + 1)]

    async def _acknowledge(self) -> None:
        """One record. The broker may refuse it, because the member has lost the record by now."""
        holders = [member for member, offsets in self._held.items() if offsets and member is not self._waiter]
        if self._held.get(self._waiter) and self._waiting is None:
            holders.append(self._waiter)
        if holders:
            member = self._chance.choice(holders)
            offsets = self._held[member]
            offset = offsets.pop(self._chance.randrange(len(offsets)))
            ack_type = self._chance.choice((ACCEPT, ACCEPT, RELEASE, REJECT, RENEW))
            if ack_type == RENEW:
                offsets.append(offset)
            await member.acknowledge([(offset, offset, ack_type)], renew=ack_type == RENEW)

    async def _end_session(self) -> None:
        member = self._chance.choice(self._members)
        if member.epoch:
            await member.leave_session()
            member.epoch = 0
            self._held.pop(member, None)

    async def _let_locks_expire(self) -> None:
        await self._stage.lab.advance(self._chance.choice((LOCK_MS // 3, LOCK_MS)))

    async def _delete_records(self) -> None:
        start_offset, _ = await self._stage.offsets()
        if start_offset >= 0 and self._chance.random() < 0.3:
            log = self._stage.lab.broker.log_directory.find("t", 0)
            assert log is not None
            before_offset = min(start_offset + self._chance.randint(1, 5), log.high_watermark)
            await self._stage.lab.delete_records("t", before_offset)


@pytest.mark.seeds(10)
async def test_no_fetch_sleeps_while_a_record_could_be_delivered_to_it(
    stage: Stage, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(batch_keys, "HASHED_RECORDS_MAX", chance.choice((4, 50_000)))
    await stage.lab.configure_group(
        GROUP,
        order="key",
        order_key_in_flight_max=chance.choice((1, 3)),
        delivery_count_limit=chance.choice((2, 10)),
    )
    history = History(stage, chance)
    await history.begin()
    for _ in range(STEPS):
        await history.step()
