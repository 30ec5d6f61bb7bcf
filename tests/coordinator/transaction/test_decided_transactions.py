"""Decisions are carried out: markers that wait, fail and are tried again, restarts and reloads."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.record_factory import decode_record, encode_record, record_of
from barnabas.coordinator.transaction.settings import MARKER_RETRY_MS
from barnabas.coordinator.transaction.transaction import new_transaction, with_participants
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from tests.coordinator.simulated_log import error_of
from tests.coordinator.transaction.transaction_bench import BILLS, ID, ORDERS, SHARED, TIMEOUT_MS, Bench


def ongoing(*, version: int = 2) -> tuple[Bench, ProducerIdentity]:
    """A transaction with two partitions."""
    bench = Bench()
    producer = bench.init()
    bench.add(producer, ORDERS, BILLS, version=version)
    return bench, producer


class TestWhileMarkersAreWritten:
    def test_the_end_waits_for_all_of_them(self) -> None:
        bench, producer = ongoing()
        bench.partitions.held = True
        ending = bench.start_end(producer)
        first, second = bench.partitions.waiting
        first()
        assert (ending.done, bench.state()) == (False, "PrepareCommit")
        assert list(bench.coordinator.describe(ID).partitions) == [ORDERS]
        second()
        assert ending.result() == ProducerIdentity(1_000, 1)
        assert bench.state() == "CompleteCommit"
        assert list(bench.coordinator.describe(ID).partitions) == []

    def test_other_ids_go_on(self) -> None:
        bench, producer = ongoing()
        bench.partitions.held = True
        bench.start_end(producer)
        for other in ("a", "b", "c", "d"):
            another = bench.init(transactional_id=other)
            bench.start_add(another, ORDERS, transactional_id=other).result()
            assert (bench.state(other), bench.state()) == ("Ongoing", "PrepareCommit")

    def test_markers_have_the_epoch_of_the_coordinator(self) -> None:
        bench, producer = ongoing()
        bench.end(producer)
        assert {marker.coordinator_epoch for _, marker in bench.partitions.written} == {bench.epoch}


class TestMarkersThatCannotBeWritten:
    def test_are_tried_again_in_the_background(self) -> None:
        bench, producer = ongoing()
        bench.partitions.failing[BILLS] = OSError("disk")
        assert bench.end(producer) == ProducerIdentity(1_000, 1)
        assert bench.partitions.ends() == [(ORDERS, True)]
        raised = ProducerIdentity(1_000, 1)
        assert error_of(bench.start_add(raised, ORDERS)) is ErrorCode.concurrent_transactions
        bench.advance(5 * MARKER_RETRY_MS)
        assert bench.state() == "PrepareCommit"
        del bench.partitions.failing[BILLS]
        bench.advance(MARKER_RETRY_MS)
        assert bench.partitions.ends() == [(ORDERS, True), (BILLS, True)]
        assert bench.state() == "CompleteCommit"
        bench.add(raised, ORDERS)

    def test_because_the_log_knows_a_newer_producer_end_the_transaction_and_confirm_no_commit(self) -> None:
        bench, producer = ongoing()
        bench.partitions.failing[BILLS] = ApiError(ErrorCode.invalid_producer_epoch)
        assert error_of(bench.start_end(producer)) is ErrorCode.producer_fenced
        assert bench.partitions.ends() == [(ORDERS, True)]
        assert bench.state() == "CompleteCommit"

    def test_because_the_log_knows_a_newer_producer_do_not_keep_an_abort_from_being_answered(self) -> None:
        bench, producer = ongoing()
        bench.partitions.failing[BILLS] = ApiError(ErrorCode.invalid_producer_epoch)
        assert bench.end(producer, commit=False) == ProducerIdentity(1_000, 1)
        assert bench.state() == "CompleteAbort"

    def test_for_any_other_reason_leave_the_transaction_undecided_until_they_are(self) -> None:
        bench, producer = ongoing()
        bench.partitions.failing[BILLS] = ApiError(ErrorCode.transaction_coordinator_fenced)
        bench.end(producer)
        assert bench.state() == "PrepareCommit"
        del bench.partitions.failing[BILLS]
        bench.advance(MARKER_RETRY_MS)
        assert bench.partitions.ends() == [(ORDERS, True), (BILLS, True)]

    def test_are_not_forgotten_when_the_end_itself_cannot_be_written(self) -> None:
        bench, producer = ongoing()
        bench.partitions.held = True
        ending = bench.start_end(producer)
        bench.log.failing = True
        bench.partitions.held = False
        bench.partitions.release()
        assert ending.result() == ProducerIdentity(1_000, 1)
        assert bench.state() == "PrepareCommit"
        bench.log.failing = False
        bench.advance(MARKER_RETRY_MS)
        assert bench.state() == "CompleteCommit"
        assert len(bench.partitions.written) == 2


class TestAfterARestart:
    def test_an_open_transaction_is_still_open(self) -> None:
        bench, producer = ongoing()
        bench.restart()
        assert bench.state() == "Ongoing"
        assert bench.partitions.written == []
        bench.add(producer, ORDERS)
        assert bench.end(producer) == ProducerIdentity(1_000, 1)

    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("version", [0, 2])
    def test_a_decision_is_carried_out(self, commit: bool, version: int) -> None:
        bench, producer = ongoing(version=version)
        bench.partitions.held = True
        bench.start_end(producer, commit=commit, version=version)
        bench.restart()
        assert bench.partitions.ends() == [(BILLS, commit), (ORDERS, commit)]
        assert bench.state() == ("CompleteCommit" if commit else "CompleteAbort")
        assert bench.end(producer, commit=commit, version=version).producer_id == 1_000

    def test_markers_that_were_written_are_written_again(self) -> None:
        bench, producer = ongoing()
        bench.partitions.held = True
        bench.start_end(producer)
        bench.partitions.waiting[0]()
        bench.restart()
        assert bench.partitions.ends() == [(BILLS, True), (BILLS, True), (ORDERS, True)]

    def test_an_end_that_was_not_written_is_decided_but_not_carried_out(self) -> None:
        bench, producer = ongoing()
        bench.partitions.held = True
        bench.start_end(producer)
        bench.log.held = True
        bench.partitions.release()
        bench.restart()
        assert bench.state() == "CompleteCommit"
        assert len(bench.partitions.written) == 4

    def test_a_rotated_producer_id_is_kept(self) -> None:
        bench, producer = ongoing()
        bench.end(producer)
        bench.restart()
        assert bench.init() == ProducerIdentity(1_000, 2)


class TestAReload:
    def test_lets_waiting_clients_ask_again(self) -> None:
        bench, producer = ongoing()
        bench.partitions.held = True
        ending = bench.start_end(producer)
        bench.partitions.held = False
        bench.reload()
        assert error_of(ending) is ErrorCode.coordinator_load_in_progress
        assert bench.state() == "CompleteCommit"
        bench.partitions.release()
        assert bench.end(producer) == ProducerIdentity(1_000, 1)

    def test_leaves_nothing_to_try_again_of_the_markers_from_before(self) -> None:
        bench, producer = ongoing()
        bench.partitions.held = True
        bench.start_end(producer)
        from_before, bench.partitions.waiting = bench.partitions.waiting, []
        bench.partitions.held = False
        bench.reload()
        bench.partitions.failing[BILLS] = OSError("disk")
        for end in from_before:
            end()
        bench.advance(2 * MARKER_RETRY_MS)
        assert bench.state() == "CompleteCommit"

    def test_refuses_operations_under_way(self) -> None:
        bench, producer = ongoing()
        bench.log.held = True
        ending = bench.start_end(producer)
        bench.reload()
        bench.log.held = False
        assert error_of(ending) is ErrorCode.coordinator_load_in_progress
        assert bench.state() == "Ongoing"

    def test_that_brings_less_than_was_known_goes_by_that(self) -> None:
        bench, producer = ongoing()
        bench.log.batches.pop()
        bench.reload()
        assert bench.state() == "Empty"
        assert error_of(bench.start_end(producer)) is ErrorCode.invalid_txn_state


class TestSharePartitions:
    """They are told the outcome of the acknowledgements in the transaction."""

    @pytest.mark.parametrize("version", [0, 2])
    @pytest.mark.parametrize("commit", [True, False])
    def test_are_told_after_the_partitions(self, version: int, commit: bool) -> None:
        bench = Bench()
        producer = bench.init()
        bench.add(producer, SHARED, ORDERS, version=version)
        bench.end(producer, commit=commit, version=version)
        assert bench.partitions.ends() == [(ORDERS, commit), (SHARED, commit)]
        assert bench.state() == ("CompleteCommit" if commit else "CompleteAbort")

    def test_begin_a_transaction_that_times_out(self) -> None:
        bench = Bench()
        bench.add(bench.init(), SHARED)
        assert bench.coordinator.has_acknowledgements(SHARED)
        bench.advance(2 * TIMEOUT_MS)
        assert bench.partitions.ends() == [(SHARED, False)]
        assert not bench.coordinator.has_acknowledgements(SHARED)

    def test_hold_the_transaction_until_they_have_recorded_it(self) -> None:
        bench = Bench()
        producer = bench.init()
        bench.add(producer, SHARED)
        bench.partitions.failing[SHARED] = OSError("disk")
        bench.end(producer)
        bench.restart()
        assert bench.state() == "PrepareCommit"
        assert list(bench.coordinator.describe(ID).partitions) == []
        assert bench.coordinator.has_acknowledgements(SHARED)
        bench.partitions.failing.clear()
        bench.advance(MARKER_RETRY_MS)
        assert bench.partitions.ends() == [(SHARED, True)]
        assert bench.state() == "CompleteCommit"

    def test_are_forgotten_and_found_again_with_their_partition_of_the_topic(self) -> None:
        bench = Bench()
        bench.add(bench.init(), SHARED)
        for partition in range(bench.settings.partition_count):
            bench.coordinator.unload(partition)
        assert not bench.coordinator.has_acknowledgements(SHARED)
        bench.load()
        assert bench.coordinator.has_acknowledgements(SHARED)

    def test_are_in_the_record_for_every_level_of_transactions(self) -> None:
        transaction = with_participants(new_transaction(ID, 1, TIMEOUT_MS, 0), [SHARED, ORDERS], 0, 0)
        for level in (0, 1, 2):
            key, value = encode_record(record_of(transaction), level)
            assert decode_record(key, value) == (ID, transaction)
