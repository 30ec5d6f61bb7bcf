"""A request that is repeated after a lost connection gets its first answer again (decision 26)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.decode.share_fetch import REPEATS_TAG
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message_parts import tagged_fields
from barnabas.share.fetch import kept_answers
from barnabas.share.fetch.kept_answers import KEPT_AFTER_END_MS
from tests.conformance.acknowledging_in_transactions import acknowledge, initialised, start
from tests.conformance.conftest import Stage
from tests.conformance.harness import Client, Lab, Pending, open_lab, partitions_of, settle
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE, RENEW, ShareMember, acknowledged

NOT_FOUND = ErrorCode.share_session_not_found
WRONG_EPOCH = ErrorCode.invalid_share_session_epoch
NOT_HELD = ErrorCode.invalid_record_state


@pytest.fixture(autouse=True)
def repeating_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fetch announces that its client repeats requests: the tag takes the place of the empty list of
    tags at the end of the request.
    """
    send_body = Client.send_body

    def with_tag(self: Client, api: str, version: int, body: bytes) -> Pending:
        if api == "share_fetch":
            assert body.endswith(b"\0")
            body = body[:-1] + tagged_fields([(REPEATS_TAG, b"")])
        return send_body(self, api, version, body)

    monkeypatch.setattr(Client, "send_body", with_tag)


async def test_no_answer_is_kept_for_a_client_that_does_not_announce_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    await stage.produce(4)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 1, ACCEPT)])
    assert len(stage.lab.broker.kept_answers) == 0
    again = await over_another_connection(stage, member).acknowledge([(0, 1, ACCEPT)], epoch=1)
    assert again.error == WRONG_EPOCH


def over_another_connection(stage: Stage, member: ShareMember) -> ShareMember:
    """The same member over a new connection; the broker has not noticed the loss of the earlier one."""
    member.client = stage.lab.client()
    return member


async def lose_connection(stage: Stage, member: ShareMember) -> None:
    """The broker notices it, and ends the session."""
    member.client.disconnect()
    member.client = stage.lab.client()
    await settle()


class TestWhileTheSessionLives:
    async def test_a_fetch_gets_the_same_ranges_and_records_again(self, stage: Stage) -> None:
        await stage.produce(2, 3)
        member = stage.member()
        await member.fetch(max_records=1, add=[])  # opens the session, and acquires nothing
        first = await member.fetch(add=[stage.partition])
        repeated = await over_another_connection(stage, member).fetch(add=[stage.partition], epoch=1)
        assert repeated == first
        assert repeated.partitions[stage.partition].offsets == [0, 1, 2, 3, 4]
        await member.accept(0, 4)

    async def test_acknowledgements_in_a_fetch_have_one_effect(self, stage: Stage) -> None:
        await stage.produce(4)
        member = stage.member()
        await member.take()
        first = await member.fetch([(0, 1, RELEASE)])
        assert first.acquired == [(0, 1, 2)]
        repeated = await over_another_connection(stage, member).fetch([(0, 1, RELEASE)], epoch=1)
        assert repeated == first
        assert await stage.member(2).take() == [], "the released records are not released again"

    async def test_an_acknowledgement_gets_the_same_results_again(self, stage: Stage) -> None:
        await stage.produce(4)
        member = stage.member()
        await member.take()
        first = await member.acknowledge([(0, 1, ACCEPT)])
        again = await over_another_connection(stage, member).acknowledge([(0, 1, ACCEPT)], epoch=1)
        assert (again, again.errors) == (first, [0])
        refused = await member.acknowledge([(0, 0, RELEASE), (2, 9, ACCEPT)])
        assert refused.errors != [0]
        assert (
            await over_another_connection(stage, member).acknowledge(
                [(0, 0, RELEASE), (2, 9, ACCEPT)], epoch=2
            )
            == refused
        )

    async def test_a_renewal_is_not_renewed_a_second_time(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        await stage.lab.advance(20_000)
        await member.acknowledge([(0, 0, RENEW)], renew=True)
        await stage.lab.advance(20_000)
        again = await over_another_connection(stage, member).acknowledge([(0, 0, RENEW)], renew=True, epoch=1)
        assert again.errors == [0]
        await stage.lab.advance(10_000)
        assert await stage.member(2).take() == [(0, 0, 2)]

    async def test_the_next_epoch_is_as_before_and_the_session_is_of_the_new_connection(
        self, stage: Stage
    ) -> None:
        await stage.produce(2)
        member = stage.member()
        await member.take()
        earlier = member.client
        await member.acknowledge([(0, 0, ACCEPT)])
        await over_another_connection(stage, member).acknowledge([(0, 0, ACCEPT)], epoch=1)
        earlier.disconnect()
        await settle()
        assert (await member.acknowledge([(1, 1, ACCEPT)], epoch=2)).errors == [0]
        member.client.disconnect()
        await settle()
        assert len(stage.lab.broker.share_sessions) == 0

    async def test_a_fetch_that_acquired_nothing_fetches(self, stage: Stage) -> None:
        member = stage.member()
        await member.fetch()
        assert (await member.fetch()).acquired == []
        await stage.produce(1)
        over_another_connection(stage, member)
        assert (await member.fetch(epoch=1)).acquired == [(0, 0, 1)]
        assert (await over_another_connection(stage, member).fetch(epoch=1)).acquired == [(0, 0, 1)]

    async def test_records_that_are_not_held_any_more_are_left_out(self, stage: Stage) -> None:
        await stage.produce(1, 1, 1)
        member = stage.member()
        await member.fetch(add=[])
        await member.fetch(add=[stage.partition], max_records=3)
        await member.acknowledge([(1, 1, ACCEPT)])
        again = await over_another_connection(stage, member).fetch(
            add=[stage.partition], max_records=3, epoch=1
        )
        assert again.acquired == [(0, 0, 1), (2, 2, 1)]
        assert set(again.partitions[stage.partition].offsets) >= {0, 2}

    async def test_records_whose_locks_have_ended_are_fetched_anew(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.fetch(add=[])
        await member.fetch(add=[stage.partition])
        await stage.lab.advance(30_000)
        again = await over_another_connection(stage, member).fetch(add=[stage.partition], epoch=1)
        assert again.acquired == [(0, 0, 2)]

    async def test_with_an_order_of_keys_a_reduced_batch_is_reduced_again(self, stage: Stage) -> None:
        await stage.lab.configure_group(GROUP, order="key")
        await stage.produce(8)
        member = stage.member()
        await member.fetch(add=[])
        first = await member.fetch(add=[stage.partition], max_records=2)
        again = await over_another_connection(stage, member).fetch(
            add=[stage.partition], max_records=2, epoch=1
        )
        assert again == first
        assert again.acquired == [(0, 1, 1)]

    async def test_the_last_two_answers_are_kept(self, stage: Stage) -> None:
        await stage.produce(3)
        member = stage.member()
        await member.take()
        for offset in (0, 1, 2):
            await member.accept(offset, offset)
        over_another_connection(stage, member)
        for offset, error in ((0, WRONG_EPOCH), (1, ErrorCode.none), (2, ErrorCode.none)):
            assert (await member.acknowledge([(offset, offset, ACCEPT)], epoch=offset + 1)).error == error

    @pytest.mark.parametrize(
        ("acks", "values"),
        [
            ([(0, 0, REJECT)], {}),
            ([(0, 1, ACCEPT)], {}),
            ((), {}),
            ([(0, 0, ACCEPT)], {"forget": True}),
        ],
    )
    async def test_another_request_of_a_used_epoch_is_refused(
        self, stage: Stage, acks: Any, values: dict[str, Any]
    ) -> None:
        await stage.produce(2)
        member = stage.member()
        await member.take()
        await member.fetch([(0, 0, ACCEPT)])
        if values:
            values = {"forget": [stage.partition]}
        got = await over_another_connection(stage, member).fetch(acks, epoch=1, **values)
        assert (got.error, got.partitions) == (WRONG_EPOCH, {})

    async def test_a_fetch_is_no_repetition_of_an_acknowledgement(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        await member.acknowledge([(0, 0, ACCEPT)])
        assert (await member.fetch([(0, 0, ACCEPT)], epoch=1)).error == WRONG_EPOCH

    async def test_the_answer_of_an_earlier_session_does_not_count(self, stage: Stage) -> None:
        await stage.produce(2)
        member = stage.member()
        await member.take()
        await member.accept(0, 0)
        await member.fetch(epoch=0)
        assert (await member.acknowledge([(1, 1, RELEASE)])).errors == [0]
        assert (await member.acknowledge([(0, 0, ACCEPT)], epoch=1)).error == WRONG_EPOCH


class TestAfterTheSessionHasEnded:
    @pytest.mark.parametrize("by_fetch", [True, False])
    async def test_the_results_are_given_again_and_the_locks_have_ended(
        self, stage: Stage, by_fetch: bool
    ) -> None:
        await stage.produce(3)
        member = stage.member()
        await member.take()
        acks = [(0, 0, ACCEPT)]
        if by_fetch:
            await member.fetch(acks)
        else:
            await member.acknowledge(acks)
        await lose_connection(stage, member)
        if by_fetch:
            again = await member.fetch(acks, epoch=1)
            assert (again.error, again.acknowledge_errors, again.acquired) == (ErrorCode.none, [0], [])
        else:
            assert (await member.acknowledge(acks, epoch=1)).errors == [0]
        assert len(stage.lab.broker.share_sessions) == 0, "the repetition opens no session"
        assert await stage.member(2).take() == [(1, 2, 2)]
        assert await stage.offsets() == (1, 2)

    async def test_the_last_request_of_a_session_may_be_repeated(self, stage: Stage) -> None:
        await stage.produce(2)
        member = stage.member()
        await member.take()
        await member.acknowledge([(0, 0, ACCEPT)], epoch=-1)
        assert (await member.acknowledge([(0, 0, ACCEPT)], epoch=-1)).errors == [0]
        assert (await member.acknowledge([(1, 1, ACCEPT)], epoch=-1)).error == NOT_FOUND

    async def test_a_request_that_never_arrived_is_refused(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        await lose_connection(stage, member)
        assert (await member.acknowledge([(0, 0, ACCEPT)], epoch=1)).error == NOT_FOUND
        assert await stage.member(2).take() == [(0, 0, 2)]

    async def test_a_fetch_without_acknowledgements_is_refused(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.fetch(add=[])
        await member.fetch(add=[stage.partition])
        await lose_connection(stage, member)
        assert (await member.fetch(add=[stage.partition], epoch=1)).error == NOT_FOUND

    async def test_a_new_session_ends_it(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        await member.acknowledge([(0, 0, ACCEPT)])
        await lose_connection(stage, member)
        await member.fetch(epoch=0)
        assert (await member.acknowledge([(0, 0, ACCEPT)], epoch=1)).errors == [0], "the epoch is its turn"
        assert (await member.acknowledge([(0, 0, ACCEPT)], epoch=9)).error == WRONG_EPOCH

    async def test_an_answer_is_kept_for_a_minute(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        await member.acknowledge([(0, 0, ACCEPT)])
        await lose_connection(stage, member)
        await stage.lab.advance(KEPT_AFTER_END_MS - 1)
        assert (await member.acknowledge([(0, 0, ACCEPT)], epoch=1)).errors == [0]
        await stage.lab.advance(1)
        assert (await member.acknowledge([(0, 0, ACCEPT)], epoch=1)).error == NOT_FOUND

    async def test_a_restarted_broker_knows_no_answers(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        await member.acknowledge([(0, 0, ACCEPT)])
        await stage.lab.crash()
        member.client = stage.lab.client()
        assert (await member.acknowledge([(0, 0, ACCEPT)], epoch=1)).error == NOT_FOUND

    async def test_the_connection_may_be_lost_while_the_fetch_waits(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        waiting = member.start_fetch([(0, 0, ACCEPT)], max_wait=60_000)
        await settle()
        assert not waiting.done
        await lose_connection(stage, member)
        again = await member.fetch([(0, 0, ACCEPT)], max_wait=60_000, epoch=1)
        assert (again.acknowledge_errors, again.acquired) == ([0], [])


class TestWithSlowWrites:
    @pytest.mark.parametrize("is_lost", [True, False])
    async def test_a_repetition_waits_for_the_result_of_the_first_request(self, is_lost: bool) -> None:
        async with open_lab(log__flush="always") as lab:
            partition = await _partition(lab)
            await lab.produce(partition.topic_id, 1)
            member = ShareMember(lab.client(), [partition])
            await member.join("t")
            await member.fetch()
            await settle()
            ((offset, _, _),) = await member.take()
            acks = [(offset, offset, ACCEPT)]
            first = member.start_acknowledge(acks)
            assert not first.done
            if is_lost:
                member.client.disconnect()
            member.client = lab.client()
            again = member.start_acknowledge(acks, epoch=2)
            assert not again.done
            await settle()
            assert first.response().responses == again.response().responses
            assert (await lab.offsets(GROUP, partition))[1] == 0


async def test_the_answer_to_a_request_with_too_many_bytes_is_not_kept(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_answers, "KEPT_BYTES_MAX", 60)
    await stage.produce(4)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 0, ACCEPT), (1, 1, RELEASE)])
    assert (await member.acknowledge([(0, 0, ACCEPT), (1, 1, RELEASE)], epoch=1)).error == WRONG_EPOCH
    await member.acknowledge([(2, 2, ACCEPT)])
    assert (await member.acknowledge([(2, 2, ACCEPT)], epoch=2)).errors == [0]


async def _partition(lab: Lab) -> Any:
    topic_id = await lab.create_topic("t")
    await lab.configure_group(GROUP, auto_offset_reset="earliest")
    return next(iter(partitions_of(topic_id, 1)))


async def test_an_acknowledgement_in_a_transaction_is_repeated_only_in_the_same_one(stage: Stage) -> None:
    await stage.produce(4)
    member, client = stage.member(), stage.lab.client()
    member.client = client
    await member.take()
    producer = await initialised(stage.lab.client())
    assert await acknowledge(client, member, producer, 0, 1, ACCEPT) is ErrorCode.none
    await lose_connection(stage, member)
    client = stage.lab.client()
    member.epoch -= 1
    assert await acknowledge(client, member, producer, 0, 1, ACCEPT) is ErrorCode.none
    member.epoch -= 1
    producer.producer = producer.producer._replace(producer_epoch=9)
    refused = acknowledged(await client.answered(start(client, member, producer, 0, 1, ACCEPT)))
    assert refused.error == NOT_FOUND
