"""The tables of an audit: their columns, and the names of their values. docs/audit.md explains them."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.delivery_state import Cause, RecordState, is_final

OUTCOMES: Final = {
    RecordState.AVAILABLE: "available",
    RecordState.ACKNOWLEDGED: "acknowledged",
    RecordState.ARCHIVING: "archiving",
    RecordState.ARCHIVED: "archived",
}
OPEN_OUTCOMES: Final = tuple(name for state, name in OUTCOMES.items() if not is_final(state))
"""After these the record is not done."""
UNKNOWN_OUTCOME: Final = "unknown"
"""Done without a recorded outcome: see `share_history`."""

CAUSES: Final[dict[Cause, str]] = {cause: cause.name.lower() for cause in Cause if cause is not Cause.NONE}

SHARE_PARTITION_KEY: Final = "topic string, partition int, group string"

DELIVERY_COLUMNS: Final = (
    f"{SHARE_PARTITION_KEY}, incarnation bigint, life int, firstOffset bigint, lastOffset bigint, "
    "recordCount bigint, deliveryCount int, outcome string, cause string, letter string, member string, "
    "decidedAtMs bigint, controlOffset bigint"
)
"""The columns from the tasks; `decidedAt` is made from `decidedAtMs`."""

OUTCOME: Final = "outcome"
CHECKPOINT: Final = "checkpoint"
VIOLATION: Final = "violation"
OPEN: Final = "open"
POISON: Final = "poison"
HISTORY: Final = "history"

FINDING_COLUMNS: Final = f"{SHARE_PARTITION_KEY}, table string, row string"
"""Rows of the other tables as JSON, so that one pass over the log gives all of them: they are few."""

ROW_COLUMNS: Final = {
    OUTCOME: (
        "outcome string, cause string, letter string, member string, deliveryCount int, minuteMs bigint, "
        "rangeCount bigint, recordCount bigint"
    ),
    CHECKPOINT: (
        "controlOffset bigint, decidedAtMs bigint, kind string, incarnation bigint, checkpointEpoch int, "
        "stateEpoch int, leaderEpoch int, startOffset bigint, endOffset bigint, rangeCount int, "
        "deltaCount int, untoldRecordCount bigint"
    ),
    VIOLATION: "check string, controlOffset bigint, firstOffset bigint, lastOffset bigint, detail string",
    OPEN: (
        "incarnation bigint, life int, firstOffset bigint, lastOffset bigint, recordCount bigint, "
        "deliveryCount int, state string"
    ),
    POISON: (
        "firstOffset bigint, lastOffset bigint, recordCount bigint, deliveryCount int, outcome string, "
        "cause string, letter string, member string, decidedAtMs bigint, controlOffset bigint"
    ),
    HISTORY: (
        "begins string, firstControlOffset bigint, beganAtMs bigint, firstStartOffset bigint, "
        "lastControlOffset bigint, lastDecidedAtMs bigint, deltaCount bigint, checkpointCount bigint, "
        "orphanDeltaCount bigint, life int, incarnation bigint, stateEpoch int, leaderEpochCount int, "
        "startOffset bigint, endOffset bigint, skippedRecordCount bigint, openRecordCount bigint, "
        "isDeleted boolean, isKnown boolean, violationCount bigint"
    ),
}
"""By table, the columns in a finding's `row`."""
