"""Records that are delivered with a delay, request by request, with both stores of share state."""

from __future__ import annotations

import pytest

from barnabas.protocol.record_batch import Compression
from barnabas.protocol.record_inspection import Wait
from barnabas.share.partition.waits import WAIT_MS_MAX
from tests.conformance.conftest import Stage
from tests.conformance.records_of_a_group import ACQUIRED, NEW, describe
from tests.conformance.share_member import ACCEPT, GROUP, RELEASE, ShareMember, fetched
from tests.conformance.timed_records import HEADER, Timed, produce_timed

LABELS = f"{{group={GROUP},partition=0,topic=t}}"
MINUTE_MS = 60_000


def metric(stage: Stage, name: str) -> float:
    value = stage.lab.broker.metrics.snapshot().get(f"barnabas_share_{name}{LABELS}", 0)
    assert isinstance(value, int | float)
    return value


async def member_of(stage: Stage, **configs: object) -> ShareMember:
    """A member with an open session, in a group with these settings."""
    await stage.lab.configure_group(GROUP, **configs)
    member = stage.member()
    assert await member.take() == []
    return member


class TestDelayOfTheGroup:
    async def test_a_waiting_fetch_gets_a_record_when_it_is_due(self, stage: Stage) -> None:
        member = await member_of(stage, delivery_delay_ms=1_000)
        waiting = member.start_fetch(max_wait=MINUTE_MS)
        await stage.produce(3)
        await stage.lab.advance(990)
        assert not waiting.done
        await stage.lab.advance(10)
        assert fetched(waiting.response()).acquired == [(0, 2, 1)]

    async def test_reading_stops_inside_of_a_batch(self, stage: Stage) -> None:
        member = await member_of(stage, delivery_delay_ms=1_000)
        await produce_timed(stage, [Timed(1_500), Timed(1_000), Timed(500), Timed(1_500), Timed()])
        assert await member.take() == [(0, 1, 1)]
        assert await member.take() == []
        await stage.lab.advance(500)
        assert await member.take() == [(2, 3, 1)]
        await stage.lab.advance(500)
        assert await member.take() == [(4, 4, 1)]

    async def test_records_of_a_compressed_batch_are_looked_at(self, stage: Stage) -> None:
        member = await member_of(stage, delivery_delay_ms=1_000)
        await produce_timed(stage, [Timed(1_500), Timed()], Compression.ZSTD)
        assert await member.take() == [(0, 0, 1)]

    async def test_a_record_that_failed_does_not_wait_again(self, stage: Stage) -> None:
        member = await member_of(stage, delivery_delay_ms=1_000)
        await produce_timed(stage, [Timed(2_000), Timed()])
        assert await member.take() == [(0, 0, 1)]
        await member.acknowledge([(0, 0, RELEASE)])
        assert await member.take() == [(0, 0, 2)]

    async def test_a_shorter_delay_counts_from_the_next_fetch(self, stage: Stage) -> None:
        member = await member_of(stage, delivery_delay_ms=MINUTE_MS)
        await stage.produce(2)
        assert await member.take() == []
        await stage.lab.configure_group(GROUP, delivery_delay_ms=0)
        assert await member.take() == [(0, 1, 1)]

    @pytest.mark.parametrize("is_clean", [False, True])
    async def test_a_restart_changes_nothing(self, stage: Stage, is_clean: bool) -> None:
        member = await member_of(stage, delivery_delay_ms=1_000)
        await produce_timed(stage, [Timed(1_000), Timed(500), Timed()])
        assert await member.take() == [(0, 0, 1)]
        await member.acknowledge([(0, 0, ACCEPT)])
        await stage.restart(is_clean=is_clean)
        later = stage.member(2)
        await later.join("t")
        assert await later.take() == []
        await stage.lab.advance(500)
        assert await later.take() == [(1, 1, 1)]

    async def test_keys_keep_their_order(self, stage: Stage) -> None:
        """The first record of key a is due, and the second one is not: the third one is never first."""
        member = await member_of(stage, delivery_delay_ms=1_000, order="key")
        batch = [Timed(2_000, key=b"a"), Timed(500, key=b"a"), Timed(2_000, key=b"b"), Timed(key=b"a")]
        await produce_timed(stage, batch)
        assert await member.take() == [(0, 0, 1)]
        await member.acknowledge([(0, 0, ACCEPT)])
        assert await member.take() == []
        await stage.lab.advance(500)
        assert await member.take() == [(1, 2, 1)] or await member.take() == []
        await member.acknowledge([(1, 2, ACCEPT)])
        await stage.lab.advance(500)
        assert await member.take() == [(3, 3, 1)]
        await member.acknowledge([(3, 3, ACCEPT)])
        assert await stage.offsets() == (4, 0)

    async def test_the_inspection_names_the_reason(self, stage: Stage) -> None:
        member = await member_of(stage, delivery_delay_ms=1_000)
        await produce_timed(stage, [Timed(2_000), Timed()])
        assert await member.take() == [(0, 0, 1)]
        page = await describe(stage.lab, stage.partition)
        assert page.ranges == [(0, 0, ACQUIRED, 1), (1, 1, NEW, 0)]
        assert page.waits == {1: Wait.DUE}
        assert page.response.ranges[1].due_ms == stage.lab.clock.wall_ms() + 1_000


class TestDelayOfARecord:
    async def test_a_delayed_record_comes_when_it_is_due_and_others_flow(self, stage: Stage) -> None:
        member = await member_of(stage, delay_header=HEADER)
        await produce_timed(stage, [Timed(), Timed(delay="1000"), Timed(), Timed(delay="2000")])
        assert await member.take() == [(0, 0, 1), (2, 2, 1)]
        await stage.produce(1)
        ((offset, _, _),) = await member.take()
        assert offset > 3
        assert metric(stage, "delayed_records") == 2
        await member.acknowledge([(0, 0, ACCEPT), (2, 2, ACCEPT), (offset, offset, ACCEPT)])
        waiting = member.start_fetch(max_wait=MINUTE_MS)
        await stage.lab.advance(990)
        assert not waiting.done
        await stage.lab.advance(20)
        assert fetched(waiting.response()).acquired == [(1, 1, 1)]
        await stage.lab.advance(1_000)
        assert await member.take() == [(3, 3, 1)]
        assert metric(stage, "delayed_records") == 0

    @pytest.mark.parametrize("is_clean", [False, True])
    async def test_a_due_time_survives_a_restart_without_another_read(
        self, stage: Stage, is_clean: bool
    ) -> None:
        member = await member_of(stage, delay_header=HEADER)
        await produce_timed(stage, [Timed(), Timed(delay="1000"), Timed()])
        assert await member.take() == [(0, 0, 1), (2, 2, 1)]
        await member.acknowledge([(0, 0, ACCEPT), (2, 2, ACCEPT)])
        await stage.lab.configure_group(GROUP, delay_header="")
        await stage.restart(is_clean=is_clean)
        later = stage.member(2)
        await later.join("t")
        assert await later.take() == []
        await stage.lab.advance(1_010)
        assert await later.take() == [(1, 1, 1)]

    @pytest.mark.parametrize("value", ["", "soon", "-5", "1.5", str(WAIT_MS_MAX + 1), "9" * 30])
    async def test_a_value_that_is_no_delay_is_counted_and_the_record_delivered(
        self, stage: Stage, value: str
    ) -> None:
        member = await member_of(stage, delay_header=HEADER)
        await produce_timed(stage, [Timed(delay=value)])
        assert await member.take() == [(0, 0, 1)]
        assert metric(stage, "invalid_delay_headers_total") == 1

    async def test_delayed_records_do_not_occupy_the_window(self, stage: Stage) -> None:
        """The window has room for 100 records, and many more are acknowledged behind delayed ones."""
        member = await member_of(stage, delay_header=HEADER, partition_max_record_locks=100)
        await produce_timed(stage, [Timed(delay="60000")] * 150)
        for _ in range(5):
            await stage.produce(90)
            ((first_offset, last_offset, _),) = await member.take()
            assert last_offset - first_offset == 89
            await member.acknowledge([(first_offset, last_offset, ACCEPT)])
        assert await stage.offsets() == (0, 150)
        await stage.lab.advance(60_010)
        assert await member.take() == [(0, 149, 1)]

    async def test_reading_stops_at_the_bound_of_delayed_records(self, stage: Stage) -> None:
        member = await member_of(stage, delay_header=HEADER, delayed_records_max=2)
        await produce_timed(stage, [Timed(delay=str(1_000 * (index + 1))) for index in range(3)] + [Timed()])
        assert await member.take() == []
        assert (metric(stage, "delayed_records"), metric(stage, "delayed_stalled")) == (2, 1)
        waiting = member.start_fetch(max_wait=MINUTE_MS)
        await stage.lab.advance(1_010)
        assert fetched(waiting.response()).acquired == [(0, 0, 1), (3, 3, 1)]
        assert (metric(stage, "delayed_records"), metric(stage, "delayed_stalled")) == (2, 0)

    async def test_the_header_takes_the_place_of_the_delay_of_the_group(self, stage: Stage) -> None:
        member = await member_of(stage, delay_header=HEADER, delivery_delay_ms=1_000)
        await produce_timed(stage, [Timed(delay="0"), Timed(delay="3000"), Timed(), Timed(delay="0")])
        assert await member.take() == [(0, 0, 1)]
        await stage.lab.advance(1_010)
        assert await member.take() == [(2, 3, 1)]
        await stage.lab.advance(2_000)
        assert await member.take() == [(1, 1, 1)]

    async def test_a_delayed_record_holds_its_key(self, stage: Stage) -> None:
        member = await member_of(stage, delay_header=HEADER, order="key")
        await produce_timed(stage, [Timed(delay="1000", key=b"a"), Timed(key=b"a"), Timed(key=b"b")])
        assert await member.take() == [(2, 2, 1)]
        await member.acknowledge([(2, 2, ACCEPT)])
        assert await member.take() == []
        await stage.lab.advance(1_010)
        assert await member.take() == [(0, 0, 1)]
        await member.acknowledge([(0, 0, ACCEPT)])
        assert await member.take() == [(1, 1, 1)]

    async def test_a_record_limit_counts_delivered_records_only(self, stage: Stage) -> None:
        member = await member_of(stage, delay_header=HEADER, record_limit_force="true")
        await produce_timed(stage, [Timed(delay="1000")] * 5 + [Timed()] * 3)
        assert await member.take(max_records=2) == [(5, 6, 1)]
        assert await member.take(max_records=2) == [(7, 7, 1)]
