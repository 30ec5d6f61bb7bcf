"""ShareAcknowledge's handler: when the response comes. The rules are in tests/conformance."""

from __future__ import annotations

from tests.conformance.conftest import make_stage
from tests.conformance.harness import open_lab, settle
from tests.conformance.share_member import ACCEPT, acknowledged


async def test_acknowledgements_written_immediately_are_answered_immediately() -> None:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await stage.produce(2)
        member = stage.member()
        await member.take()
        pending = member.start_acknowledge([(0, 1, ACCEPT)])
        assert pending.done
        assert acknowledged(pending.response()).errors == [0]


async def test_the_final_request_releases_records_with_its_response() -> None:
    async with open_lab(log__flush="always") as lab:
        stage = await make_stage(lab)
        await stage.produce(2)
        member = stage.member()
        assert await member.take(max_wait=1000) == [(0, 1, 1)]
        with lab.stalled_disk():
            pending = member.start_acknowledge([(0, 0, ACCEPT)], epoch=-1)
            await settle()
            assert not pending.done
            assert len(lab.broker.share_sessions) == 1
        assert acknowledged(await lab.answered(pending)).errors == [0]
        assert len(lab.broker.share_sessions) == 0
        assert await stage.member(2).take(max_wait=1000) == [(1, 1, 2)]


async def test_a_final_request_of_a_disconnected_client_ends_the_session() -> None:
    async with open_lab(log__flush="always") as lab:
        stage = await make_stage(lab)
        await stage.produce(2)
        member = stage.member()
        await member.take(max_wait=1000)
        member.client, opener = lab.client(), member.client
        with lab.stalled_disk():
            member.start_acknowledge([(0, 0, ACCEPT)], epoch=-1)
            member.client.disconnect()
            await settle()
        await settle()
        assert len(lab.broker.share_sessions) == 0
        opener.disconnect()


async def test_a_partition_without_batches_has_no_result() -> None:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        member = stage.member()
        await member.fetch()
        got = await member.acknowledge({stage.partition: []})
        assert (got.error, got.lock_ms, got.partitions) == (0, 30_000, {})
