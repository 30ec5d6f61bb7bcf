"""Transactions over the protocol: producers, consumers of committed records, groups' offsets, restarts in
each state, and logs that go offline.

The rules themselves are tested beside the coordinator; here is what stands between them and a client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from barnabas.coordinator.group.partition_hash import partition_of_group
from barnabas.coordinator.transaction.settings import MARKER_RETRY_MS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.harness import Client, Lab, batch, open_lab, settle

OK = ErrorCode.none
ID, GROUP, TOPIC = "payments", "billing", "t"
TIMEOUT_MS = 60_000


@pytest.fixture(params=["interval", "always"])
async def lab(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    """A broker with one topic of two partitions."""
    reopen_at_once(monkeypatch)
    async with open_lab(log__flush=request.param) as lab:
        await lab.create_topic(TOPIC, 2)
        yield lab


class Transacting:
    """A producer with a transactional id, as a client of one transaction.version speaks."""

    def __init__(self, client: Client, *, version: int = 2, transactional_id: str = ID) -> None:
        self.client = client
        self.version = version
        self.transactional_id = transactional_id
        self.producer = ProducerIdentity(-1, -1)
        self._sequences: dict[int, int] = {}

    @property
    def fields(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer.producer_id,
            "producer_epoch": self.producer.producer_epoch,
        }

    async def init(self) -> ErrorCode:
        answer = await self.client.ask(
            "init_producer_id",
            transactional_id=self.transactional_id,
            transaction_timeout=TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        if answer.error_code is OK:
            self._is_now(answer)
        code: ErrorCode = answer.error_code
        return code

    async def write(self, partition: int = 0, records: int = 2) -> ErrorCode:
        """Produce one batch."""
        if self.version < 2:
            topics = [{"name": TOPIC, "partitions": [partition]}]
            names = {f"v3_and_below_{name}": value for name, value in self.fields.items()}
            added = await self.client.ask("add_partitions_to_txn", 3, **names, v3_and_below_topics=topics)
            code = added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            if code is not OK:
                return ErrorCode(code)
        return await self.produce(partition, records)

    async def produce(self, partition: int = 0, records: int = 2) -> ErrorCode:
        """The same without adding the partition first."""
        sequence = self._sequences.get(partition, 0)
        data = batch(
            records,
            self.client.lab.clock.wall_ms(),
            attributes=TRANSACTIONAL_FLAG,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            base_sequence=sequence,
        )
        topic = {"name": TOPIC, "partition_data": [{"index": partition, "records": data}]}
        answer = await self.client.ask(
            "produce",
            12 if self.version >= 2 else 11,
            transactional_id=self.transactional_id,
            acks=-1,
            topic_data=[topic],
        )
        code: ErrorCode = answer.responses[0].partition_responses[0].error_code
        if code is OK:
            self._sequences[partition] = sequence + records
        return code

    async def commit_offset(self, offset: int, group: str = GROUP) -> ErrorCode:
        if self.version < 2:
            added = await self.client.ask("add_offsets_to_txn", 3, **self.fields, group_id=group)
            if added.error_code is not OK:
                return ErrorCode(added.error_code)
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        answer = await self.client.ask(
            "txn_offset_commit",
            5 if self.version >= 2 else 4,
            **self.fields,
            group_id=group,
            topics=[{"name": TOPIC, "partitions": [partition]}],
        )
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def start_end(self, *, commit: bool = True) -> Any:
        return self.client.send("end_txn", 5 if self.version >= 2 else 4, **self.fields, committed=commit)

    async def end(self, *, commit: bool = True) -> ErrorCode:
        answer = await self.client.answered(self.start_end(commit=commit))
        if answer.error_code is OK and self.version >= 2:
            self._is_now(answer)
        code: ErrorCode = answer.error_code
        return code

    def _is_now(self, answer: Any) -> None:
        self.producer = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        self._sequences.clear()


async def begun(lab: Lab, *, version: int = 2) -> Transacting:
    """A producer with two records in an open transaction."""
    producer = Transacting(lab.client(), version=version)
    assert await producer.init() is OK
    assert await producer.write() is OK
    return producer


async def ends(lab: Lab, partition: int = 0) -> tuple[int, int]:
    """(last stable offset, high watermark)."""
    found: list[int] = []
    for isolation_level in (1, 0):
        asked = {"partition_index": partition, "timestamp": -1, "current_leader_epoch": -1}
        answer = await lab.admin.ask(
            "list_offsets",
            isolation_level=isolation_level,
            topics=[{"name": TOPIC, "partitions": [asked]}],
        )
        found.append(answer.topics[0].partitions[0].offset)
    return found[0], found[1]


async def committed(lab: Lab, *, require_stable: bool = False) -> int | ErrorCode:
    """What the group has committed: the offset, or the error that is told in place of it."""
    asked = {"group_id": GROUP, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
    answer = await lab.admin.ask("offset_fetch", 9, groups=[asked], require_stable=require_stable)
    (partition,) = answer.groups[0].topics[0].partitions
    return int(partition.committed_offset) if partition.error_code is OK else ErrorCode(partition.error_code)


async def state(lab: Lab) -> str:
    """The transactional id's state."""
    answer = await lab.admin.ask("list_transactions", state_filters=[], producer_id_filters=[])
    (only,) = answer.transaction_states
    return str(only.transaction_state)


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


async def test_a_partition_that_was_not_added_takes_nothing_from_older_clients(lab: Lab) -> None:
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
        """The log of one partition is gone offline when the end is decided, so that its marker waits."""
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
        with lab.broken_disk(f"__consumer_offsets-{partition_of_group(GROUP)}"):
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


async def test_a_topic_that_was_made_again_has_nothing_of_the_transaction(lab: Lab) -> None:
    producer = await begun(lab)
    await lab.delete_topic(TOPIC)
    topic_id = await lab.create_topic(TOPIC)
    assert isinstance(topic_id, UUID)
    assert await ends(lab) == (0, 0)
    assert await producer.end() is OK
    stable, end = await ends(lab)
    assert stable == end
