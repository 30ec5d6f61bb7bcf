"""Transactions over the protocol: producers, consumers of committed records, groups' offsets, restarts in
each state, and logs that go offline.

The rules themselves are tested beside the coordinator; these tests cover the path between the rules and a
client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from barnabas.coordinator.transaction.settings import MARKER_RETRY_MS
from barnabas.protocol.errors import ErrorCode
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.transacting import (
    GROUP,
    ID,
    OK,
    TIMEOUT_MS,
    TOPIC,
    Transacting,
    begun,
    committed,
    ends,
    state,
)


@pytest.fixture(params=["interval", "always"])
async def lab(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    """A broker with one topic of two partitions."""
    reopen_at_once(monkeypatch)
    async with open_lab(log__flush=request.param) as lab:
        await lab.create_topic(TOPIC, 2)
        yield lab


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
async def test_records_are_stable_once_their_transaction_has_ended(
    lab: Lab, version: int, commit: bool
) -> None:
    producer = await begun(lab, version=version)
    assert await producer.write(1) is OK
    assert (await ends(lab, 0), await ends(lab, 1)) == ((0, 2), (0, 2))
    assert await producer.end(commit=commit) is OK
    assert (await ends(lab, 0), await ends(lab, 1)) == ((3, 3), (3, 3))
    assert await state(lab) == ("CompleteCommit" if commit else "CompleteAbort")
    assert await producer.write() is OK


@pytest.mark.parametrize("version", [0, 2])
async def test_offsets_count_once_their_transaction_is_committed(lab: Lab, version: int) -> None:
    producer = await begun(lab, version=version)
    assert await producer.commit_offset(7) is OK
    assert await committed(lab) == -1
    assert await committed(lab, require_stable=True) is ErrorCode.unstable_offset_commit
    assert await producer.end(commit=False) is OK
    assert await committed(lab, require_stable=True) == -1
    assert await producer.commit_offset(8) is OK
    assert await producer.end() is OK
    assert await committed(lab, require_stable=True) == 8


async def test_a_new_producer_fences_the_old_one(lab: Lab) -> None:
    old = await begun(lab)
    new = Transacting(lab.client())
    assert await new.init() is ErrorCode.concurrent_transactions
    await settle()
    assert await ends(lab) == (3, 3)
    assert await new.init() is OK
    assert await old.write() is ErrorCode.invalid_producer_epoch
    assert await old.commit_offset(3) is ErrorCode.invalid_producer_epoch
    assert await old.end() is ErrorCode.producer_fenced
    assert await new.write() is OK


async def test_a_partition_that_was_not_added_refuses_records_of_older_clients(lab: Lab) -> None:
    producer = Transacting(lab.client(), version=0)
    await producer.init()
    assert await producer.produce() is ErrorCode.transaction_abortable
    assert await ends(lab) == (0, 0)


async def test_a_transaction_that_takes_too_long_is_aborted(lab: Lab) -> None:
    producer = await begun(lab)
    await producer.commit_offset(4)
    await lab.advance(TIMEOUT_MS + 20_000)
    assert await state(lab) == "CompleteAbort"
    assert await ends(lab) == (3, 3)
    assert await committed(lab, require_stable=True) == -1
    assert await producer.write() is ErrorCode.invalid_producer_epoch


@pytest.mark.parametrize("how", ["restart", "crash"])
@pytest.mark.parametrize("version", [0, 2])
class TestAfterTheBrokerCameBack:
    async def test_an_open_transaction_goes_on(self, lab: Lab, how: str, version: int) -> None:
        producer = await begun(lab, version=version)
        await producer.commit_offset(5)
        await getattr(lab, how)()
        producer.client = lab.client()
        assert await ends(lab) == (0, 2)
        assert await committed(lab, require_stable=True) is ErrorCode.unstable_offset_commit
        assert await producer.write() is OK
        assert await producer.end() is OK
        assert await ends(lab) == (5, 5)
        assert await committed(lab, require_stable=True) == 5

    @pytest.mark.parametrize("commit", [True, False])
    async def test_a_decision_is_carried_out(self, lab: Lab, how: str, version: int, commit: bool) -> None:
        """One partition's log goes offline when the end is decided, so its marker waits."""
        producer = await begun(lab, version=version)
        await producer.write(1)
        await producer.commit_offset(6)
        with lab.broken_disk(f"{TOPIC}-1"):
            await producer.end(commit=commit)
            assert await state(lab) == ("PrepareCommit" if commit else "PrepareAbort")
            assert await ends(lab, 0) == (3, 3)
            lab.filesystem.write_error = None
            await getattr(lab, how)()
        await settle()
        await lab.advance(MARKER_RETRY_MS)
        assert await state(lab) == ("CompleteCommit" if commit else "CompleteAbort")
        stable, end = await ends(lab, 1)
        assert stable == end == 3
        assert await committed(lab, require_stable=True) == (6 if commit else -1)


class TestALogThatGoesOffline:
    async def test_of_a_partition_holds_up_the_end_until_it_is_back(self, lab: Lab) -> None:
        producer = await begun(lab)
        await producer.write(1)
        with lab.broken_disk(f"{TOPIC}-1"):
            assert await producer.end() is OK
            assert await state(lab) == "PrepareCommit"
            assert await producer.write() is ErrorCode.concurrent_transactions
        await lab.advance(2 * MARKER_RETRY_MS)
        assert await state(lab) == "CompleteCommit"
        assert await ends(lab, 1) == (3, 3)
        assert await producer.write() is OK

    async def test_of_the_groups_holds_up_the_end_until_it_is_back(self, lab: Lab) -> None:
        producer = await begun(lab)
        await producer.commit_offset(9)
        with lab.broken_disk(f"__consumer_offsets-{lab.broker.groups.partition_of(GROUP)}"):
            assert await producer.end() is OK
            assert await state(lab) == "PrepareCommit"
        await lab.advance(2 * MARKER_RETRY_MS)
        assert await state(lab) == "CompleteCommit"
        assert await committed(lab, require_stable=True) == 9

    async def test_of_the_transactions_is_loaded_again(self, lab: Lab) -> None:
        producer = await begun(lab)
        partition = lab.broker.transactions.coordinator.partition_of(ID)
        with lab.broken_disk(f"__transaction_state-{partition}"):
            assert await producer.end() is ErrorCode.coordinator_not_available
        await settle()
        assert await ends(lab) == (0, 2)
        code = await producer.end()
        if code is not OK:
            assert code in (ErrorCode.coordinator_load_in_progress, ErrorCode.coordinator_not_available)
            await lab.advance(2_000)
            assert await producer.end() is OK
        assert await ends(lab) == (3, 3)


async def test_a_deleted_topic_does_not_hold_up_the_end(lab: Lab) -> None:
    producer = await begun(lab)
    await lab.delete_topic(TOPIC)
    assert await producer.end() is OK
    assert await state(lab) == "CompleteCommit"


async def test_a_topic_created_again_has_no_part_of_the_transaction(lab: Lab) -> None:
    producer = await begun(lab)
    await lab.delete_topic(TOPIC)
    topic_id = await lab.create_topic(TOPIC)
    assert isinstance(topic_id, UUID)
    assert await ends(lab) == (0, 0)
    assert await producer.end() is OK
    stable, end = await ends(lab)
    assert stable == end


async def test_no_epoch_is_used_twice_after_a_loss_of_power() -> None:
    """The records of a transaction were durable, and the epoch of their producer was not."""
    async with open_lab(log__flush="interval") as lab:
        await lab.create_topic(TOPIC, flush__messages="1")
        producer = Transacting(lab.client())
        assert await producer.init() is OK
        await lab.restart()
        producer = await begun(lab)
        assert producer.producer.producer_epoch == 1
        await lab.lose_power()
        again = await begun(lab)
        assert again.producer.producer_id != producer.producer.producer_id
        assert await ends(lab) == (0, 4)
        assert await again.end() is OK
        await settle()
        assert await ends(lab) == (0, 5), "the lost transaction hangs"
