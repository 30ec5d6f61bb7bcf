"""Acknowledgements that join a producer's transaction (an extension), request by request, with both stores of
share state: the table of decision 30.
"""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.settings import MARKER_RETRY_MS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity, SharePartitionKey, TopicIdPartition
from barnabas.protocol.record_inspection import DescribedState, RecordAction, Wait
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.acknowledging_in_transactions import acknowledge, initialised
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.dead_lettering import offsets_of_letters, use_dead_letters
from tests.conformance.harness import Client, Lab, settle
from tests.conformance.records_of_a_group import alter, describe
from tests.conformance.share_member import ACCEPT, GAP, GROUP, REJECT, RELEASE, RENEW, ShareMember
from tests.conformance.transacting import OK, TIMEOUT_MS, Transacting, ends, state

CHECK_MS = 10_000
LOCK_MS = 30_000


class Taken:
    """A member that has just got four records, and a producer with or without a transaction."""

    def __init__(self, stage: Stage, client: Client, member: ShareMember, producer: Transacting) -> None:
        self.stage = stage
        self.client = client
        self.member = member
        self.producer = producer

    async def acknowledge(self, first: int, last: int, *types: int) -> ErrorCode:
        return await acknowledge(self.client, self.member, self.producer, first, last, *types)

    async def taken_again(self, number: int = 2) -> list[tuple[int, int, int]]:
        """The records that another member gets now."""
        member = self.stage.member(number)
        await member.take(max_wait=0)
        await settle()
        return await member.take(max_wait=0)


async def taken(stage: Stage, *, version: int = 2) -> Taken:
    await stage.produce(4)
    client = stage.lab.client()
    member = ShareMember(client, [stage.partition])
    assert await member.take() == [(0, 3, 1)]
    return Taken(stage, client, member, await initialised(stage.lab.client(), version=version))


async def delivered(stage: Stage, number: int = 2) -> list[tuple[int, int, int]]:
    """The records that a new member gets."""
    return await stage.member(number).take(max_wait=0)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("ack_type", [ACCEPT, REJECT, GAP])
async def test_an_acknowledgement_counts_at_the_commit(stage: Stage, version: int, ack_type: int) -> None:
    now = await taken(stage, version=version)
    assert await now.acknowledge(0, 3, ack_type) is OK
    assert await stage.offsets() == (0, 4)
    assert await now.producer.end() is OK
    assert await stage.offsets() == (4, 0)
    assert await state(stage.lab) == "CompleteCommit"


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("ack_type", [ACCEPT, REJECT, RELEASE, GAP])
async def test_an_abort_releases_the_records(stage: Stage, version: int, ack_type: int) -> None:
    now = await taken(stage, version=version)
    assert await now.acknowledge(1, 2, ack_type) is OK
    assert await now.producer.end(commit=False) is OK
    assert await delivered(stage) == [(1, 2, 2)]


async def test_a_release_counts_at_the_commit(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(1, 2, RELEASE) is OK
    assert await delivered(stage, 2) == []
    assert await now.producer.end() is OK
    assert await delivered(stage, 3) == [(1, 2, 2)]


async def test_a_record_has_one_acknowledgement_until_the_transaction_ends(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 1, ACCEPT) is OK
    assert await now.acknowledge(1, 2, ACCEPT) is ErrorCode.invalid_record_state
    refused = await now.member.acknowledge([(0, 0, RELEASE)])
    assert refused.errors == [ErrorCode.invalid_record_state]
    await now.member.accept(2, 3)
    assert await now.producer.end() is OK
    assert await stage.offsets() == (4, 0)


async def test_a_lock_is_not_renewed_in_a_transaction(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 0, RENEW) is ErrorCode.invalid_request


async def test_a_pending_acknowledgement_survives_its_lock_and_its_session(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 1, ACCEPT) is OK
    await stage.lab.advance(LOCK_MS + 1)
    now.client.disconnect()
    await settle()
    assert await delivered(stage) == [(2, 3, 2)]
    assert await now.producer.end() is OK
    assert (await stage.offsets())[0] == 2


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("restart", ["restart", "crash"])
async def test_a_pending_acknowledgement_survives_the_broker(
    stage: Stage, restart: str, commit: bool
) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 1, ACCEPT) is OK
    await getattr(stage.lab, restart)()
    assert await delivered(stage) == [(2, 3, 1)]
    producer = Transacting(stage.lab.client())
    producer.producer = now.producer.producer
    assert await producer.end(commit=commit) is OK
    assert await delivered(stage, 3) == ([] if commit else [(0, 1, 2)])


async def test_a_timed_out_transaction_releases_the_records(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 3, ACCEPT) is OK
    await stage.lab.advance(TIMEOUT_MS + CHECK_MS)
    await settle()
    assert await state(stage.lab) == "CompleteAbort"
    assert await delivered(stage) == [(0, 3, 2)]


async def test_a_new_producer_of_the_id_undoes_the_acknowledgements_of_the_old_one(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 1, ACCEPT) is OK
    newer = Transacting(stage.lab.client())
    assert await newer.init() is ErrorCode.concurrent_transactions
    await settle()
    assert await newer.init() is OK
    assert await delivered(stage) == [(0, 1, 2)]
    assert await now.acknowledge(2, 2, ACCEPT) is ErrorCode.invalid_producer_epoch


async def test_a_producer_without_the_id_is_refused(stage: Stage) -> None:
    now = await taken(stage)
    right = now.producer.producer
    now.producer.producer = ProducerIdentity(right.producer_id + 1, right.producer_epoch)
    assert await now.acknowledge(0, 0, ACCEPT) is ErrorCode.invalid_producer_id_mapping
    now.producer.producer = right
    assert await now.acknowledge(0, 0, ACCEPT) is OK


async def test_the_delivery_limit_and_dead_letters_hold_at_the_end(stage: Stage) -> None:
    await use_dead_letters(stage.lab, GROUP)
    await stage.lab.configure_group(GROUP, delivery_count_limit="2")
    now = await taken(stage)
    assert await now.acknowledge(0, 0, REJECT) is OK
    assert await now.producer.end() is OK
    assert await now.acknowledge(1, 3, ACCEPT) is OK
    assert await now.producer.end(commit=False) is OK
    assert await now.member.take() == [(1, 3, 2)]
    assert await now.acknowledge(1, 3, ACCEPT) is OK
    assert await now.producer.end(commit=False) is OK
    for _ in range(5):
        await settle()
    assert sorted(await offsets_of_letters(stage.lab)) == [0, 1, 2, 3]


async def test_the_last_stable_offset_of_the_data_does_not_wait(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 3, ACCEPT) is OK
    stable_offset, high_watermark = await ends(stage.lab)
    assert stable_offset == high_watermark


async def test_deleted_records_need_no_end(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 3, ACCEPT) is OK
    await stage.lab.delete_records("t", 2)
    assert await now.producer.end(commit=False) is OK
    assert await delivered(stage) == [(2, 3, 2)]


async def test_a_deleted_topic_needs_no_end(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 3, ACCEPT) is OK
    await stage.lab.delete_topic("t")
    assert await now.producer.end() is OK
    assert await state(stage.lab) == "CompleteCommit"


async def test_administrators_wait_for_the_end_of_the_transaction(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 3, ACCEPT) is OK
    await now.member.heartbeat(-1)
    assert await administer(stage) == [ErrorCode.concurrent_transactions] * 3
    assert await now.producer.end() is OK
    assert await administer(stage) == [OK, OK, OK]


async def administer(stage: Stage) -> list[ErrorCode]:
    """The results of actions on the group: set its offsets, delete its offsets, delete it."""
    topic = {"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}
    altered = await stage.lab.admin.ask("alter_share_group_offsets", group_id=GROUP, topics=[topic])
    deleted = await stage.lab.admin.ask(
        "delete_share_group_offsets", group_id=GROUP, topics=[{"topic_name": "t"}]
    )
    gone = await stage.lab.admin.ask("delete_groups", groups_names=[GROUP])
    await settle()
    return [altered.error_code, deleted.error_code, gone.results[0].error_code]


async def test_an_end_is_recorded_once_the_log_can_be_written_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    reopen_at_once(monkeypatch)
    await lab.restart()
    stage = await make_stage(lab)
    now = await taken(stage)
    assert await now.acknowledge(0, 3, ACCEPT) is OK
    with stage.lab.broken_disk(stage.lab.state_directory(GROUP, stage.partition)):
        assert await now.producer.end() is OK
        assert await state(stage.lab) == "PrepareCommit"
    for _ in range(3):
        await stage.lab.advance(MARKER_RETRY_MS)
    assert await state(stage.lab) == "CompleteCommit"
    assert await stage.offsets() == (4, 0)


async def test_an_administrator_sees_pending_records_and_cannot_change_them(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(1, 2, ACCEPT) is OK
    page = await describe(stage.lab, stage.partition)
    assert (1, 2, DescribedState.ACQUIRED, 1) in page.ranges
    assert page.waits == {1: Wait.TRANSACTION}
    assert 1 not in page.holders
    for action in RecordAction:
        refused = await alter(stage.lab, stage.partition, action, 1, 2)
        assert refused.error_code is ErrorCode.invalid_record_state
        assert "in a transaction" in refused.error_message
    assert await now.producer.end() is OK
    assert await now.member.acknowledge([(0, 0, ACCEPT), (3, 3, ACCEPT)])
    assert await stage.offsets() == (4, 0)


async def test_acknowledgements_of_a_transaction_that_is_lost_are_undone(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 3, ACCEPT) is OK
    left = stage.lab.filesystem.copy()
    for path in left.files:
        if "/__transaction_state-" in path and path.endswith(".log"):
            left.files[path].clear()
    await stage.lab.broker.close()
    stage.lab.filesystem = left
    await stage.lab.start()
    member = stage.member()
    found = await member.take(max_wait=0)
    await settle()
    assert found + await member.take(max_wait=0) == [(0, 3, 2)]


async def test_acknowledgements_of_open_transactions_are_left_alone_by_a_new_leader(stage: Stage) -> None:
    now = await taken(stage)
    assert await now.acknowledge(0, 3, ACCEPT) is OK
    stage.lab.broker.share_partitions.forget(SharePartitionKey(GROUP, *stage.partition))
    assert await delivered(stage) == []
    assert await now.producer.end() is OK
    assert await stage.offsets() == (4, 0)


async def test_a_partition_that_was_not_fetched_from_begins_no_transaction(stage: Stage) -> None:
    client = stage.lab.client()
    member = ShareMember(client, [stage.partition])
    await member.take()
    member.partitions = [TopicIdPartition(stage.partition.topic_id, 7)]
    producer = await initialised(stage.lab.client())
    answer = await acknowledge(client, member, producer, 0, 0, ACCEPT)
    assert answer is ErrorCode.unknown_topic_or_partition
    assert await state(stage.lab) == "Empty"
