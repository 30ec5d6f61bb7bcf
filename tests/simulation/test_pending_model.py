"""The model of acknowledgements in transactions, and the answers that it calls a broken promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.share_member import ACCEPT, RELEASE
from tests.simulation.model import ShareModel, Violation
from tests.simulation.pending_model import PendingModel
from tests.simulation.transaction_model import Outcome, Transaction

TOLD_MS = 10.0
TIMEOUT_MS = 1000


@pytest.fixture
def share() -> ShareModel:
    return ShareModel("group/t-0")


@pytest.fixture
def pending(share: ShareModel) -> PendingModel:
    return PendingModel(share, lambda: 50)


def joined(pending: PendingModel, ack_type: int = ACCEPT) -> Transaction:
    """A transaction in which the record at 4 is acknowledged, which was delivered twice."""
    transaction = Transaction("copier/0", 0, TIMEOUT_MS, 0)
    pending.sent({4: (ack_type, 2)}, transaction)
    pending.joined({4: (ack_type, 2)}, transaction, TOLD_MS)
    return transaction


def deliver(pending: PendingModel, count: int = 3, *, sent_ms: float = 20.0, wall_ms: int = 20) -> None:
    pending.delivered([(4, 4, count)], sent_ms=sent_ms, wall_ms=wall_ms, clock_changes=0)


def test_a_pending_record_is_not_delivered(pending: PendingModel) -> None:
    joined(pending)
    deliver(pending, 2, sent_ms=5.0)  # the delivery before the acknowledgement, late
    with pytest.raises(Violation, match="waits for copier/0"):
        deliver(pending)


def test_after_the_commit_it_is_final(pending: PendingModel, share: ShareModel) -> None:
    transaction = joined(pending)
    transaction.committing(20.0)
    transaction.commit()
    assert not share.final
    transaction.complete(30.0)
    assert share.final[4].what == ACCEPT


def test_a_committed_record_is_not_delivered_before_the_end_is_done(pending: PendingModel) -> None:
    transaction = joined(pending)
    transaction.committing(20.0)
    transaction.commit()
    with pytest.raises(Violation, match="is committed"):
        deliver(pending)


def commit_without_answer(transaction: Transaction) -> None:
    transaction.committing(20.0)


@pytest.mark.parametrize("end", [Transaction.abort, commit_without_answer])
def test_a_delivery_decides_for_the_abort(pending: PendingModel, end: Callable[[Transaction], None]) -> None:
    transaction = joined(pending)
    end(transaction)
    deliver(pending)
    assert transaction.outcome is Outcome.ABORTED
    assert not pending.explains(4, ACCEPT)


def test_the_timeout_is_an_abort(pending: PendingModel) -> None:
    transaction = joined(pending)
    deliver(pending, wall_ms=TIMEOUT_MS + 1)
    assert transaction.outcome is Outcome.ABORTED


def test_the_delivery_of_an_aborted_acknowledgement_counts(pending: PendingModel) -> None:
    joined(pending).abort()
    with pytest.raises(Violation, match="with count 2"):
        deliver(pending, 2)


def test_a_committed_release_tells_nothing_against_a_delivery(pending: PendingModel) -> None:
    transaction = joined(pending, RELEASE)
    transaction.committing(20.0)
    deliver(pending)
    assert transaction.outcome is Outcome.ENDING


def test_a_record_waits_since_its_confirmation_while_its_transaction_is_open(pending: PendingModel) -> None:
    transaction = joined(pending)
    assert pending.waiting_since(TOLD_MS, 20, 0) == {4: TOLD_MS}
    assert pending.waiting_since(TOLD_MS - 1, 20, 0) == {}, "it may have been confirmed after the request"
    assert pending.waiting_since(TOLD_MS, TIMEOUT_MS + 1, 0) == {}
    transaction.committing(20.0)
    assert pending.waiting_since(TOLD_MS, 20, 0) == {}


def test_an_end_explains_a_final_record_and_decides_for_the_commit(pending: PendingModel) -> None:
    transaction = joined(pending)
    assert not pending.explains(4, ACCEPT), "it is open"
    transaction.committing(20.0)
    assert pending.explains(4, ACCEPT)
    assert transaction.outcome is Outcome.COMMITTED


def test_a_reset_ends_all_promises(pending: PendingModel, share: ShareModel) -> None:
    joined(pending)
    share.reset()
    deliver(pending, 1)
