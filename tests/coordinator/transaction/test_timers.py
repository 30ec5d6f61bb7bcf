"""Transactions that take too long, and unused ids."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.listing import TransactionFilter
from barnabas.coordinator.transaction.settings import MARKER_RETRY_MS, TransactionSettings
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from tests.coordinator.simulated_log import error_of
from tests.coordinator.transaction.transaction_bench import BILLS, ID, ORDERS, TIMEOUT_MS, Bench

CHECK_MS = 10_000
DAY_MS = 24 * 60 * 60 * 1000


class TestATransactionThatTakesTooLong:
    @pytest.mark.parametrize("version", [0, 2])
    def test_is_aborted_and_its_producer_fenced(self, version: int) -> None:
        bench = Bench()
        bench.version = version
        producer = bench.init()
        bench.add(producer, ORDERS, version=version)
        bench.advance(TIMEOUT_MS)
        assert bench.state() == "Ongoing"
        bench.advance(CHECK_MS)
        assert bench.state() == "CompleteAbort"
        assert bench.partitions.ends() == [(ORDERS, False)]
        # To a newer client it looks like the answer to an abort that it never got, not to a commit.
        told = ErrorCode.producer_fenced if version == 0 else ErrorCode.invalid_txn_state
        assert error_of(bench.start_end(producer, version=version)) is told
        assert error_of(bench.start_add(producer, ORDERS)) is ErrorCode.producer_fenced
        assert bench.init() == ProducerIdentity(1_000, 2)

    def test_has_as_long_as_its_producer_said(self) -> None:
        bench = Bench()
        producer = bench.start_init(timeout_ms=5 * TIMEOUT_MS).result()
        bench.add(producer, ORDERS)
        bench.advance(5 * TIMEOUT_MS)
        assert bench.state() == "Ongoing"

    def test_is_aborted_after_a_restart_too(self) -> None:
        bench = Bench()
        bench.add(bench.init(), ORDERS)
        bench.advance(TIMEOUT_MS - CHECK_MS)
        bench.restart()
        bench.advance(CHECK_MS)
        assert bench.state() == "Ongoing"
        bench.advance(CHECK_MS)
        assert bench.state() == "CompleteAbort"

    @pytest.mark.parametrize("shift_ms", [-DAY_MS, DAY_MS])
    def test_is_aborted_at_the_same_time_if_the_wall_clock_is_set(self, shift_ms: int) -> None:
        bench = Bench()
        bench.add(bench.init(), ORDERS)
        bench.wall_shift_ms = shift_ms
        bench.advance(TIMEOUT_MS)
        assert bench.state() == "Ongoing"
        bench.advance(CHECK_MS)
        assert bench.state() == "CompleteAbort"

    def test_keeps_its_time_if_the_wall_clock_is_set_between_its_records(self) -> None:
        bench = Bench()
        producer = bench.init()
        bench.add(producer, ORDERS)
        bench.advance(TIMEOUT_MS - CHECK_MS)
        bench.wall_shift_ms = -DAY_MS
        bench.add(producer, BILLS)
        bench.advance(CHECK_MS)
        assert bench.state() == "Ongoing"
        bench.advance(CHECK_MS)
        assert bench.state() == "CompleteAbort"

    def test_has_its_whole_time_again_if_it_began_in_the_future_of_a_restart(self) -> None:
        """What is left of the time is known by the wall clock alone, which was set back meanwhile."""
        bench = Bench()
        bench.add(bench.init(), ORDERS)
        bench.wall_shift_ms = -DAY_MS
        bench.restart()
        bench.advance(TIMEOUT_MS)
        assert bench.state() == "Ongoing"
        bench.advance(CHECK_MS)
        assert bench.state() == "CompleteAbort"

    def test_is_listed_by_its_age_if_the_wall_clock_is_set_back(self) -> None:
        bench = Bench()
        bench.add(bench.init(), ORDERS)
        bench.advance(20_000)
        bench.wall_shift_ms = -DAY_MS
        for longer_than_ms, is_listed in ((19_999, True), (20_000, False)):
            listed = bench.coordinator.list_transactions(TransactionFilter(longer_than_ms=longer_than_ms))
            assert bool(listed) is is_listed

    def test_is_looked_at_again_if_the_abort_cannot_be_written(self) -> None:
        bench = Bench()
        bench.add(bench.init(), ORDERS)
        bench.log.failing = True
        bench.advance(TIMEOUT_MS + CHECK_MS)
        bench.log.failing = False
        assert bench.state() == "Ongoing"
        bench.advance(CHECK_MS)
        assert bench.state() == "CompleteAbort"

    def test_that_ends_in_time_is_left_alone(self) -> None:
        bench = Bench()
        producer = bench.init()
        bench.add(producer, ORDERS)
        bench.log.held = True
        bench.advance(TIMEOUT_MS)
        ending = bench.start_end(producer)
        bench.advance(CHECK_MS)
        bench.log.held = False
        while bench.log.waiting:
            bench.log.release()
        assert ending.result() == ProducerIdentity(1_000, 1)
        assert bench.state() == "CompleteCommit"
        assert bench.partitions.ends() == [(ORDERS, True)]

    def test_is_waited_for_only_while_there_is_one(self) -> None:
        bench = Bench()
        idle_ms = bench.coordinator.next_deadline_ms()
        producer = bench.init()
        assert bench.coordinator.next_deadline_ms() == idle_ms
        bench.add(producer, ORDERS)
        assert bench.coordinator.next_deadline_ms() == CHECK_MS
        bench.end(producer)
        bench.advance(CHECK_MS)
        assert bench.coordinator.next_deadline_ms() == idle_ms


class TestAnIdThatNobodyUses:
    SETTINGS = TransactionSettings(partition_count=2, id_expiration_ms=DAY_MS)

    def test_is_forgotten(self) -> None:
        bench = Bench(self.SETTINGS)
        bench.init()
        producer = bench.init(transactional_id="ended")
        bench.start_end(producer, commit=False, transactional_id="ended").result()
        bench.advance(DAY_MS - 1)
        assert bench.state() == "Empty"
        bench.advance(3_600_000)
        for _ in range(2):
            for transactional_id in (ID, "ended"):
                with pytest.raises(ApiError) as missing:
                    bench.state(transactional_id)
                assert missing.value.code is ErrorCode.transactional_id_not_found
            bench.restart()
        assert bench.init() == ProducerIdentity(1_002, 0)

    @pytest.mark.parametrize("shift_ms", [-10 * DAY_MS, 10 * DAY_MS])
    def test_is_forgotten_at_the_same_time_if_the_wall_clock_is_set(self, shift_ms: int) -> None:
        bench = Bench(self.SETTINGS)
        bench.init()
        bench.wall_shift_ms = shift_ms
        bench.advance(DAY_MS - 1)
        assert bench.state() == "Empty"
        bench.advance(3_600_000)
        with pytest.raises(ApiError):
            bench.state()

    def test_counts_the_time_before_a_restart_by_the_wall_clock(self) -> None:
        bench = Bench(self.SETTINGS)
        bench.init()
        bench.advance(DAY_MS // 2)
        bench.restart()
        bench.wall_shift_ms = -DAY_MS
        bench.advance(DAY_MS // 2 - 1)
        assert bench.state() == "Empty"
        bench.advance(3_600_000)
        with pytest.raises(ApiError):
            bench.state()

    def test_makes_room_for_another(self) -> None:
        bench = Bench(TransactionSettings(partition_count=2, id_expiration_ms=DAY_MS, max_ids=1))
        bench.init()
        bench.advance(2 * DAY_MS)
        bench.init(transactional_id="other")
        assert bench.state("other") == "Empty"
        with pytest.raises(ApiError):
            bench.state(ID)

    def test_stays_while_its_end_is_carried_out(self) -> None:
        soon = TransactionSettings(
            partition_count=2, id_expiration_ms=2_000, id_expiration_check_interval_ms=1_000
        )
        bench = Bench(soon)
        producer = bench.init()
        bench.add(producer, ORDERS)
        bench.partitions.failing[ORDERS] = OSError()
        bench.end(producer)
        bench.advance(10_000)
        assert bench.state() == "PrepareCommit"
        bench.partitions.failing.clear()
        bench.advance(MARKER_RETRY_MS)
        assert bench.state() == "CompleteCommit"

    def test_is_kept_if_that_cannot_be_written(self) -> None:
        bench = Bench(self.SETTINGS)
        bench.init()
        bench.log.failing = True
        bench.advance(2 * DAY_MS)
        assert bench.state() == "Empty"
