"""The ends that are accepted in each state, and the producer's identity after them (KIP-98, KIP-890)."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.transaction import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from tests.coordinator.simulated_log import error_of
from tests.coordinator.transaction.transaction_bench import BILLS, ORDERS, Bench

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
FENCED, INVALID = ErrorCode.producer_fenced, ErrorCode.invalid_txn_state
BUSY, DONE = ErrorCode.concurrent_transactions, ErrorCode.none
PRODUCER = ProducerIdentity(9, 5)
BEFORE = ProducerIdentity(9, 4)


def put(bench: Bench, state: TransactionState) -> None:
    """The id in this state, with markers that never arrive."""
    bench.partitions.held = True
    bench.put(PRODUCER, state, partitions=frozenset({ORDERS}), started_at_ms=bench.wall_ms, client_version=2)


class TestWithoutRaisedEpochs:
    @pytest.mark.parametrize(
        ("state", "commit", "code"),
        [
            (EMPTY, True, INVALID),
            (EMPTY, False, INVALID),
            (COMPLETE_COMMIT, True, DONE),
            (COMPLETE_COMMIT, False, INVALID),
            (COMPLETE_ABORT, True, INVALID),
            (COMPLETE_ABORT, False, DONE),
            (PREPARE_COMMIT, True, BUSY),
            (PREPARE_COMMIT, False, INVALID),
            (PREPARE_ABORT, True, INVALID),
            (PREPARE_ABORT, False, BUSY),
        ],
    )
    def test_state_and_wish_decide(self, state: TransactionState, commit: bool, code: ErrorCode) -> None:
        bench = Bench()
        put(bench, state)
        assert error_of(bench.start_end(PRODUCER, commit=commit, version=0)) is code

    @pytest.mark.parametrize("producer", [BEFORE, ProducerIdentity(9, 6)])
    def test_another_epoch_is_fenced(self, producer: ProducerIdentity) -> None:
        bench = Bench()
        put(bench, ONGOING)
        assert error_of(bench.start_end(producer, version=0)) is FENCED

    def test_the_epoch_stays(self) -> None:
        bench = Bench()
        producer = bench.init()
        for commit in (True, False):
            bench.add(producer, ORDERS, version=0)
            assert bench.end(producer, commit=commit, version=0) == producer
        assert bench.partitions.ends() == [(ORDERS, True), (ORDERS, False)]


class TestWithRaisedEpochs:
    @pytest.mark.parametrize(
        ("state", "commit", "again", "now"),
        [
            (EMPTY, True, FENCED, INVALID),
            (EMPTY, False, FENCED, DONE),
            (ONGOING, True, FENCED, DONE),
            (ONGOING, False, FENCED, DONE),
            (COMPLETE_COMMIT, True, DONE, INVALID),
            (COMPLETE_COMMIT, False, INVALID, DONE),
            (COMPLETE_ABORT, True, INVALID, INVALID),
            (COMPLETE_ABORT, False, DONE, DONE),
            (PREPARE_COMMIT, True, BUSY, FENCED),
            (PREPARE_COMMIT, False, INVALID, FENCED),
            (PREPARE_ABORT, True, INVALID, FENCED),
            (PREPARE_ABORT, False, BUSY, FENCED),
        ],
    )
    def test_state_wish_and_epoch_decide(
        self, state: TransactionState, commit: bool, again: ErrorCode, now: ErrorCode
    ) -> None:
        for producer, code in ((BEFORE, again), (PRODUCER, now)):
            bench = Bench()
            put(bench, state)
            reply = bench.start_end(producer, commit=commit)
            bench.partitions.release()
            assert error_of(reply) is code, producer

    def test_each_end_raises_the_epoch(self) -> None:
        bench = Bench()
        producer = bench.init()
        for epoch, commit in enumerate((True, False, True), 1):
            bench.add(producer, ORDERS, BILLS)
            producer = bench.end(producer, commit=commit)
            assert producer == ProducerIdentity(1_000, epoch)
        markers = [marker.producer.producer_epoch for _, marker in bench.partitions.written]
        assert markers == [1, 1, 2, 2, 3, 3]

    def test_an_end_that_is_asked_for_again_is_answered_as_it_was(self) -> None:
        bench = Bench()
        producer = bench.init()
        bench.add(producer, ORDERS)
        assert bench.end(producer) == bench.end(producer) == ProducerIdentity(1_000, 1)
        assert len(bench.partitions.written) == 1

    def test_an_abort_of_nothing_raises_the_epoch(self) -> None:
        bench = Bench()
        producer = bench.init()
        assert bench.end(producer, commit=False) == ProducerIdentity(1_000, 1)
        assert bench.state() == "CompleteAbort"
        assert bench.partitions.written == []

    def test_the_last_epoch_is_followed_by_a_new_id_also_if_it_is_asked_for_again(self) -> None:
        bench = Bench()
        last = ProducerIdentity(9, 32_766)
        bench.put(last, ONGOING, partitions=frozenset({ORDERS}), started_at_ms=bench.wall_ms)
        assert bench.end(last) == bench.end(last) == ProducerIdentity(1_000, 0)
        assert bench.partitions.written[0][1].producer == ProducerIdentity(9, 32_767)
        assert error_of(bench.start_end(last, commit=False)) is INVALID
        bench.add(ProducerIdentity(1_000, 0), ORDERS)
        assert error_of(bench.start_end(last)) is ErrorCode.invalid_producer_id_mapping


@pytest.mark.parametrize("version", [0, 2])
class TestInAnyVersion:
    def test_an_id_that_is_not_there_has_no_producer(self, version: int) -> None:
        reply = Bench().start_end(PRODUCER, version=version)
        assert error_of(reply) is ErrorCode.invalid_producer_id_mapping

    def test_another_producer_id_is_not_this_ones(self, version: int) -> None:
        bench = Bench()
        put(bench, ONGOING)
        reply = bench.start_end(ProducerIdentity(8, 5), version=version)
        assert error_of(reply) is ErrorCode.invalid_producer_id_mapping

    def test_an_end_that_cannot_be_written_changes_nothing(self, version: int) -> None:
        bench = Bench()
        producer = bench.init()
        bench.add(producer, ORDERS, version=version)
        bench.log.failing = True
        assert error_of(bench.start_end(producer, version=version)) is ErrorCode.coordinator_not_available
        bench.log.failing = False
        assert bench.state() == "Ongoing"
        assert bench.partitions.written == []
        bench.end(producer, version=version)
        assert bench.partitions.ends() == [(ORDERS, True)]
