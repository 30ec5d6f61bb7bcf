"""The findings of an audit beside the deliveries: rows of the small tables, as JSON.

This sums up deliveries for each pack, so that the report needs no pass over them: by outcome, cause, member,
delivery count and minute. Spark adds the sums of packs. Between packs it keeps a bounded part: the
`POISON_MAX` worst ranges of a share-partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas.pipeline.audit import tables
from barnabas.pipeline.audit.checkpoint_summary import CheckpointSummary
from barnabas.pipeline.audit.checks import Violation
from barnabas.pipeline.audit.compute import pa, pc
from barnabas.pipeline.audit.delivery_rows import SharePartition
from barnabas.pipeline.audit.due_letters import FAILED
from barnabas.pipeline.audit.share_history import ShareHistory
from barnabas.pipeline.columnar import RecordBatch
from barnabas.protocol.delivery_state import Cause, is_final

POISON_MAX: Final = 100
MINUTE_MS: Final = 60_000

FINDING_SCHEMA: Final[Any] = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("group", pa.string()),
        ("table", pa.string()),
        ("row", pa.string()),
    ]
)

_SUMMED_BY: Final = ["outcome", "cause", "member", "deliveryCount", "minuteMs"]
_POISON_COLUMNS: Final = [
    "firstOffset",
    "lastOffset",
    "recordCount",
    "deliveryCount",
    "outcome",
    "cause",
    "letter",
    "member",
    "decidedAtMs",
    "controlOffset",
]
_WEIGHTS: Final = (
    ("letter", FAILED, 3),
    ("cause", tables.CAUSES[Cause.DELIVERY_LIMIT], 2),
    ("cause", tables.CAUSES[Cause.REJECT], 1),
)
"""Column, value, weight: the first that applies counts."""
_WORST: Final = [("weight", "descending"), ("deliveryCount", "descending")]

Row = Mapping[str, object]


class Findings:
    """Gathers the rows of one share-partition."""

    def __init__(self, key: SharePartition) -> None:
        self._key = key
        self._rows: list[tuple[str, int, str | None, str, Row]] = []
        self._poison: Any = None

    def take_deliveries(self, batch: RecordBatch) -> None:
        """Sums up the deliveries of a pack, and keeps the worst of them."""
        if not batch.num_rows:
            return
        minutes = pc.multiply(pc.divide(batch.column("decidedAtMs"), MINUTE_MS), MINUTE_MS)
        table = pa.Table.from_batches([batch.append_column("minuteMs", minutes)])
        keys = _SUMMED_BY if table["letter"].null_count == batch.num_rows else [*_SUMMED_BY, "letter"]
        summed = table.group_by(keys, use_threads=False).aggregate(
            [("recordCount", "count"), ("recordCount", "sum")]
        )
        for row in summed.to_pylist():
            range_count, record_count = row.pop("recordCount_count"), row.pop("recordCount_sum")
            self._add(tables.OUTCOME, {**row, "rangeCount": range_count, "recordCount": record_count})
        self._keep_worst(table)

    def take_history(self, history: ShareHistory) -> None:
        """The checkpoints and violations since the last pack."""
        for taken in history.checkpoints:
            self._add(tables.CHECKPOINT, _checkpoint_row(taken))
        for violation in history.violations:
            self._add(tables.VIOLATION, violation_row(violation))
        history.checkpoints.clear()
        history.violations.clear()

    def finish(self, history: ShareHistory, log_start_offset: int, log_end_offset: int) -> None:
        """Adds the rows that are only known at the end of the log, which is exclusive."""
        for row in _open_rows(history):
            self._add(tables.OPEN, row)
        if self._poison is not None:
            for row in self._poison.select(_POISON_COLUMNS).to_pylist():
                self._add(tables.POISON, row)
        counts = {
            "skippedRecordCount": _skipped_record_count(history, log_start_offset),
            "openRecordCount": _open_record_count(history, log_end_offset),
        }
        self._add(tables.HISTORY, {**_history_row(history), **counts})

    def drain(self) -> RecordBatch:
        """The rows gathered since the last time."""
        rows, self._rows = self._rows, []
        return finding_rows(rows)

    def _add(self, table: str, row: Row) -> None:
        topic, partition, group = self._key
        self._rows.append((topic, partition, group, table, row))

    def _keep_worst(self, found: Any) -> None:
        weights = pc.case_when(
            pc.make_struct(*[_equals(found[column], value) for column, value, _ in _WEIGHTS]),
            *[pa.scalar(weight) for _, _, weight in _WEIGHTS],
            pa.scalar(0),
        )
        weighed = found.append_column("weight", weights)
        repeated = pc.fill_null(pc.greater(weighed["deliveryCount"], 1), False)
        bad = weighed.filter(pc.or_(repeated, pc.greater(weighed["weight"], 0)))
        if bad.num_rows:
            known = bad if self._poison is None else pa.concat_tables([self._poison, bad])
            self._poison = known.take(pc.select_k_unstable(known, min(POISON_MAX, known.num_rows), _WORST))


def _equals(column: Any, value: str) -> Any:
    return pc.fill_null(pc.equal(column, value), False)


def finding_rows(rows: Iterable[tuple[str, int, str | None, str, Row]]) -> RecordBatch:
    """Rows of topic, partition, group, table and the table's own row."""
    encoded = [(*row[:-1], json.dumps(row[-1], ensure_ascii=False)) for row in rows]
    columns = zip(*encoded, strict=True) if encoded else ((),) * len(FINDING_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FINDING_SCHEMA, strict=True)]
    batch: RecordBatch = pa.record_batch(arrays, FINDING_SCHEMA)
    return batch


def violation_row(violation: Violation) -> Row:
    """A row of the table of violations."""
    return {
        "check": violation.check.value,
        "controlOffset": violation.control_offset,
        "firstOffset": violation.first_offset,
        "lastOffset": violation.last_offset,
        "detail": violation.detail,
    }


def _checkpoint_row(taken: CheckpointSummary) -> Row:
    return {
        "controlOffset": taken.control_offset,
        "decidedAtMs": taken.decided_at_ms,
        "kind": taken.kind,
        "incarnation": taken.incarnation,
        "checkpointEpoch": taken.checkpoint_epoch,
        "stateEpoch": taken.state_epoch,
        "leaderEpoch": taken.leader_epoch,
        "startOffset": taken.start_offset,
        "endOffset": taken.end_offset,
        "rangeCount": taken.range_count,
        "deltaCount": taken.delta_count,
        "untoldRecordCount": taken.untold_record_count,
    }


def _open_rows(history: ShareHistory) -> list[dict[str, Any]]:
    """The recorded ranges that are not done at the end of the log."""
    newest, live = history.newest_checkpoint, history.live
    if newest is None or live is None:
        return []
    return [
        {
            "incarnation": newest.group_incarnation,
            "life": history.life,
            "firstOffset": first,
            "lastOffset": last,
            "recordCount": count,
            "deliveryCount": delivery_count,
            "state": tables.OUTCOMES[state],
        }
        for first, last, state, delivery_count in live.between(live.start_offset, live.end_offset - 1)
        if not is_final(state) and (count := history.offsets.count(first, last))
    ]


def _open_record_count(history: ShareHistory, log_end_offset: int) -> int | None:
    """The number of records that the group has not finished: never delivered, released, held by a
    member, or on their way to a dead letter.

    None if the state is not known; 0 for a group that was deleted.
    """
    newest, live = history.newest_checkpoint, history.live
    if newest is not None and newest.deleted:
        return 0
    if live is None or live.start_offset < 0:
        return None
    end_offset = max(live.end_offset, log_end_offset)
    return sum(
        history.offsets.count(first, last)
        for first, last, state, _ in live.between(live.start_offset, end_offset - 1)
        if not is_final(state)
    )


def _skipped_record_count(history: ShareHistory, log_start_offset: int) -> int | None:
    """The number of records of the log below every offset at which the group has begun: it never gets them.

    None if the first of these offsets is not in the log any more.
    """
    if not history.is_whole or history.lowest_start_offset is None:
        return None
    return history.offsets.count(log_start_offset, history.lowest_start_offset - 1)


def _history_row(history: ShareHistory) -> dict[str, object]:
    first, newest, live = history.first_checkpoint, history.newest_checkpoint, history.live
    return {
        "begins": "whole" if history.is_whole else "cut",
        "beganAtMs": history.first_decided_at_ms,
        "lastDecidedAtMs": history.last_decided_at_ms,
        "leaderEpochCount": len(history.leader_epochs),
        "firstControlOffset": history.first_control_offset,
        "firstStartOffset": None if first is None else first.start_offset,
        "lastControlOffset": history.last_control_offset,
        "deltaCount": history.delta_count,
        "checkpointCount": history.checkpoint_count,
        "orphanDeltaCount": history.orphan_count,
        "life": history.life,
        "incarnation": None if newest is None else newest.group_incarnation,
        "stateEpoch": None if newest is None else newest.state_epoch,
        "startOffset": None if live is None else live.start_offset,
        "endOffset": None if live is None else live.end_offset,
        "isDeleted": newest is not None and newest.deleted,
        "isKnown": live is not None,
        "violationCount": history.violation_count,
    }
