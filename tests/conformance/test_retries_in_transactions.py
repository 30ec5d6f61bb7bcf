"""Failures of records that are acknowledged in transactions: the back-off, the delays that members ask for,
and dead letters begin at the end of the transaction.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.runtime.clock import WallMs
from tests.conformance.acknowledging_in_transactions import acknowledge, initialised, start_topics
from tests.conformance.conftest import Stage
from tests.conformance.dead_lettering import offsets_of_letters, use_dead_letters
from tests.conformance.harness import WALL_START_MS, Client, LabClock, settle
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE, ShareMember, acknowledged
from tests.conformance.transacting import OK, Transacting, state

DELAY_MS = 1_000
PENDING = f"barnabas_share_pending_records{{group={GROUP},partition=0,topic=t}}"


class Holding:
    """A member that holds all records, another member, and a producer."""

    def __init__(self, stage: Stage, client: Client, member: ShareMember, producer: Transacting) -> None:
        self.stage = stage
        self.client = client
        self.member = member
        self.other = stage.member(2)
        self.producer = producer

    async def acknowledge(self, *types: int) -> None:
        """Acknowledge all records in the transaction: one type for all, or one for each."""
        assert await acknowledge(self.client, self.member, self.producer, 0, 3, *types) is OK

    async def taken(self) -> list[tuple[int, int, int]]:
        """The records that the other member gets now."""
        return await self.other.take(max_wait=0)


async def holding(stage: Stage, **configs: object) -> Holding:
    """Four records, and a back-off without jitter."""
    settings = {"retry_backoff_ms": DELAY_MS, "retry_backoff_jitter": 0, **configs}
    await stage.lab.configure_group(GROUP, **settings)
    await stage.produce(4)
    client = stage.lab.client()
    member = ShareMember(client, [stage.partition])
    assert await member.take() == [(0, 3, 1)]
    now = Holding(stage, client, member, await initialised(stage.lab.client()))
    assert await now.taken() == []
    return now


@pytest.mark.parametrize(("ack_type", "commit"), [(RELEASE, True), (RELEASE, False), (ACCEPT, False)])
async def test_the_delay_begins_with_the_end_of_the_transaction(
    stage: Stage, ack_type: int, commit: bool
) -> None:
    now = await holding(stage)
    await now.acknowledge(ack_type)
    await stage.lab.advance(2 * DELAY_MS)
    assert await now.taken() == []
    assert await now.producer.end(commit=commit) is OK
    await stage.lab.advance(DELAY_MS - 20)
    assert await now.taken() == []
    await stage.lab.advance(20 + 10)
    assert await now.taken() == [(0, 3, 2)]


async def test_a_clock_that_is_set_meanwhile_does_not_change_the_delay(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def an_hour_later(clock: LabClock) -> WallMs:
        return WallMs(WALL_START_MS + 3_600_000 + clock.now_ms)

    now = await holding(stage)
    await now.acknowledge(RELEASE)
    monkeypatch.setattr(LabClock, "wall_ms", an_hour_later)
    assert await now.producer.end() is OK
    await stage.lab.advance(DELAY_MS + 10)
    assert await now.taken() == [(0, 3, 2)]


async def test_a_delay_for_one_record_is_refused_in_a_transaction(stage: Stage) -> None:
    now = await holding(stage)
    topic_id, index = stage.partition
    partition = AckPartition(index, [AckBatch(0, 3, bytes([RELEASE]))], (ReleaseDelay(0, 3, 5_000),))
    transaction = AcknowledgingTransaction(now.producer.transactional_id, now.producer.producer)
    pending = start_topics(now.client, now.member, transaction, [AckTopic(topic_id, [partition])])
    answer = acknowledged(await now.client.answered(pending))
    assert answer.errors == [ErrorCode.invalid_request]
    await now.acknowledge(ACCEPT)
    assert await now.producer.end() is OK
    assert await stage.offsets() == (4, 0)


async def test_a_rejected_record_gets_its_dead_letter_at_the_commit(stage: Stage) -> None:
    await use_dead_letters(stage.lab, GROUP)
    now = await holding(stage)
    await now.acknowledge(REJECT, ACCEPT, REJECT, RELEASE)
    await settle()
    assert await offsets_of_letters(stage.lab) == []
    assert await now.producer.end() is OK
    for _ in range(5):
        await settle()
    assert sorted(await offsets_of_letters(stage.lab)) == [0, 2]
    await stage.lab.advance(DELAY_MS + 10)
    assert await now.taken() == [(3, 3, 2)]


async def test_a_rejected_record_is_delivered_again_after_an_abort(stage: Stage) -> None:
    await use_dead_letters(stage.lab, GROUP)
    now = await holding(stage)
    await now.acknowledge(REJECT)
    assert await now.producer.end(commit=False) is OK
    await stage.lab.advance(DELAY_MS + 10)
    assert await now.taken() == [(0, 3, 2)]
    assert await offsets_of_letters(stage.lab) == []


async def test_a_metric_counts_the_records_that_wait_for_transactions(stage: Stage) -> None:
    now = await holding(stage)
    await now.acknowledge(ACCEPT)
    assert stage.lab.broker.metrics.snapshot()[PENDING] == 4
    assert await now.producer.end() is OK
    assert await state(stage.lab) == "CompleteCommit"
    assert stage.lab.broker.metrics.snapshot()[PENDING] == 0
