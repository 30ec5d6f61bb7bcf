"""The checks of an audit on the share state in a log, and their violations.

A violation is a row, never an exception: a log with violations is audited to its end. The table, the report
and docs/audit.md use the names of the checks.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Check(StrEnum):
    """The checks by name."""

    START_OFFSET_BACK = "start_offset_back"
    FINAL_CHANGED = "final_changed"
    DELIVERY_COUNT_BACK = "delivery_count_back"
    ARCHIVING_LEFT = "archiving_left"
    LETTER_NOT_DUE = "letter_not_due"
    CHAIN_BROKEN = "chain_broken"
    AFTER_TOMBSTONE = "after_tombstone"
    CHECKPOINT_EPOCH_BACK = "checkpoint_epoch_back"
    STATE_EPOCH_BACK = "state_epoch_back"
    INCARNATION_BACK = "incarnation_back"
    CHECKPOINT_DIFFERS = "checkpoint_differs"
    BEYOND_THE_LOG = "beyond_the_log"
    MALFORMED = "malformed"
    NOT_FOLLOWED = "not_followed"
    DAMAGED = "damaged"


MEANINGS: Final = {
    Check.START_OFFSET_BACK: "the start offset went back without a reset",
    Check.FINAL_CHANGED: "a finished record got a second outcome",
    Check.DELIVERY_COUNT_BACK: "a delivery count went back without a reset",
    Check.ARCHIVING_LEFT: "a record on its way to a dead letter became Available or Acknowledged",
    Check.LETTER_NOT_DUE: "a dead letter ended, and the record was not on its way to one",
    Check.CHAIN_BROKEN: "a control record doesn't follow the one before it",
    Check.AFTER_TOMBSTONE: "a delta follows the end of its group's state",
    Check.CHECKPOINT_EPOCH_BACK: "a checkpoint's epoch is not above the one before",
    Check.STATE_EPOCH_BACK: "a state epoch went back",
    Check.INCARNATION_BACK: "a group's incarnation went back",
    Check.CHECKPOINT_DIFFERS: "a checkpoint contradicts the state replayed up to it",
    Check.BEYOND_THE_LOG: "a range has no offsets, or offsets that the log had not reached",
    Check.MALFORMED: "a control record cannot be read",
    Check.NOT_FOLLOWED: "more ranges at a time than an audit holds; checks continue from the next checkpoint",
    Check.DAMAGED: "bytes of the log are damaged",
}
"""The problem that each check finds."""


class Violation(NamedTuple):
    """One contradiction, at the control record `control_offset`, about offsets from first to last, both
    inclusive (-1 if it is about no offsets).
    """

    check: Check
    control_offset: int
    first_offset: int
    last_offset: int
    detail: str
