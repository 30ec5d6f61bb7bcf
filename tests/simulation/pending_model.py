"""The acknowledgements in transactions of one share group in one partition, by the answers that clients got.

While its transaction is open, an acknowledged record is delivered to no member. After the commit the
acknowledgement counts like any other; after an abort the record is delivered again, with a greater delivery
count. So a delivery decides the outcome of a transaction as a reader of committed records does: all its
acknowledgements and all its records count, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from tests.conformance.share_member import RELEASE
from tests.simulation.model import ShareModel, Violation
from tests.simulation.order_model import Types
from tests.simulation.transaction_model import Outcome, Transaction


class Pending(NamedTuple):
    """A confirmed acknowledgement that waits for the end of its transaction."""

    transaction: Transaction
    ack_type: int
    delivery_count: int
    told_ms: float


class PendingModel:
    """The acknowledgements in transactions, confirmed or not."""

    def __init__(self, share: ShareModel, log_end_offset: Callable[[], int]) -> None:
        self._share = share
        self._log_end_offset = log_end_offset
        self._generation = share.generation
        self._waiting: dict[int, Pending] = {}
        """By offset, the last confirmed one, until a delivery or the commit shows the outcome."""
        self._sent: dict[int, list[tuple[int, Transaction]]] = {}
        """By offset, every type that was ever sent in a transaction, with or without success."""

    def sent(self, types: Types, transaction: Transaction) -> None:
        """A member sends these acknowledgements, by offset, in a transaction."""
        for offset, (ack_type, _) in types.items():
            self._sent.setdefault(offset, []).append((ack_type, transaction))

    def joined(self, types: Types, transaction: Transaction, now_ms: float) -> None:
        """They are confirmed, and wait for the end of the transaction."""
        self._forget_outdated()
        for offset, (ack_type, count) in types.items():
            self._waiting[offset] = Pending(transaction, ack_type, count, now_ms)
        transaction.at_commit.append(partial(self._count, types, transaction, self._generation))

    def _count(self, types: Types, transaction: Transaction, generation: int, now_ms: float) -> None:
        """The transaction is committed, and its effects are done."""
        self._forget_outdated()
        if generation != self._generation:
            return
        for offset, ack in types.items():
            pending = self._waiting.get(offset)
            if pending is not None and pending.transaction is transaction:
                del self._waiting[offset]
                self._share.confirm({offset: ack}, now_ms, self._log_end_offset())

    def delivered(
        self,
        ranges: Iterable[tuple[int, int, int]],
        *,
        sent_ms: float,
        wall_ms: int,
        clock_changes: int,
    ) -> None:
        """In answer to a request sent at `sent_ms`, a member acquired these ranges, with their delivery
        counts.
        """
        self._forget_outdated()
        for first_offset, last_offset, delivery_count in ranges:
            for offset in range(first_offset, last_offset + 1):
                pending = self._waiting.get(offset)
                is_late = pending is not None and pending.told_ms > sent_ms
                if pending is None or (is_late and delivery_count <= pending.delivery_count):
                    continue
                self._check(offset, delivery_count, pending, wall_ms, clock_changes)
                del self._waiting[offset]

    def _check(
        self, offset: int, delivery_count: int, pending: Pending, wall_ms: int, clock_changes: int
    ) -> None:
        transaction = pending.transaction
        if transaction.outcome is Outcome.LOST:
            return
        where = f"{self._share.name}: {offset}"
        if transaction.is_surely_open(wall_ms, clock_changes):
            raise Violation(f"{where} is delivered, but its acknowledgement waits for {transaction.name}")
        if delivery_count <= pending.delivery_count:
            raise Violation(
                f"{where} is delivered with count {delivery_count}, but was acknowledged at "
                f"{pending.delivery_count} in {transaction.name}"
            )
        if pending.ack_type == RELEASE:
            return
        if transaction.outcome is Outcome.OPEN:
            transaction.abort()  # by its timeout
        transaction.missed(f"{where} is delivered again; its acknowledgement")

    def waiting_since(self, sent_ms: float, wall_ms: int, clock_changes: int) -> dict[int, float]:
        """The records whose acknowledgements have certainly waited since a request was sent, each with the
        time when its acknowledgement was confirmed.
        """
        self._forget_outdated()
        return {
            offset: pending.told_ms
            for offset, pending in self._waiting.items()
            if pending.told_ms <= sent_ms and pending.transaction.is_surely_open(wall_ms, clock_changes)
        }

    def open_transactions(
        self, offsets: Iterable[int] | None, *, wall_ms: int, clock_changes: int
    ) -> list[Transaction]:
        """The transactions, certainly open, for which acknowledgements of these records wait, or of all."""
        self._forget_outdated()
        chosen = self._waiting if offsets is None else self._waiting.keys() & set(offsets)
        transactions = [self._waiting[offset].transaction for offset in sorted(chosen)]
        return [one for one in transactions if one.is_surely_open(wall_ms, clock_changes)]

    def explains(self, offset: int, ack_type: int | None) -> bool:
        """The record has ended so: whether a transaction that may be committed is the reason. If it can only
        be one, this decides its outcome.
        """
        possible = {
            transaction.name: transaction
            for sent_type, transaction in self._sent.get(offset, ())
            if sent_type == ack_type and transaction.outcome not in (Outcome.OPEN, Outcome.ABORTED)
        }
        if len(possible) == 1:
            for transaction in possible.values():
                transaction.commit()
        return bool(possible)

    def _forget_outdated(self) -> None:
        if self._generation != self._share.generation:
            self._generation = self._share.generation
            self._waiting.clear()
