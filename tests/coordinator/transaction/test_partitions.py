"""The partitions of a transaction, and which producers may write to them."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.transaction import TransactionState
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from tests.coordinator.simulated_log import error_of
from tests.coordinator.transaction.transaction_bench import BILLS, ID, ORDERS, Bench

PRODUCER = ProducerIdentity(9, 5)


def look_up(bench: Bench, producer: ProducerIdentity = PRODUCER) -> ErrorCode | bool:
    try:
        return bench.coordinator.takes_part(ID, producer, ORDERS)
    except ApiError as error:
        return error.code


def test_partitions_take_part_once_they_are_added_until_the_end() -> None:
    bench = Bench()
    producer = bench.init()
    assert look_up(bench, producer) is False
    bench.add(producer, ORDERS)
    assert bench.state() == "Ongoing"
    assert look_up(bench, producer) is True
    raised = bench.end(producer)
    assert look_up(bench, producer) is ErrorCode.producer_fenced
    assert look_up(bench, raised) is False


def test_partitions_are_added_once() -> None:
    bench = Bench()
    producer = bench.init()
    for _ in range(3):
        bench.add(producer, ORDERS)
    bench.add(producer, ORDERS, BILLS)
    assert len(bench.log.batches) == 3
    assert set(bench.coordinator.describe(ID).partitions) == {ORDERS, BILLS}


def test_partitions_do_not_take_part_if_that_could_not_be_written() -> None:
    bench = Bench()
    producer = bench.init()
    bench.log.failing = True
    assert error_of(bench.start_add(producer, ORDERS)) is ErrorCode.coordinator_not_available
    assert look_up(bench, producer) is False
    assert bench.state() == "Empty"


def test_partitions_begin_the_transaction_when_the_first_is_added() -> None:
    bench = Bench()
    producer = bench.init()
    assert bench.coordinator.describe(ID).started_at_ms == -1
    bench.advance(50)
    bench.add(producer, ORDERS)
    began_ms = bench.wall_ms
    bench.advance(50)
    bench.add(producer, BILLS)
    assert bench.coordinator.describe(ID).started_at_ms == began_ms


@pytest.mark.parametrize(
    ("producer", "state", "code"),
    [
        (ProducerIdentity(8, 5), TransactionState.ONGOING, ErrorCode.invalid_producer_id_mapping),
        (ProducerIdentity(9, 4), TransactionState.ONGOING, ErrorCode.producer_fenced),
        (ProducerIdentity(9, 6), TransactionState.EMPTY, ErrorCode.producer_fenced),
        (PRODUCER, TransactionState.PREPARE_COMMIT, ErrorCode.concurrent_transactions),
        (PRODUCER, TransactionState.PREPARE_ABORT, ErrorCode.concurrent_transactions),
        (ProducerIdentity(9, 4), TransactionState.PREPARE_ABORT, ErrorCode.producer_fenced),
    ],
)
def test_partitions_are_refused_to_others_and_between_transactions(
    producer: ProducerIdentity, state: TransactionState, code: ErrorCode
) -> None:
    bench = Bench()
    bench.partitions.held = True
    bench.put(PRODUCER, state, partitions=frozenset({ORDERS}), started_at_ms=bench.wall_ms)
    assert error_of(bench.start_add(producer, BILLS)) is code
    assert look_up(bench, producer) is code


def test_partitions_of_an_unknown_id_belong_to_no_producer() -> None:
    bench = Bench()
    assert error_of(bench.start_add(PRODUCER, ORDERS)) is ErrorCode.invalid_producer_id_mapping
    assert look_up(bench) is ErrorCode.invalid_producer_id_mapping


def test_partitions_are_not_known_before_the_log_is_loaded() -> None:
    bench = Bench(loaded=False)
    assert look_up(bench) is ErrorCode.coordinator_load_in_progress
    assert error_of(bench.start_add(PRODUCER, ORDERS)) is ErrorCode.coordinator_load_in_progress


def test_partitions_are_known_with_the_last_step_of_a_load() -> None:
    bench = Bench()
    producer = bench.init()
    bench.add(producer, ORDERS)
    partition = bench.coordinator.partition_of(ID)
    stored = bench.log.stored(partition)
    bench.coordinator.unload(partition)
    step_count = 0
    for _ in bench.coordinator.load(partition, stored):
        step_count += 1
        assert look_up(bench, producer) is ErrorCode.coordinator_load_in_progress
    assert step_count == len(stored) > 1
    assert look_up(bench, producer) is True
