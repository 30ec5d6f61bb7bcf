"""Which locks a check renews, and how the broker's refusals change that."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.client.share.held_record import HeldRecord, RecordState, Renewal
from barnabas.client.share.renewals import RENEWALS_REFUSED_MAX, Renewals
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

PARTITION = TopicIdPartition(UUID(int=1), 0)
LOCK_MS = 1_000
HOLD_MS_MAX = 10_000
HALF_MS = LOCK_MS // 2


def held(count: int) -> list[HeldRecord]:
    return [HeldRecord(PARTITION, offset, 1, 0, LOCK_MS) for offset in range(count)]


def asked(count: int) -> list[HeldRecord]:
    """Records with an outstanding renewal."""
    records = held(count)
    for record in records:
        record.renewal = Renewal()
    return records


def due(renewals: Renewals, records: list[HeldRecord], now_ms: int = HALF_MS) -> list[HeldRecord]:
    return list(renewals.due(records, now_ms, LOCK_MS, HOLD_MS_MAX))


def switched_off() -> Renewals:
    renewals = Renewals()
    for record in asked(RENEWALS_REFUSED_MAX):
        assert not renewals.are_disabled
        renewals.refuse_alone(record, None)
    assert renewals.are_disabled
    return renewals


@pytest.mark.parametrize(("now_ms", "is_due"), [(HALF_MS - 1, False), (HALF_MS, True), (LOCK_MS, False)])
def test_a_lock_is_due_from_its_half_to_its_end(now_ms: int, is_due: bool) -> None:
    assert bool(due(Renewals(), held(1), now_ms)) is is_due


@pytest.mark.parametrize("state", [one for one in RecordState if one is not RecordState.HELD])
def test_a_record_that_is_not_held_is_not_due(state: RecordState) -> None:
    (record,) = held(1)
    record.state = state
    assert due(Renewals(), [record]) == []


def test_an_outstanding_renewal_is_not_repeated() -> None:
    assert due(Renewals(), asked(1)) == []


def test_a_granted_lock_starts_again_and_is_due_later() -> None:
    renewals, (record,) = Renewals(), asked(1)
    renewal = record.renewal
    renewals.grant([record], 3 * LOCK_MS)
    assert renewal is not None
    assert (renewal.code, record.lock_deadline_ms) == (ErrorCode.none, 3 * LOCK_MS)
    assert due(renewals, [record], 2 * LOCK_MS) == []
    assert due(renewals, [record], 3 * LOCK_MS - HALF_MS) == [record]


def test_a_record_refused_alone_is_not_tried_again_and_others_are() -> None:
    renewals, (refused,), other = Renewals(), asked(1), held(1)
    renewals.refuse_alone(refused, "no")
    assert refused.renewal is not None
    assert (refused.renewal.code, refused.renewal.message) == (ErrorCode.invalid_record_state, "no")
    assert due(renewals, [refused, *other]) == other


@pytest.mark.parametrize("code", [ErrorCode.invalid_record_state, ErrorCode.unknown_topic_id])
def test_other_refusals_do_not_count_as_switched_off(code: ErrorCode) -> None:
    renewals, records = Renewals(), asked(2 * RENEWALS_REFUSED_MAX)
    for record in records:
        renewals.refuse([record], code, None)
    assert not renewals.are_disabled
    assert due(renewals, records) == records


def test_one_record_at_a_time_is_tried_when_renewals_seem_switched_off() -> None:
    renewals, records = switched_off(), held(3)
    for record in records:
        assert due(renewals, records) == [record]
        record.renewal = Renewal()
        renewals.refuse_alone(record, None)
    assert due(renewals, records) == []


def test_a_grant_resumes_all_renewals() -> None:
    renewals = switched_off()
    renewals.grant(asked(1), 3 * LOCK_MS)
    records = held(3)
    assert due(renewals, records) == records


def test_a_new_session_resumes_all_renewals() -> None:
    renewals = switched_off()
    renewals.begin_anew()
    records = held(3)
    assert due(renewals, records) == records
