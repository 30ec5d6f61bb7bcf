"""The outcome that `__transaction_state` still names for a transaction that hangs in a partition.

A transaction hangs if the log of a partition has it open and the coordinator has it no longer. It happens
when the partition never got the marker: its log refused it, or lost it with the power. The records of the
transactional id still say how its transactions ended. One marker ends all that the producer has open in the
log, so it may be written only if all those transactions had the same outcome.

With transaction.version 2 each transaction has an epoch of its own, and its batches show the epoch. With less
all transactions of a producer share one epoch: then the records must go back to the beginning of that epoch,
and something must show that the log refused the markers, since records that were lost with the power would
not be missed. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.coordinator.transaction.transaction import (
    EPOCH_RAISED_FROM,
    PREPARED,
    Transaction,
    TransactionState,
)
from barnabas.protocol.identity import TopicNamePartition


class HangingTransaction(NamedTuple):
    """Something that a producer has open in a log.

    `first_epoch` is the epoch of the first batch, `last_epoch` of the last one. `has_refused_markers`: the
    log has a marker of a coordinator that cannot be, so that it refused those of the real one.
    """

    partition: TopicNamePartition
    producer_id: int
    first_epoch: int
    last_epoch: int
    has_refused_markers: bool


def is_held_open(known: Transaction, partition: TopicNamePartition) -> bool:
    """Whether the coordinator is going to end the partition's transaction itself."""
    has_begun = known.state is TransactionState.ONGOING or known.state in PREPARED
    return has_begun and partition in known.partitions


def named_outcome(history: Sequence[Transaction], hanging: HangingTransaction) -> Transaction | None:
    """The newest decision that the marker has to carry out; None if the records don't name one outcome.

    `history` is all that the log of `__transaction_state` has of the transactional id, oldest first.
    """
    decided = [one for one in history if _may_have_written(one, hanging)]
    if not decided or len({one.commits for one in decided}) > 1:
        return None
    is_exact = all(_raises(one) for one in decided)
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
    # An abort by the coordinator has raised the epoch, an end by the producer has not.
    return hanging.first_epoch <= decision.producer_epoch <= hanging.last_epoch + 1


def _are_all_there(decided: Sequence[Transaction], hanging: HangingTransaction) -> bool:
    """Compaction takes the oldest records of an id first, so those in between are there as well."""
    ends = decided[0].producer_epoch - 1, decided[-1].producer_epoch - 1
    return ends == (hanging.first_epoch, hanging.last_epoch)


def _begins_in_time(history: Sequence[Transaction], hanging: HangingTransaction) -> bool:
    oldest = next(one for one in history if one.producer_id == hanging.producer_id)
    is_beginning = oldest.state is TransactionState.EMPTY
    return oldest.producer_epoch < hanging.first_epoch or (
        is_beginning and oldest.producer_epoch == hanging.first_epoch
    )


def _raises(decision: Transaction) -> bool:
    return decision.client_version >= EPOCH_RAISED_FROM
