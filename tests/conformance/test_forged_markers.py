"""Clients that write forged transaction markers, and partitions in which an older broker accepted such
markers.

WriteTxnMarkers is open to every client, as in Apache Kafka without an authorizer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs

from barnabas.broker.internal_topics.transaction_markers import TransactionMarkers
from barnabas.coordinator.metadata.topic_names import TRANSACTION_STATE_TOPIC
from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicNamePartition
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG
from barnabas.runtime.completion import Completion
from barnabas.runtime.counted_line import REPEATS_COUNTED_MS
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import DATA_DIRECTORY, Lab, batch, open_lab, settle
from tests.conformance.transacting import ID, OK, TOPIC, Transacting, begun, ends, state

pytestmark = with_log_store_only

FENCED, OLD_EPOCH = ErrorCode.transaction_coordinator_fenced, ErrorCode.invalid_producer_epoch
FOREIGN_EPOCH = 2**31 - 1
STRANGER = 4_242
"""The id of a producer that no coordinator knows."""
REFUSED = "client's transaction marker refused"
ENDED = "hanging transaction ended as its coordinator had decided"
HANGS = "transaction hangs: consumers of committed records stop before it"


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab(transaction__partition__verification__enable="false") as lab:
        await lab.create_topic(TOPIC, 2)
        yield lab


async def write_marker(
    lab: Lab, producer_id: int, producer_epoch: int, *, commit: bool = False, coordinator_epoch: int = 0
) -> ErrorCode:
    """WriteTxnMarkers for partition 0, as any client sends it."""
    marker = {
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "transaction_result": commit,
        "coordinator_epoch": coordinator_epoch,
        "topics": [{"name": TOPIC, "partition_indexes": [0]}],
    }
    answer = await lab.admin.ask("write_txn_markers", markers=[marker])
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


async def leave_hanging(lab: Lab, sequence: int = 0) -> None:
    """A record in a transaction that no coordinator knows."""
    options = {"producer_id": STRANGER, "producer_epoch": 0, "base_sequence": sequence}
    records = batch(1, lab.clock.wall_ms(), attributes=TRANSACTIONAL_FLAG, **options)
    topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}
    answer = await lab.admin.ask("produce", 11, transactional_id="stranger", acks=-1, topic_data=[topic])
    assert answer.responses[0].partition_responses[0].error_code is OK


def log_of(lab: Lab) -> PartitionLog:
    log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_name[TOPIC], 0)
    assert log is not None
    return log


def poison(lab: Lab, producer: Transacting) -> None:
    """The forged marker that an older broker accepted, with an impossible coordinator epoch."""
    log_of(lab).append_marker(*producer.producer, FOREIGN_EPOCH, commit=False, now_ms=lab.clock.wall_ms())


async def damage_another_partition(lab: Lab) -> None:
    """A byte of the state of another transactional id changes while the broker is down."""
    await Transacting(lab.client(), transactional_id="damaged").init()
    await lab.broker.close()
    partition = partition_of_key("damaged", lab.broker.transactions.topic.partition_count)
    assert partition != partition_of_key(ID, lab.broker.transactions.topic.partition_count)
    path = f"{DATA_DIRECTORY}/{TRANSACTION_STATE_TOPIC}-{partition}/{0:020d}.log"
    lab.filesystem.files[path][70] ^= 1
    await lab.start()


@contextmanager
def refused_markers() -> Generator[None]:
    """The coordinator believes that each marker is written although none is, like an older broker."""

    def write(
        self: TransactionMarkers, partition: TopicNamePartition, marker: TransactionMarker
    ) -> Completion[None]:
        reply = Completion[None]()
        reply.complete(None)
        return reply

    with patch.object(TransactionMarkers, "write_marker", write):
        yield


class TestClients:
    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("version", [0, 2])
    async def test_cannot_end_a_transaction_that_the_coordinator_holds_open(
        self, lab: Lab, version: int, commit: bool
    ) -> None:
        producer = await begun(lab, version=version)
        for coordinator_epoch in (0, 1, FOREIGN_EPOCH):
            code = await write_marker(
                lab, *producer.producer, commit=commit, coordinator_epoch=coordinator_epoch
            )
            assert code is FENCED
        assert await ends(lab) == (0, 2)
        assert await producer.end() is OK
        assert await ends(lab) == (3, 3)

    async def test_cannot_end_one_that_is_being_completed(self, lab: Lab) -> None:
        producer = await begun(lab)
        await producer.write(1)
        with lab.broken_disk(f"{TOPIC}-1"):
            assert await producer.end() is OK
            assert await state(lab) == "PrepareCommit"
            assert await write_marker(lab, *producer.producer) is FENCED

    @pytest.mark.parametrize("version", [0, 2])
    async def test_cannot_name_an_impossible_coordinator_epoch(self, lab: Lab, version: int) -> None:
        producer = await begun(lab, version=version)
        assert await producer.end() is OK
        own_epoch = lab.broker.metadata.node_epoch
        for coordinator_epoch, code in ((FOREIGN_EPOCH, FENCED), (own_epoch + 1, FENCED), (own_epoch, OK)):
            assert await write_marker(lab, *producer.producer, coordinator_epoch=coordinator_epoch) is code
        assert await producer.write() is OK
        assert await producer.end() is OK
        stable, end = await ends(lab)
        assert stable == end

    async def test_cannot_shut_a_producer_out_with_an_epoch_that_it_was_not_given(self, lab: Lab) -> None:
        producer = await begun(lab)
        assert await producer.end() is OK
        producer_id, producer_epoch = producer.producer
        assert await write_marker(lab, producer_id, producer_epoch + 1, coordinator_epoch=1) is OLD_EPOCH
        assert await producer.write() is OK

    async def test_may_end_a_transaction_that_hangs(self, lab: Lab) -> None:
        await leave_hanging(lab)
        assert await ends(lab) == (0, 1)
        assert await write_marker(lab, STRANGER, 0) is OK
        assert await ends(lab) == (2, 2)

    async def test_may_end_one_that_hangs_behind_the_marker_of_an_impossible_coordinator(
        self, lab: Lab
    ) -> None:
        """The tool sends the coordinator epoch of the DescribeProducers response."""
        await leave_hanging(lab)
        log_of(lab).append_marker(STRANGER, 0, FOREIGN_EPOCH, commit=True, now_ms=lab.clock.wall_ms())
        await leave_hanging(lab, sequence=1)
        (described,) = (
            (await lab.admin.ask("describe_producers", topics=[{"name": TOPIC, "partition_indexes": [0]}]))
            .topics[0]
            .partitions[0]
            .active_producers
        )
        assert described.coordinator_epoch == FOREIGN_EPOCH
        code = await write_marker(lab, STRANGER, 0, coordinator_epoch=described.coordinator_epoch)
        assert code is OK
        stable, end = await ends(lab)
        assert stable == end

    async def test_fill_no_log_with_refused_markers(self, lab: Lab) -> None:
        producer = await begun(lab)
        with capture_logs() as lines:
            for _ in range(50):
                await write_marker(lab, *producer.producer, coordinator_epoch=FOREIGN_EPOCH)
            assert [line["event"] for line in lines] == [REFUSED]
            await lab.advance(REPEATS_COUNTED_MS)
        (first, counted) = (line for line in lines if line["event"] == REFUSED)
        assert (first["client"], first["topic"], first["partition"]) == ("/127.0.0.1", TOPIC, 0)
        assert ("repeats" in first, counted["repeats"]) == (False, 49)


class TestWhileAnotherPartitionOfTransactionsIsDamaged:
    async def test_markers_of_known_producers_are_decided_at_once(self, lab: Lab) -> None:
        producer = await begun(lab)
        await producer.end()
        await damage_another_partition(lab)
        assert await write_marker(lab, *producer.producer, coordinator_epoch=FOREIGN_EPOCH) is FENCED
        assert await write_marker(lab, *producer.producer, coordinator_epoch=0) is OK

    async def test_markers_of_unknown_producers_are_refused_for_good_with_the_remedy(self, lab: Lab) -> None:
        await leave_hanging(lab)
        await damage_another_partition(lab)
        with capture_logs() as lines:
            assert await write_marker(lab, STRANGER, 0) is FENCED
        (line,) = (line for line in lines if line["event"] == REFUSED)
        assert f"{TRANSACTION_STATE_TOPIC}-" in line["reason"]
        assert "drop-damaged" in line["reason"]


class TestALogWithTheMarkerOfACoordinatorThatCannotBe:
    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("version", [0, 2])
    async def test_accepts_the_markers_of_the_real_coordinator(
        self, lab: Lab, version: int, commit: bool
    ) -> None:
        producer = await begun(lab, version=version)
        poison(lab, producer)
        assert await producer.write() is OK
        assert await producer.end(commit=commit) is OK
        stable, end = await ends(lab)
        assert stable == end
        assert log_of(lab).open_transactions() == []

    @pytest.mark.parametrize("how", ["restart", "crash"])
    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("version", [0, 2])
    async def test_gets_the_outcome_that_was_confirmed_and_never_written(
        self, lab: Lab, version: int, commit: bool, how: str
    ) -> None:
        """Several transactions of one producer, each confirmed by a broker that lost its marker."""
        producer = await begun(lab, version=version)
        poison(lab, producer)
        with refused_markers():
            for _ in range(3):
                assert await producer.write() is OK
                assert await producer.end(commit=commit) is OK
        assert await ends(lab) == (3, 9)
        with capture_logs() as lines:
            await getattr(lab, how)()
            await ends(lab)
            await settle()
        assert await ends(lab) == (10, 10)
        (line,) = (line for line in lines if line["event"] == ENDED)
        assert (line["topic"], line["partition"], line["offset"]) == (TOPIC, 0, 3)
        assert line["outcome"] == ("commit" if commit else "abort")
        aborted = log_of(lab).aborted_transactions(3, 10)
        assert [one.first_offset for one in aborted] == ([] if commit else [3])
        producer.client = lab.client()
        assert await producer.write() is OK
        assert await producer.end() is OK

    async def test_is_reported_if_its_open_transactions_had_several_outcomes(self, lab: Lab) -> None:
        producer = await begun(lab)
        poison(lab, producer)
        with refused_markers():
            for commit in (True, False):
                assert await producer.write() is OK
                assert await producer.end(commit=commit) is OK
        with capture_logs() as lines:
            await lab.crash()
            await ends(lab)
            await settle()
        (line,) = (line for line in lines if line["event"] == HANGS)
        assert (line["transactional_id"], line["offset"]) == (ID, 3)
        assert f"--topic {TOPIC} --partition 0 --start-offset 3" in line["remedy"]
        assert (await ends(lab))[0] == 3
        assert await write_marker(lab, *producer.producer, coordinator_epoch=FOREIGN_EPOCH) is OK
        stable, end = await ends(lab)
        assert stable == end


async def test_a_marker_that_was_lost_with_the_power_is_written_again(lab: Lab) -> None:
    """The log lost it, but `__transaction_state` still has the decision."""
    producer = await begun(lab)
    with refused_markers():
        assert await producer.end() is OK
    await lab.crash()
    await ends(lab)
    await settle()
    assert await ends(lab) == (3, 3)


async def test_a_transaction_that_is_open_is_left_to_its_producer(lab: Lab) -> None:
    producer = await begun(lab)
    with capture_logs() as lines:
        await lab.crash()
        assert await ends(lab) == (0, 2)
        await settle()
    assert [line for line in lines if line["event"] in (ENDED, HANGS)] == []
    producer.client = lab.client()
    assert await producer.end() is OK
    assert await ends(lab) == (3, 3)
