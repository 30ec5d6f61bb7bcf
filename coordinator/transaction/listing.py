"""The answers of ListTransactions and DescribeTransactions (KIP-664, KIP-994). Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from barnabas.coordinator.transaction.transaction import NO_TIME, Transaction, TransactionState
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition

_STATES = {state.label: state for state in TransactionState}
_NEVER_SEEN = frozenset({"Dead", "PrepareEpochFence"})
"""Momentary states of Kafka's coordinator; a filter may name them."""


class TransactionFilter(NamedTuple):
    """The filters of ListTransactions; an empty one, or None, passes all."""

    states: Collection[str] = ()
    producer_ids: Collection[int] = ()
    longer_than_ms: int | None = None
    """Only transactions that began more than this many ms ago, in any state."""
    matches_id: Callable[[str], bool] | None = None


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str


class DescribedTransaction(NamedTuple):
    """One id; of a transaction that is being completed, `partitions` are those without their marker."""

    transactional_id: str
    state: str
    producer: ProducerIdentity
    timeout_ms: int
    started_at_ms: int
    partitions: Collection[TopicNamePartition]


def unknown_states(names: Iterable[str]) -> list[str]:
    """The names that are not states."""
    return [name for name in names if name not in _STATES and name not in _NEVER_SEEN]


def listed(
    transactions: Iterable[Transaction], wanted: TransactionFilter, age_ms: Callable[[str], int]
) -> list[ListedTransaction]:
    """The ids that pass all filters. `age_ms` is the time since the newest transaction of an id began."""
    return [
        ListedTransaction(transaction.transactional_id, transaction.producer_id, transaction.state.label)
        for transaction in transactions
        if _passes(transaction, wanted, age_ms)
    ]


def described(
    transaction: Transaction, remaining: Collection[TopicNamePartition] | None
) -> DescribedTransaction:
    """One id's present state."""
    return DescribedTransaction(
        transaction.transactional_id,
        transaction.state.label,
        transaction.producer,
        transaction.timeout_ms,
        transaction.started_at_ms,
        transaction.partitions if remaining is None else remaining,
    )


def _passes(transaction: Transaction, wanted: TransactionFilter, age_ms: Callable[[str], int]) -> bool:
    if wanted.producer_ids and transaction.producer_id not in wanted.producer_ids:
        return False
    if wanted.states and transaction.state.label not in wanted.states:
        return False
    # As in Kafka, an id that has had no transaction passes the filter by age.
    if (
        wanted.longer_than_ms is not None
        and transaction.started_at_ms != NO_TIME
        and age_ms(transaction.transactional_id) <= wanted.longer_than_ms
    ):
        return False
    return wanted.matches_id is None or wanted.matches_id(transaction.transactional_id)
