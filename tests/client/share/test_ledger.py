"""Held records, queued acknowledgements, and the effect of each answer of the broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import pytest

from barnabas.client.share.acknowledgements import AcknowledgeType, Confirmation, Lot
from barnabas.client.share.held_record import HeldRecord, RecordState
from barnabas.client.share.ledger import RETRIES_MAX, Ledger
from barnabas.client.share.renewals import RENEWALS_REFUSED_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

A, B = TopicIdPartition(UUID(int=1), 0), TopicIdPartition(UUID(int=1), 1)
LOCK_MS = 1_000
GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
NONE, STALE = ErrorCode.none, ErrorCode.invalid_record_state


class Bench:
    """A ledger with its confirmations."""

    def __init__(self) -> None:
        self.confirmed: list[Confirmation] = []
        self.pending_count = 0
        self.ledger = Ledger(self.confirmed.append, self._note_pending)

    def _note_pending(self) -> None:
        self.pending_count += 1

    def acquire(self, *offsets: int, partition: TopicIdPartition = A, at_ms: int = 0) -> list[HeldRecord]:
        records = [HeldRecord(partition, offset, 1, at_ms, at_ms + LOCK_MS) for offset in offsets]
        self.ledger.acquire(records)
        return records

    def accept(self, *records: HeldRecord) -> None:
        for record in records:
            self.ledger.settle(record, ACCEPT)

    def take(self, now_ms: int = 0, *, with_renewals: bool = True) -> list[Lot]:
        return self.ledger.take(now_ms, with_renewals=with_renewals)

    def take_one(self, now_ms: int = 0) -> Lot:
        (lot,) = self.take(now_ms)
        return lot

    def answer(self, lot: Lot, code: ErrorCode, *, retry_at_ms: int | None = 0) -> None:
        self.ledger.complete(lot, code, None, lock_deadline_ms=5 * LOCK_MS, retry_at_ms=retry_at_ms)

    @property
    def outcomes(self) -> list[tuple[list[int], ErrorCode]]:
        return [(list(one.offsets), one.code) for one in self.confirmed]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def offsets(lot: Lot) -> list[int]:
    return sorted(lot.acknowledgements)


def test_records_accepted_together_are_sent_together(bench: Bench) -> None:
    bench.accept(*bench.acquire(1, 2), *bench.acquire(7, partition=B))
    lots = bench.take()
    assert [(lot.partition, offsets(lot)) for lot in lots] == [(A, [1, 2]), (B, [7])]
    assert not bench.ledger.has_pending
    for lot in lots:
        bench.answer(lot, NONE)
    assert bench.outcomes == [([1, 2], NONE), ([7], NONE)]
    assert bench.ledger.is_empty


def test_the_first_acknowledgement_of_several_asks_to_be_sent(bench: Bench) -> None:
    bench.accept(*bench.acquire(1, 2, 3))
    assert bench.pending_count == 1


def test_gaps_are_acknowledged_without_an_outcome(bench: Bench) -> None:
    bench.ledger.acknowledge_unheld(A, [4, 5], GAP)
    lot = bench.take_one()
    assert [one.acknowledge_type for one in lot.acknowledgements.values()] == [GAP, GAP]
    bench.answer(lot, NONE)
    assert bench.outcomes == []
    assert bench.ledger.is_empty


def test_a_record_whose_lock_has_ended_is_not_sent_with_the_others(bench: Bench) -> None:
    (old,), (new,) = bench.acquire(1, at_ms=0), bench.acquire(2, at_ms=500)
    bench.accept(old, new)
    assert offsets(bench.take_one(now_ms=LOCK_MS)) == [2]
    assert old.state is RecordState.LOST
    assert bench.outcomes == [([1], STALE)]


def test_a_lot_whose_locks_have_all_ended_is_not_sent(bench: Bench) -> None:
    bench.accept(*bench.acquire(1, 2))
    passed: list[bool] = []
    bench.ledger.barrier(lambda: passed.append(True))
    assert bench.take(now_ms=LOCK_MS) == []
    assert passed
    assert bench.ledger.is_empty


def test_a_refused_lot_is_halved_until_the_stale_record_is_alone(bench: Bench) -> None:
    bench.accept(*bench.acquire(*range(8)))
    stale, sent = 5, 0
    while bench.ledger.has_pending:
        lot = bench.take_one()
        bench.answer(lot, STALE if stale in lot.acknowledgements else NONE)
        sent += 1
    assert sorted((sorted(some), code) for some, code in bench.outcomes) == [
        ([0, 1, 2, 3], NONE),
        ([4], NONE),
        ([5], STALE),
        ([6, 7], NONE),
    ]
    assert sent == 7
    assert bench.ledger.is_empty


def test_nothing_new_joins_a_lot_that_was_refused(bench: Bench) -> None:
    records = bench.acquire(1, 2, 3)
    bench.accept(*records[:2])
    bench.answer(bench.take_one(), STALE)
    bench.accept(records[2])
    assert [offsets(bench.take_one()) for _ in range(3)] == [[1], [2], [3]]


def test_a_temporary_error_is_retried_after_a_pause(bench: Bench) -> None:
    bench.accept(*bench.acquire(1))
    bench.answer(bench.take_one(), ErrorCode.coordinator_not_available, retry_at_ms=100)
    assert bench.ledger.next_retry_ms() == 100
    assert bench.take(now_ms=99) == []
    bench.answer(bench.take_one(now_ms=100), NONE)
    assert bench.outcomes == [([1], NONE)]


def test_retries_are_limited(bench: Bench) -> None:
    bench.ledger.acknowledge_unheld(A, [1], GAP)
    for _ in range(RETRIES_MAX + 1):
        bench.answer(bench.take_one(), ErrorCode.kafka_storage_error)
    assert bench.ledger.is_empty


@pytest.mark.parametrize("code", [ErrorCode.unknown_server_error, ErrorCode.unknown_topic_id])
def test_other_refusals_lose_the_records(bench: Bench, code: ErrorCode) -> None:
    (record,) = bench.acquire(1)
    bench.accept(record)
    bench.answer(bench.take_one(), code)
    assert record.state is RecordState.LOST
    assert bench.outcomes == [([1], code)]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.not_leader_or_follower,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
    ],
)
def test_a_broker_without_the_partition_loses_all_its_locks(bench: Bench, code: ErrorCode) -> None:
    told, waiting, held = bench.acquire(1, 2, 3)
    (elsewhere,) = bench.acquire(1, partition=B)
    bench.accept(told)
    lot = bench.take_one()
    bench.accept(waiting)
    bench.answer(lot, code)
    assert {one.state for one in (told, waiting, held)} == {RecordState.LOST}
    assert elsewhere.state is RecordState.HELD
    assert not bench.ledger.has_pending


def test_a_lost_session_loses_everything(bench: Bench) -> None:
    told, waiting, held = bench.acquire(1, 2, 3)
    bench.accept(told)
    lot = bench.take_one()
    bench.accept(waiting)
    passed: list[bool] = []
    bench.ledger.barrier(lambda: passed.append(True))
    bench.ledger.lose_all(ErrorCode.network_exception)
    assert {one.state for one in (told, waiting, held)} == {RecordState.LOST}
    assert sorted(bench.outcomes) == [
        ([1], ErrorCode.network_exception),
        ([2], ErrorCode.network_exception),
    ]
    assert passed
    assert bench.ledger.is_empty
    bench.answer(lot, NONE)
    assert len(bench.outcomes) == 2


def test_lots_of_a_lost_session_that_are_repeated_wait_for_the_first_answer(bench: Bench) -> None:
    told, held = bench.acquire(1, 2)
    bench.accept(told)
    lot = bench.take_one()
    bench.ledger.lose_all(ErrorCode.network_exception, repeated=[lot])
    assert (told.state, held.state, bench.outcomes) == (RecordState.LOST, RecordState.LOST, [])
    bench.answer(lot, NONE, retry_at_ms=None)
    assert bench.outcomes == [([1], NONE)]
    assert bench.ledger.is_empty


@pytest.mark.parametrize("code", [ErrorCode.invalid_record_state, ErrorCode.coordinator_not_available])
def test_the_answer_to_a_repeated_lot_is_final(bench: Bench, code: ErrorCode) -> None:
    bench.accept(*bench.acquire(1, 2))
    lot = bench.take_one()
    bench.ledger.lose_all(ErrorCode.network_exception, repeated=[lot])
    bench.answer(lot, code, retry_at_ms=None)
    assert bench.outcomes == [([1, 2], code)]
    assert not bench.ledger.has_pending


def test_lots_that_were_given_up_have_failed_once(bench: Bench) -> None:
    bench.accept(*bench.acquire(1))
    lot = bench.take_one()
    passed: list[bool] = []
    bench.ledger.barrier(lambda: passed.append(True))
    bench.ledger.give_up([lot], ErrorCode.network_exception)
    bench.ledger.give_up([lot], ErrorCode.network_exception)
    bench.answer(lot, NONE)
    assert bench.outcomes == [([1], ErrorCode.network_exception)]
    assert passed == [True]


def test_a_newer_delivery_makes_the_older_one_lost(bench: Bench) -> None:
    (older,) = bench.acquire(1)
    bench.accept(older)
    (newer,) = bench.acquire(1)
    assert older.state is RecordState.LOST
    assert bench.take() == []
    assert bench.outcomes == [([1], STALE)]
    bench.accept(newer)
    assert offsets(bench.take_one()) == [1]


def test_the_older_delivery_fails_when_the_newer_one_is_accepted_immediately(bench: Bench) -> None:
    bench.accept(*bench.acquire(1))
    bench.accept(*bench.acquire(1))
    assert bench.take() == []
    bench.answer(bench.take_one(), NONE)
    assert bench.outcomes == [([1], STALE), ([1], NONE)]


def test_a_late_answer_does_not_touch_the_newer_delivery(bench: Bench) -> None:
    (older,) = bench.acquire(1)
    bench.ledger.settle(older, RELEASE)
    lot = bench.take_one()
    (newer,) = bench.acquire(1)
    bench.answer(lot, NONE)
    assert newer.state is RecordState.HELD
    assert not bench.ledger.is_empty


def test_locks_are_renewed_when_half_is_over(bench: Bench) -> None:
    early, late = bench.acquire(1, at_ms=0)[0], bench.acquire(2, at_ms=400)[0]
    bench.ledger.renew_due(500, LOCK_MS, hold_ms_max=10_000)
    lot = bench.take_one(now_ms=500)
    assert (offsets(lot), lot.renews) == ([1], True)
    bench.answer(lot, NONE)
    assert (early.lock_deadline_ms, late.lock_deadline_ms) == (5 * LOCK_MS, 400 + LOCK_MS)
    assert early.state is RecordState.HELD
    assert bench.outcomes == []


@pytest.mark.parametrize(("now_ms", "hold_ms_max"), [(499, 10_000), (1_000, 10_000), (600, 600)])
def test_locks_are_not_renewed_too_early_too_late_or_beyond_hold_ms_max(
    bench: Bench, now_ms: int, hold_ms_max: int
) -> None:
    bench.acquire(1)
    bench.ledger.renew_due(now_ms, LOCK_MS, hold_ms_max)
    assert not bench.ledger.has_pending


def test_renewals_are_sent_without_a_fetch_and_later_acknowledgements_wait(bench: Bench) -> None:
    first, second = bench.acquire(1, 2)
    bench.ledger.renew(first)
    bench.accept(second)
    assert bench.ledger.has_renewals
    assert bench.take(with_renewals=False) == []
    assert [(offsets(bench.take_one()), bench.ledger.has_renewals) for _ in range(2)] == [
        ([1], False),
        ([2], False),
    ]


def test_a_record_accepted_before_its_renewal_was_sent_is_not_renewed(bench: Bench) -> None:
    (record,) = bench.acquire(1)
    bench.ledger.renew(record)
    bench.accept(record)
    assert bench.take() == []
    (lot,) = bench.take()
    assert not lot.renews


def test_renewals_that_are_always_refused_are_given_up(bench: Bench) -> None:
    records = bench.acquire(*range(64))
    for record in records:
        bench.ledger.renew(record)
    sent = 0
    while bench.ledger.has_pending:
        bench.answer(bench.take_one(), STALE)
        sent += 1
    assert sent <= 20
    assert {record.state for record in records} == {RecordState.HELD}
    assert sent > RENEWALS_REFUSED_MAX
    assert offsets_renewed(bench, 600) != []


def switch_off_renewals(bench: Bench) -> None:
    for record in bench.acquire(*range(100, 100 + RENEWALS_REFUSED_MAX)):
        bench.ledger.renew(record)
        bench.answer(bench.take_one(), STALE)


def offsets_renewed(bench: Bench, now_ms: int) -> list[int]:
    """The offsets whose renewal is sent after a check of the locks."""
    bench.ledger.renew_due(now_ms, LOCK_MS, hold_ms_max=10_000)
    return [offset for lot in bench.take(now_ms) for offset in offsets(lot)]


def test_the_first_granted_renewal_resumes_the_others(bench: Bench) -> None:
    switch_off_renewals(bench)
    bench.acquire(1, 2, 3)
    bench.ledger.renew_due(600, LOCK_MS, hold_ms_max=10_000)
    bench.answer(bench.take_one(600), NONE)
    assert offsets_renewed(bench, 600) == [2, 3]


def test_a_new_session_tries_all_renewals(bench: Bench) -> None:
    switch_off_renewals(bench)
    bench.ledger.lose_all(ErrorCode.network_exception)
    bench.acquire(1, 2, 3)
    assert offsets_renewed(bench, 600) == [1, 2, 3]


@pytest.mark.parametrize(
    "code", [ErrorCode.unknown_topic_id, ErrorCode.not_leader_or_follower, ErrorCode.unknown_server_error]
)
def test_other_refusals_of_renewals_do_not_affect_other_partitions(bench: Bench, code: ErrorCode) -> None:
    for partition in (TopicIdPartition(UUID(int=2), index) for index in range(2 * RENEWALS_REFUSED_MAX)):
        (record,) = bench.acquire(1, partition=partition)
        bench.ledger.renew(record)
        bench.answer(bench.take_one(), code)
        bench.ledger.lose(partition, code)
    bench.acquire(1, 2)
    assert offsets_renewed(bench, 600) == [1, 2]


def test_records_refused_together_are_tried_again(bench: Bench) -> None:
    records = bench.acquire(1, 2)
    for record in records:
        bench.ledger.renew(record)
    bench.answer(bench.take_one(), ErrorCode.unknown_server_error)
    assert offsets_renewed(bench, 600) == [1, 2]


def test_a_record_refused_alone_is_left_until_its_reader_asks_for_more_time(bench: Bench) -> None:
    (record,) = bench.acquire(1)
    bench.ledger.renew(record)
    bench.answer(bench.take_one(), STALE)
    assert offsets_renewed(bench, 600) == []
    asked = bench.ledger.renew(record)
    bench.answer(bench.take_one(600), NONE)
    assert asked.code is NONE
    assert record.lock_deadline_ms == 5 * LOCK_MS


def test_a_renewal_asked_for_twice_is_sent_once_and_answers_both(bench: Bench) -> None:
    (record,) = bench.acquire(1)
    asked = bench.ledger.renew(record)
    lot = bench.take_one()
    assert bench.ledger.renew(record) is asked
    assert not bench.ledger.has_pending
    bench.answer(lot, NONE)
    assert asked.code is NONE


ENDS_OF_A_RECORD: Sequence[tuple[Callable[[Ledger, HeldRecord], object], int, str]] = [
    (lambda ledger, record: ledger.settle(record, ACCEPT), 0, "The record was acknowledged before."),
    (lambda _, __: None, LOCK_MS, "The lock had ended."),
    (lambda ledger, _: ledger.release_all(0), 0, "The consumer was closed, which released the record."),
]


@pytest.mark.parametrize(("end", "now_ms", "reason"), ENDS_OF_A_RECORD)
def test_a_renewal_that_is_never_sent_is_answered_with_the_reason(
    bench: Bench, end: Callable[[Ledger, HeldRecord], object], now_ms: int, reason: str
) -> None:
    (record,) = bench.acquire(1)
    asked = bench.ledger.renew(record)
    end(bench.ledger, record)
    assert bench.take(now_ms) == []
    assert (asked.code, asked.message) == (STALE, reason)


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_renewal_ends_with_its_session(bench: Bench, is_sent: bool) -> None:
    (record,) = bench.acquire(1)
    asked = bench.ledger.renew(record)
    if is_sent:
        bench.take_one()
    bench.ledger.lose_all(ErrorCode.network_exception)
    assert asked.code is ErrorCode.network_exception


def test_unacknowledged_records_are_lost_when_their_lock_ends(bench: Bench) -> None:
    forgotten, accepted = bench.acquire(1, 2)
    bench.accept(accepted)
    bench.ledger.expire(LOCK_MS - 1)
    assert forgotten.state is RecordState.HELD
    bench.ledger.expire(LOCK_MS)
    assert (forgotten.state, accepted.state) == (RecordState.LOST, RecordState.SETTLED)


def test_releasing_all_does_not_change_acknowledged_records(bench: Bench) -> None:
    accepted, held = bench.acquire(1, 2)
    bench.accept(accepted)
    bench.ledger.release_all(0)
    (lot,) = bench.take()
    assert {offset: one.acknowledge_type for offset, one in lot.acknowledgements.items()} == {
        1: ACCEPT,
        2: RELEASE,
    }
    assert (accepted.state, held.state) == (RecordState.SETTLED, RecordState.RELEASED)
    bench.answer(lot, NONE)
    assert bench.outcomes == [([1], NONE)]
    assert bench.ledger.is_empty


def test_releasing_all_skips_lost_records(bench: Bench) -> None:
    (ended,), (held,) = bench.acquire(1, at_ms=0), bench.acquire(2, at_ms=500)
    bench.ledger.release_all(LOCK_MS)
    assert offsets(bench.take_one()) == [2]
    assert (ended.state, held.state) == (RecordState.LOST, RecordState.RELEASED)


def test_a_barrier_without_lots_is_passed_immediately(bench: Bench) -> None:
    passed: list[bool] = []
    bench.ledger.barrier(lambda: passed.append(True))
    assert passed == [True]
