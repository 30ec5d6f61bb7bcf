"""Records that wait for their first delivery, and records that expire, in an audit."""

from __future__ import annotations

from pathlib import Path

from barnabas.pipeline.audit.tables import OPEN, OUTCOME
from barnabas.protocol.delivery_state import Cause, Due, RecordState, StateRange
from tests.pipeline.audit.auditing import Audited
from tests.pipeline.audit.test_due_letters import outcomes
from tests.pipeline.audit.written_logs import (
    WrittenGroup,
    WrittenLog,
    accepted,
    archived,
    archiving,
    lettered,
)


def delayed(first: int, last: int) -> StateRange:
    """Records that were never delivered, and are not due."""
    return StateRange(first, last, RecordState.AVAILABLE, 0, condition=Due(1_800_000_000_000))


def expired(first: int, last: int, count: int = 0) -> StateRange:
    return archived(first, last, count, Cause.EXPIRED, member=None)


def test_a_delayed_record_is_open_and_has_no_outcome(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(delayed(0, 1))
    group.delta(accepted(2, 4))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [(2, 4, "acknowledged", "accept", None, "member", 22)]
    assert [(row["firstOffset"], row["lastOffset"]) for row in audited.table(OPEN)] == [(0, 1)]
    assert audited.violations == []


def test_a_record_that_expired_has_its_cause_with_or_without_a_delivery(
    log: WrittenLog, tmp_path: Path
) -> None:
    group = WrittenGroup(log)
    group.delta(delayed(0, 0), expired(1, 3))
    group.delta(expired(0, 0), expired(4, 4, count=2))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [
        (1, 3, "archived", "expired", None, None, 21),
        (0, 0, "archived", "expired", None, None, 22),
        (4, 4, "archived", "expired", None, None, 22),
    ]
    assert sum(row["recordCount"] for row in audited.table(OUTCOME)) == 5
    assert audited.history["startOffset"] == 5
    assert audited.violations == []


def test_an_expired_record_with_a_letter_is_one_outcome(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(archiving(0, 1, 0, Cause.EXPIRED, member=None))
    group.delta(lettered(0, 1, 0))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [(0, 1, "archived", "expired", "written", None, 21)]
    assert audited.violations == []
