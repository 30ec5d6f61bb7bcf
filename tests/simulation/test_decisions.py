"""The decisions that may be in force for a record, before and after a loss of power."""

from __future__ import annotations

from uuid import UUID

from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.protocol.identity import SharePartitionKey
from barnabas.share.partition.decision import Decision
from tests.simulation.decisions import Decisions

KEY = SharePartitionKey("group", UUID(int=1), 0)
OFFSET = 7


def decide(decisions: Decisions, cause: Cause, state: RecordState) -> None:
    decision = Decision()
    decision.changes.append(StateRange(OFFSET, OFFSET, state, 1, cause, "a"))
    decisions.note(KEY, decision)


def last_causes(decisions: Decisions) -> list[Cause | None]:
    return [one.cause for one in decisions.last_ended(KEY, OFFSET)]


def test_a_record_that_never_ended_has_no_last_decision() -> None:
    decisions = Decisions()
    decide(decisions, Cause.RELEASE, RecordState.AVAILABLE)
    assert last_causes(decisions) == []


def test_only_the_last_decision_counts_without_a_loss_after_it() -> None:
    decisions = Decisions()
    decide(decisions, Cause.ACCEPT, RecordState.ACKNOWLEDGED)
    decisions.note_loss()
    decide(decisions, Cause.REJECT, RecordState.ARCHIVING)
    assert last_causes(decisions) == [Cause.REJECT]


def test_after_a_loss_any_decision_may_be_the_last_one() -> None:
    decisions = Decisions()
    decide(decisions, Cause.ACCEPT, RecordState.ACKNOWLEDGED)
    decide(decisions, Cause.REJECT, RecordState.ARCHIVING)
    decisions.note_loss()
    assert last_causes(decisions) == [Cause.ACCEPT, Cause.REJECT]
