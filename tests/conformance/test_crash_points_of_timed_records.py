"""The broker ends at each single disk operation while records are delayed and expire. No record is delivered
before it is due, each one is delivered or has one dead letter, and all of that without a further write.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.identity import TopicIdPartition
from barnabas.share.sweep.sweep import SWEEP_INTERVAL_MS
from tests.conformance.conftest import Stage, with_log_store_only
from tests.conformance.crash_flows import TOPIC, Flow, Told, check_everywhere
from tests.conformance.dead_lettering import offsets_of_letters, use_dead_letters
from tests.conformance.harness import Lab, settle
from tests.conformance.share_member import GROUP, ShareMember
from tests.conformance.timed_records import HEADER, Timed, produce_timed

TTL_MS = 60_000
DELAY_MS = 5_000
RECORDS = [Timed(TTL_MS), Timed(delay=str(DELAY_MS)), Timed(), Timed(TTL_MS + 1), Timed()]
EXPIRED, DELAYED, PRESENT = [0, 3], 1, [2, 4]


@with_log_store_only
@pytest.mark.parametrize("flush", ["interval", "always"])
@pytest.mark.parametrize("store", ["log", "topic"])
async def test_delays_and_expiry_survive_wherever_the_broker_ends(flush: str, store: str) -> None:
    await check_everywhere(TimedFlow(store), flush)


class TimedFlow(Flow):
    """A member fetches records of the present, beside a delayed one and expired ones, and accepts them."""

    def __init__(self, store: str) -> None:
        super().__init__()
        self.settings = {"share.state.store": store}

    async def prepare(self, lab: Lab) -> None:
        await super().prepare(lab)
        await use_dead_letters(lab)
        await lab.configure_group(
            GROUP, auto_offset_reset="earliest", delay_header=HEADER, record_ttl_ms=TTL_MS
        )
        self._member = self._new_member(lab, self.told)
        await self._member.join(TOPIC)
        await self._member.take(max_wait=0)
        await settle()
        self.told["due_ms"] = lab.clock.wall_ms() + DELAY_MS
        await produce_timed(Stage(lab, self._partition(self.told)), RECORDS)

    async def run(self, lab: Lab) -> None:
        for offset in PRESENT:
            assert offset in _offsets(await self._member.take(max_records=1)) or offset == PRESENT[1]
        for offset in PRESENT:
            await self._member.accept(offset, offset)
            self.told["accepted"] = [*self.told.get("accepted", ()), offset]
        for _ in range(3):
            await settle()

    async def check(self, lab: Lab, told: Told) -> None:
        member = self._new_member(lab, told)
        await member.join(TOPIC)
        assert lab.clock.wall_ms() < told["due_ms"]
        early: list[int] = []
        for _ in range(4):
            early += _offsets(await member.take(max_wait=0))
            await settle()
        assert set(early) <= set(PRESENT) - set(told.get("accepted", ()))
        for offset in early:
            await member.accept(offset, offset)
        await lab.advance(told["due_ms"] - lab.clock.wall_ms() + 10)
        assert _offsets(await member.take(max_wait=0)) == [DELAYED]
        await member.accept(DELAYED, DELAYED)
        await lab.advance(SWEEP_INTERVAL_MS)
        for _ in range(3):
            await settle()
        assert sorted(await offsets_of_letters(lab)) == EXPIRED
        assert (await lab.offsets(GROUP, self._partition(told)))[1] == 0

    def _partition(self, told: Told) -> TopicIdPartition:
        return TopicIdPartition(told["topic_id"], 0)

    def _new_member(self, lab: Lab, told: Told) -> ShareMember:
        return ShareMember(lab.client(), [self._partition(told)], group_id=GROUP)


def _offsets(acquired: list[tuple[int, int, int]]) -> list[int]:
    return [offset for first, last, _ in acquired for offset in range(first, last + 1)]
