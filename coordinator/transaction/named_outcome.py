"""The outcome that the records in `__transaction_state` name for a hanging transaction.

A transaction hangs if the log of a partition has it open and the coordinator has no such open transaction.
This happens when the partition did not get the marker: its log refused it, or lost it in a power failure. The
records of the transactional id still name the ends of its transactions. One marker ends all batches that the
producer has open in the log, so it may be written only if all those transactions had the same outcome.

With transaction.version 2 each transaction has its own epoch, and its batches show the epoch. With lower
versions all transactions of a producer share one epoch. Then the records must go back to the beginning of
that epoch, and there must be evidence that the log refused the markers, because records that were lost in a
power failure would not be noticed. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.coordinator.transaction.transaction import (
    EPOCH_RAISED_FROM,
    PREPARED,
    Participant,
    Transaction,
    TransactionState,
)
from barnabas.protocol.identity import TopicNamePartition


class HangingTransaction(NamedTuple):
    """The open batches of a producer in a log.

    `first_epoch` is the epoch of the first batch, `last_epoch` of the last one. With `has_refused_markers`
    the log has a marker with a coordinator epoch that cannot exist, so that it refused the real coordinator's
    markers.
    """

    partition: TopicNamePartition
    producer_id: int
    first_epoch: int
    last_epoch: int
    has_refused_markers: bool


def is_held_open(known: Transaction, participant: Participant) -> bool:
    """Whether the coordinator will end the participant's transaction itself."""
    has_begun = known.state is TransactionState.ONGOING or known.state in PREPARED
    return has_begun and known.has(participant)


def named_outcome(history: Sequence[Transaction], hanging: HangingTransaction) -> Transaction | None:
    """The newest decision, which the marker has to carry out; None if the records do not name one outcome.

    `history` is all records of the transactional id in the log of `__transaction_state`, oldest first.
    """
    decided = [transaction for transaction in history if _may_have_written(transaction, hanging)]
    if not decided or len({transaction.commits for transaction in decided}) > 1:
        return None
    is_exact = all(_raises(transaction) for transaction in decided)
    is_known = _are_all_there(decided, hanging) if is_exact else _begins_in_time(history, hanging)
    return decided[-1] if is_known and (is_exact or hanging.has_refused_markers) else None


def _may_have_written(decision: Transaction, hanging: HangingTransaction) -> bool:
    """Whether it is a decision about batches that the producer has open in the log."""
    if decision.state not in PREPARED or decision.producer_id != hanging.producer_id:
        return False
    if hanging.partition not in decision.partitions:
        return False
    if _raises(decision):
        return hanging.first_epoch <= decision.producer_epoch - 1 <= hanging.last_epoch
    # An abort by the coordinator has raised the epoch; an end by the producer has not.
    return hanging.first_epoch <= decision.producer_epoch <= hanging.last_epoch + 1


def _are_all_there(decided: Sequence[Transaction], hanging: HangingTransaction) -> bool:
    """Compaction removes the oldest records of an id first, so the records in between are there too."""
    ends = decided[0].producer_epoch - 1, decided[-1].producer_epoch - 1
    return ends == (hanging.first_epoch, hanging.last_epoch)


def _begins_in_time(history: Sequence[Transaction], hanging: HangingTransaction) -> bool:
    oldest = next(transaction for transaction in history if transaction.producer_id == hanging.producer_id)
    is_beginning = oldest.state is TransactionState.EMPTY
    return oldest.producer_epoch < hanging.first_epoch or (
        is_beginning and oldest.producer_epoch == hanging.first_epoch
    )


def _raises(decision: Transaction) -> bool:
    return decision.client_version >= EPOCH_RAISED_FROM
