"""The outcome that the records of a transactional id name for a hanging transaction."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.named_outcome import HangingTransaction, is_held_open, named_outcome
from barnabas.coordinator.transaction.transaction import Transaction, TransactionState
from barnabas.protocol.identity import TopicNamePartition
from tests.coordinator.transaction.transaction_bench import BILLS, ID, ORDERS

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
COMMIT, ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
DONE = TransactionState.COMPLETE_COMMIT
PRODUCER_ID = 1_000


def record(
    state: TransactionState,
    epoch: int,
    *,
    version: int = 2,
    producer_id: int = PRODUCER_ID,
    where: TopicNamePartition = ORDERS,
) -> Transaction:
    """A record of `__transaction_state`; a decision with version 2 has raised the epoch already."""
    return Transaction(
        transactional_id=ID,
        producer_id=producer_id,
        producer_epoch=epoch,
        timeout_ms=60_000,
        state=state,
        partitions=frozenset({where}),
        updated_at_ms=0,
        client_version=version,
    )


def hanging(first_epoch: int, last_epoch: int, *, refused: bool = False) -> HangingTransaction:
    return HangingTransaction(ORDERS, PRODUCER_ID, first_epoch, last_epoch, refused)


def outcome(history: list[Transaction], what: HangingTransaction) -> TransactionState | None:
    decision = named_outcome(history, what)
    return None if decision is None else decision.state


class TestWithAnEpochForEachTransaction:
    @pytest.mark.parametrize("decided", [COMMIT, ABORT])
    def test_the_decision_of_that_epoch_is_named(self, decided: TransactionState) -> None:
        history = [
            record(EMPTY, 0),
            record(COMMIT, 1),
            record(ONGOING, 1),
            record(decided, 2),
            record(DONE, 2),
        ]
        assert outcome(history, hanging(1, 1)) is decided

    def test_decisions_before_and_after_it_do_not_matter(self) -> None:
        history = [record(ABORT, 1), record(COMMIT, 2), record(ABORT, 3)]
        assert outcome(history, hanging(1, 1)) is COMMIT

    def test_several_are_named_if_they_are_the_same(self) -> None:
        history = [record(ABORT, 1), record(COMMIT, 2), record(COMMIT, 3)]
        assert named_outcome(history, hanging(1, 2)) is history[2]

    def test_different_ones_name_nothing(self) -> None:
        assert outcome([record(COMMIT, 1), record(ABORT, 2), record(COMMIT, 3)], hanging(0, 2)) is None

    @pytest.mark.parametrize("epochs", [(0, 1), (1, 2)])
    def test_a_decision_that_is_gone_names_nothing(self, epochs: tuple[int, int]) -> None:
        assert outcome([record(COMMIT, 2)], hanging(*epochs)) is None

    def test_decisions_about_other_partitions_and_producers_do_not_matter(self) -> None:
        history = [record(ABORT, 1, where=BILLS), record(ABORT, 1, producer_id=7), record(COMMIT, 1)]
        assert outcome(history, hanging(0, 0)) is COMMIT


class TestWithOneEpochForAllTransactions:
    def test_all_decisions_since_the_producer_began_are_named_if_markers_were_refused(self) -> None:
        history = [record(EMPTY, 4), *(record(COMMIT, 4, version=0) for _ in range(3))]
        assert outcome(history, hanging(4, 4, refused=True)) is COMMIT
        assert outcome(history, hanging(4, 4)) is None

    def test_different_ones_name_nothing(self) -> None:
        history = [record(EMPTY, 4), record(ABORT, 4, version=0), record(COMMIT, 4, version=0)]
        assert outcome(history, hanging(4, 4, refused=True)) is None

    def test_the_abort_of_a_transaction_that_took_too_long_counts(self) -> None:
        """The coordinator has raised the epoch by it."""
        history = [record(EMPTY, 4), record(COMMIT, 4, version=0), record(ABORT, 5, version=1)]
        assert outcome(history, hanging(4, 4, refused=True)) is None

    def test_records_that_do_not_go_back_to_its_beginning_name_nothing(self) -> None:
        history = [record(DONE, 4, version=0), record(COMMIT, 4, version=0)]
        assert outcome(history, hanging(4, 4, refused=True)) is None
        assert outcome([record(DONE, 3, version=0), *history], hanging(4, 4, refused=True)) is COMMIT


@pytest.mark.parametrize("state", list(TransactionState))
def test_the_coordinator_holds_a_transaction_open_until_it_is_completed(state: TransactionState) -> None:
    assert is_held_open(record(state, 1), ORDERS) is (state in (ONGOING, COMMIT, ABORT))
    assert not is_held_open(record(state, 1), BILLS)
