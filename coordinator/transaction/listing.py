"""The answers of ListTransactions and DescribeTransactions (KIP-664, KIP-994). Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from barnabas.coordinator.transaction.transaction import Transaction, TransactionState
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
    transactions: Iterable[Transaction], wanted: TransactionFilter, wall_ms: int
) -> list[ListedTransaction]:
    """The ids that pass all filters."""
    return [
        ListedTransaction(one.transactional_id, one.producer_id, one.state.label)
        for one in transactions
        if _passes(one, wanted, wall_ms)
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


def _passes(one: Transaction, wanted: TransactionFilter, wall_ms: int) -> bool:
    if wanted.producer_ids and one.producer_id not in wanted.producer_ids:
        return False
    if wanted.states and one.state.label not in wanted.states:
        return False
    if wanted.longer_than_ms is not None and wall_ms - one.started_at_ms <= wanted.longer_than_ms:
        return False
    return wanted.matches_id is None or wanted.matches_id(one.transactional_id)
