"""The records that readers of committed records get: consumers by Fetch and ListOffsets, share groups by
share.isolation.level (wire sheet, section 5).
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.conftest import Stage
from tests.conformance.harness import settle
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember
from tests.storage.log_building import append
from tests.storage.transactions import Producer

UNCOMMITTED, COMMITTED = 0, 1
LATEST, MAX_TIMESTAMP = -1, -3


async def log_of(stage: Stage) -> PartitionLog:
    broker = stage.lab.broker
    topic = broker.metadata.image.topics_by_id[stage.partition.topic_id]
    opening = broker.logs.open_all([(topic, 0)])
    if opening is not None:
        await opening
    log = broker.logs.get(topic, 0)
    assert log is not None
    return log


async def committed_group(stage: Stage) -> ShareMember:
    await stage.lab.configure_group(GROUP, isolation_level="read_committed")
    return stage.member()


async def fetched(stage: Stage, isolation_level: int, offset: int = 0, **values: Any) -> Any:
    partition = {
        "partition": 0,
        "fetch_offset": offset,
        "partition_max_bytes": 1 << 20,
        "current_leader_epoch": -1,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        **values,
    }
    response = await stage.lab.admin.ask(
        "fetch",
        12,
        replica_id=-1,
        max_bytes=1 << 20,
        isolation_level=isolation_level,
        session_epoch=-1,
        topics=[{"topic": "t", "partitions": [partition]}],
    )
    return response.responses[0].partitions[0]


async def listed(stage: Stage, isolation_level: int, timestamp: int) -> int:
    partition = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    response = await stage.lab.admin.ask(
        "list_offsets",
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[{"name": "t", "partitions": [partition]}],
    )
    offset: int = response.topics[0].partitions[0].offset
    return offset


class TestConsumers:
    async def test_get_the_list_of_aborted_transactions_only_if_they_read_committed_records(
        self, stage: Stage
    ) -> None:
        log = await log_of(stage)
        first, second = Producer(log, 1), Producer(log, 2)
        first.send(2)
        second.send(2)
        first.abort()
        second.send()
        everything, committed = await fetched(stage, UNCOMMITTED), await fetched(stage, COMMITTED)
        assert (everything.high_watermark, everything.last_stable_offset) == (6, 2)
        assert everything.aborted_transactions is None
        assert [(one.producer_id, one.first_offset) for one in committed.aborted_transactions] == [(1, 0)]
        assert len(committed.records) < len(everything.records)
        second.commit()
        assert (await fetched(stage, COMMITTED)).records == (await fetched(stage, UNCOMMITTED)).records

    async def test_wait_at_the_last_stable_offset_and_are_woken_by_the_marker(self, stage: Stage) -> None:
        log = await log_of(stage)
        producer = Producer(log, 1)
        producer.send()
        client = stage.lab.client()
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        pending = client.send(
            "fetch",
            12,
            replica_id=-1,
            max_wait=500,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=COMMITTED,
            session_epoch=-1,
            topics=[
                {
                    "topic": "t",
                    "partitions": [{**partition, "current_leader_epoch": -1, "last_fetched_epoch": -1}],
                }
            ],
        )
        append(log)
        await settle()
        was_done = pending.done
        producer.commit()
        await settle()
        assert (was_done, pending.done) == (False, True)
        assert pending.response().responses[0].partitions[0].last_stable_offset == 3

    async def test_get_nothing_and_no_list_at_the_last_stable_offset(self, stage: Stage) -> None:
        log = await log_of(stage)
        append(log)
        Producer(log, 1).send()
        got = await fetched(stage, COMMITTED, offset=1)
        assert (got.error_code, got.records, got.aborted_transactions) == (ErrorCode.none, b"", ())

    @pytest.mark.parametrize(
        ("isolation_level", "timestamp", "offset"),
        [(UNCOMMITTED, LATEST, 3), (COMMITTED, LATEST, 1), (COMMITTED, 0, 0), (COMMITTED, 2**60, -1)],
    )
    async def test_offsets_end_before_an_undecided_transaction(
        self, stage: Stage, isolation_level: int, timestamp: int, offset: int
    ) -> None:
        log = await log_of(stage)
        append(log)
        Producer(log, 1).send(2)
        assert await listed(stage, isolation_level, timestamp) == offset

    async def test_the_largest_timestamp_is_not_returned_while_its_transaction_is_undecided(
        self, stage: Stage
    ) -> None:
        log = await log_of(stage)
        producer = Producer(log, 1)
        producer.send()
        assert (await listed(stage, UNCOMMITTED, MAX_TIMESTAMP), await listed(stage, COMMITTED, -3)) == (
            0,
            -1,
        )
        producer.commit()
        assert await listed(stage, COMMITTED, MAX_TIMESTAMP) == 0


class TestShareGroups:
    async def observed(self, stage: Stage) -> None:
        """As the wire sheet has it: 0-2 committed, marker 3, 4-6 aborted, 7, 8-9 committed, 10."""
        producer = Producer(await log_of(stage), 1)
        for count, commit in ((3, True), (3, False), (2, True)):
            producer.send(count)
            producer.end(commit=commit)

    async def test_aborted_records_are_cut_out_and_markers_stay_in(self, stage: Stage) -> None:
        await self.observed(stage)
        member = await committed_group(stage)
        assert await member.take() == [(0, 3, 1), (7, 10, 1)]
        acknowledged = await member.acknowledge([(0, 3, ACCEPT), (7, 10, ACCEPT)])
        assert acknowledged.errors == [0]
        _, lag = await stage.offsets()
        assert lag == 0

    async def test_without_the_setting_all_of_it_is_handed_out(self, stage: Stage) -> None:
        await self.observed(stage)
        assert await stage.member().take() == [(0, 10, 1)]

    async def test_nothing_is_handed_out_from_an_open_transaction_on(self, stage: Stage) -> None:
        log = await log_of(stage)
        append(log, 2)
        producer = Producer(log, 1)
        producer.send()
        append(log)
        member = await committed_group(stage)
        assert await member.take() == [(0, 1, 1)]
        producer.commit()
        await settle()
        acquired = await member.take()
        assert {2, 3} <= {offset for first, last, _ in acquired for offset in range(first, last + 1)}

    async def test_a_fetch_that_acquired_only_aborted_records_is_answered_immediately_and_empty(
        self, stage: Stage
    ) -> None:
        log = await log_of(stage)
        producer = Producer(log, 1)
        producer.send(5)
        producer.abort()
        append(log)
        member = await committed_group(stage)
        got = await member.fetch(max_records=5, max_wait=60_000)
        assert (got.error, got.acquired, got.errors) == (0, [], [0])
        assert await member.take() == [(5, 6, 1)]

    @pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
    async def test_no_fetch_gets_a_marker_alone(self, stage: Stage, isolation_level: str) -> None:
        await stage.lab.configure_group(GROUP, isolation_level=isolation_level)
        producer = Producer(await log_of(stage), 1)
        member = stage.member()
        producer.send(5)
        if isolation_level == "read_uncommitted":
            assert await member.take() == [(0, 4, 1)]
            assert (await member.acknowledge([(0, 4, ACCEPT)])).errors == [0]
        producer.end(commit=isolation_level == "read_uncommitted")
        assert await member.take() == []
        _, lag = await stage.offsets()
        assert lag == 0

    async def test_aborted_records_stay_archived_over_a_restart(self, stage: Stage) -> None:
        await self.observed(stage)
        member = await committed_group(stage)
        await member.take()
        await member.acknowledge([(0, 3, ACCEPT)])
        await settle()
        await stage.lab.crash()
        again = ShareMember(stage.lab.client(), [stage.partition], member_id="member-2")
        assert await again.take() == [(7, 10, 1)]

    async def test_transactions_aborted_before_a_restart_are_known_after_it(self, stage: Stage) -> None:
        await self.observed(stage)
        await stage.lab.configure_group(GROUP, isolation_level="read_committed")
        await stage.lab.crash()
        again = ShareMember(stage.lab.client(), [stage.partition], member_id="member-2")
        assert await again.take() == [(0, 3, 1), (7, 10, 1)]


class TestDescribeProducers:
    async def described(self, stage: Stage, name: str = "t", index: int = 0) -> Any:
        response = await stage.lab.admin.ask(
            "describe_producers", topics=[{"name": name, "partition_indexes": [index]}]
        )
        return response.topics[0].partitions[0]

    async def test_producers_are_described_with_their_open_transactions(self, stage: Stage) -> None:
        log = await log_of(stage)
        append(log)
        Producer(log, 2, 3).send(2)
        Producer(log, 1).commit(coordinator_epoch=8)
        described = await self.described(stage)
        assert described.error_code is ErrorCode.none
        assert [
            (one.producer_id, one.producer_epoch, one.last_sequence, one.coordinator_epoch)
            for one in described.active_producers
        ] == [(1, 0, -1, 8), (2, 3, 1, -1)]
        assert [one.current_txn_start_offset for one in described.active_producers] == [-1, 1]

    @pytest.mark.parametrize(
        ("name", "index", "code", "has_message"),
        [
            ("t", 1, ErrorCode.unknown_topic_or_partition, False),
            ("u", 0, ErrorCode.unknown_topic_or_partition, True),
            ("not/a/name", 0, ErrorCode.invalid_topic_exception, True),
        ],
    )
    async def test_a_partition_that_does_not_exist_is_an_error(
        self, stage: Stage, name: str, index: int, code: ErrorCode, has_message: bool
    ) -> None:
        described = await self.described(stage, name, index)
        assert (described.error_code, described.error_message is not None) == (code, has_message)
        assert described.active_producers == ()
