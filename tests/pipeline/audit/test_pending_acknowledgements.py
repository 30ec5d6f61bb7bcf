"""Acknowledgements in transactions: no outcome before the transaction ends, then one."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.audit.tables import OPEN, VIOLATION
from barnabas.protocol.delivery_state import Cause, PendingAcknowledgement, StateRange, encode_condition
from tests.pipeline.audit.auditing import Audited, outcomes
from tests.pipeline.audit.test_state_topic import ACKNOWLEDGED, AVAILABLE, WrittenStateTopic
from tests.pipeline.audit.test_state_topic import outcomes as outcomes_in_topic
from tests.pipeline.audit.written_logs import WrittenGroup, WrittenLog, accepted, released

PENDING = PendingAcknowledgement(7, 0, 1, "member")
CONDITION = encode_condition(PENDING)


def pending(first: int, last: int, count: int = 1) -> StateRange:
    """Records that a member has accepted in a transaction that is open."""
    return released(first, last, count, Cause.NONE)._replace(condition=PENDING)


def test_an_open_transaction_has_no_outcome(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(pending(0, 1), accepted(2, 4))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [(2, 4, 1, "acknowledged", "accept", "member", 21)]
    (row,) = audited.table(OPEN)
    assert (row["firstOffset"], row["lastOffset"], row["state"]) == (0, 1, "available")
    assert audited.history["openRecordCount"] == 17
    assert audited.violations == []


def test_a_commit_and_an_abort_are_one_outcome_each(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(pending(0, 3))
    group.delta(accepted(0, 1))
    group.delta(released(2, 3))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [
        (0, 1, 1, "acknowledged", "accept", "member", 22),
        (2, 3, 1, "available", "release", "member", 23),
    ]
    assert audited.violations == []


def test_a_pending_acknowledgement_that_only_a_checkpoint_has_is_no_outcome(
    log: WrittenLog, tmp_path: Path
) -> None:
    group = WrittenGroup(log)
    group.checkpoint(pending(0, 1))
    group.delta(accepted(0, 1))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [(0, 1, 1, "acknowledged", "accept", "member", 22)]
    assert audited.violations == []


@pytest.fixture
def topic(tmp_path: Path) -> WrittenStateTopic:
    return WrittenStateTopic(tmp_path)


@pytest.mark.parametrize("has_snapshot", [False, True], ids=["updates", "a snapshot between"])
def test_in_the_state_topic_a_transaction_has_one_outcome(
    topic: WrittenStateTopic, has_snapshot: bool
) -> None:
    topic.snapshot(0)
    topic.update((0, 3, AVAILABLE, 1), condition=CONDITION)
    if has_snapshot:
        topic.snapshot(0, (0, 3, AVAILABLE, 1), condition=CONDITION)
    assert outcomes_in_topic(topic.audited()) == []
    topic.update((0, 1, ACKNOWLEDGED, 1))
    topic.update((2, 3, AVAILABLE, 1))
    first = 2 + has_snapshot
    audited = topic.audited()
    assert outcomes_in_topic(audited) == [
        (0, 1, 1, "acknowledged", first),
        (2, 3, 1, "available", first + 1),
    ]
    assert audited.table(VIOLATION) == []


def test_a_late_pending_write_changes_nothing(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    topic.update((0, 1, ACKNOWLEDGED, 1))
    topic.update((0, 1, AVAILABLE, 1), condition=CONDITION)
    assert outcomes_in_topic(topic.audited()) == [(0, 1, 1, "acknowledged", 1)]
