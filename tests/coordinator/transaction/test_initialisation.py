"""The use of a transactional id: producers that begin, begin again, and are fenced."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.settings import TransactionSettings
from barnabas.coordinator.transaction.transaction import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from tests.coordinator.simulated_log import error_of
from tests.coordinator.transaction.transaction_bench import ID, ORDERS, TIMEOUT_MS, Bench

LAST_EPOCH = 32_766


class TestAnIdThatNobodyHasUsed:
    def test_gets_a_producer_id_of_its_own(self) -> None:
        bench = Bench()
        assert bench.init() == ProducerIdentity(1_000, 0)
        assert bench.init(transactional_id="other") == ProducerIdentity(1_001, 0)
        assert bench.state() == "Empty"

    def test_accepts_any_identity_of_a_producer(self) -> None:
        assert Bench().init(ProducerIdentity(5, 3)) == ProducerIdentity(1_000, 0)

    @pytest.mark.parametrize(
        ("transactional_id", "timeout_ms", "code"),
        [
            ("", 1_000, ErrorCode.invalid_request),
            ("x" * 32_768, 1_000, ErrorCode.invalid_request),
            ("ü" * 16_384, 1_000, ErrorCode.invalid_request),
            (ID, 0, ErrorCode.invalid_transaction_timeout),
            (ID, -1, ErrorCode.invalid_transaction_timeout),
            (ID, 900_001, ErrorCode.invalid_transaction_timeout),
        ],
    )
    def test_is_refused_if_it_makes_no_sense(
        self, transactional_id: str, timeout_ms: int, code: ErrorCode
    ) -> None:
        reply = Bench().start_init(transactional_id=transactional_id, timeout_ms=timeout_ms)
        assert error_of(reply) is code

    def test_is_refused_if_there_are_too_many(self) -> None:
        bench = Bench(TransactionSettings(partition_count=2, max_ids=1))
        bench.init()
        assert error_of(bench.start_init(transactional_id="other")) is ErrorCode.policy_violation
        assert bench.init().producer_epoch == 1

    def test_has_no_producer_without_a_producer_id(self) -> None:
        bench = Bench()
        bench.producer_ids.failing = True
        assert error_of(bench.start_init()) is ErrorCode.coordinator_not_available
        assert bench.log.batches == []

    def test_has_no_producer_if_it_could_not_be_written(self) -> None:
        bench = Bench()
        bench.log.failing = True
        assert error_of(bench.start_init()) is ErrorCode.coordinator_not_available
        bench.log.failing = False
        assert bench.init() == ProducerIdentity(1_001, 0)


class TestAnotherProducer:
    def test_raises_the_epoch(self) -> None:
        bench = Bench()
        first = bench.init()
        assert bench.init() == ProducerIdentity(1_000, 1)
        assert error_of(bench.start_add(first, ORDERS)) is ErrorCode.producer_fenced

    def test_begins_with_a_new_id_when_the_epochs_are_used_up(self) -> None:
        bench = Bench()
        bench.put(ProducerIdentity(1, LAST_EPOCH), TransactionState.COMPLETE_COMMIT)
        assert bench.init() == ProducerIdentity(1_000, 0)

    @pytest.mark.parametrize("version", [0, 2])
    def test_has_the_open_transaction_aborted_and_comes_again(self, version: int) -> None:
        bench = Bench()
        bench.version = version
        first = bench.init()
        bench.add(first, ORDERS, version=version)
        assert error_of(bench.start_init()) is ErrorCode.concurrent_transactions
        assert bench.partitions.ends() == [(ORDERS, False)]
        (_, marker) = bench.partitions.written[0]
        assert marker.producer == ProducerIdentity(1_000, 1)
        assert bench.init() == ProducerIdentity(1_000, 2)
        assert error_of(bench.start_end(first)) is ErrorCode.producer_fenced

    def test_waits_while_an_end_is_carried_out(self) -> None:
        bench = Bench()
        first = bench.init()
        bench.add(first, ORDERS)
        bench.partitions.held = True
        ending = bench.start_end(first)
        assert error_of(bench.start_init()) is ErrorCode.concurrent_transactions
        bench.partitions.release()
        assert ending.result() == ProducerIdentity(1_000, 1)
        assert bench.init() == ProducerIdentity(1_000, 2)

    def test_that_fences_the_last_epoch_leaves_a_new_id(self) -> None:
        bench = Bench()
        bench.put(
            ProducerIdentity(1, LAST_EPOCH),
            TransactionState.ONGOING,
            partitions=frozenset({ORDERS}),
            started_at_ms=bench.wall_ms,
        )
        assert error_of(bench.start_init()) is ErrorCode.concurrent_transactions
        assert bench.partitions.written[0][1].producer == ProducerIdentity(1, LAST_EPOCH + 1)
        assert bench.init() == ProducerIdentity(1_000, 1)


class TestAProducerThatGoesOn:
    """After an error, with the producer's earlier identity (KIP-360)."""

    def test_raises_its_epoch(self) -> None:
        bench = Bench()
        first = bench.init()
        assert bench.init(first) == ProducerIdentity(1_000, 1)

    def test_gets_the_same_answer_to_a_repeated_request(self) -> None:
        bench = Bench()
        first = bench.init()
        assert bench.init(first) == bench.init(first) == ProducerIdentity(1_000, 1)

    def test_is_fenced_if_another_has_come(self) -> None:
        bench = Bench()
        first = bench.init()
        bench.init()
        assert error_of(bench.start_init(first)) is ErrorCode.producer_fenced

    @pytest.mark.parametrize("version", [0, 2])
    def test_is_fenced_if_the_one_after_it_took_too_long(self, version: int) -> None:
        bench = Bench()
        bench.version = version
        first = bench.init()
        bench.add(bench.init(first), ORDERS, version=version)
        bench.advance(2 * TIMEOUT_MS)
        assert bench.state() == "CompleteAbort"
        assert error_of(bench.start_init(first)) is ErrorCode.producer_fenced

    def test_is_fenced_if_it_has_another_id(self) -> None:
        bench = Bench()
        bench.init()
        assert error_of(bench.start_init(ProducerIdentity(3, 0))) is ErrorCode.producer_fenced

    def test_gets_a_new_id_when_its_epochs_are_used_up_also_if_it_asks_again(self) -> None:
        bench = Bench()
        last = ProducerIdentity(1, LAST_EPOCH)
        bench.put(last, TransactionState.COMPLETE_COMMIT)
        assert bench.init(last) == ProducerIdentity(1_000, 0)
        assert bench.init(last) == ProducerIdentity(1_000, 0)


class TestAnIdWhoseNewestEpochsMayBeLost:
    """After a loss of power, partitions may have batches with epochs that the coordinator does not know."""

    def test_begins_once_with_a_new_producer_id(self) -> None:
        bench = Bench()
        bench.init()
        bench.was_closed_cleanly = False
        bench.restart()
        assert bench.init() == ProducerIdentity(1_001, 0)
        assert bench.init() == ProducerIdentity(1_001, 1)

    def test_is_known_after_clean_ends_until_its_next_producer(self) -> None:
        bench = Bench()
        bench.init()
        bench.was_closed_cleanly = False
        for _ in range(2):
            bench.restart()
            assert bench.coordinator.may_lack_epochs
            bench.was_closed_cleanly = not bench.coordinator.may_lack_epochs
        assert bench.init() == ProducerIdentity(1_001, 0)
        assert not bench.coordinator.may_lack_epochs

    def test_is_known_after_an_end_before_its_log_is_loaded_anew(self) -> None:
        bench = Bench()
        bench.init()
        assert not bench.coordinator.may_lack_epochs
        for partition in range(bench.coordinator.partition_count):
            bench.coordinator.unload(partition)
        assert bench.coordinator.may_lack_epochs

    def test_keeps_its_producer_id_after_a_clean_end(self) -> None:
        bench = Bench()
        bench.init()
        bench.restart()
        assert bench.init() == ProducerIdentity(1_000, 1)

    def test_begins_with_a_new_producer_id_after_its_log_was_opened_anew(self) -> None:
        bench = Bench()
        first = bench.init()
        bench.reload()
        assert bench.init(first) == ProducerIdentity(1_001, 0)

    def test_refuses_a_producer_with_an_epoch_that_it_does_not_know(self) -> None:
        bench = Bench()
        first = bench.init()
        bench.reload()
        lost = first._replace(producer_epoch=1)
        assert error_of(bench.start_init(lost)) is ErrorCode.producer_fenced
        assert bench.init() == ProducerIdentity(1_001, 0)

    def test_goes_on_with_the_transaction_of_its_producer(self) -> None:
        bench = Bench()
        first = bench.init()
        bench.add(first, ORDERS)
        bench.reload()
        assert bench.end(first) == ProducerIdentity(1_000, 1)
