"""Deliveries as Arrow batches: the ranges of a pack with a cause, and those that the replay makes.

Columns go from the decoder to Arrow unchanged; only rows of checkpoints and dead letters are made in Python.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from barnabas.pipeline.audit.compute import pa, pc
from barnabas.pipeline.audit.control_columns import ControlColumns
from barnabas.pipeline.audit.due_letters import LETTERS, Delivery
from barnabas.pipeline.audit.share_history import ReplayedPack
from barnabas.pipeline.audit.tables import CAUSES, OUTCOMES, UNKNOWN_OUTCOME
from barnabas.pipeline.columnar import RecordBatch
from barnabas.protocol.delivery_state import Cause, RecordState

_ARROW_TYPES: Final[Any] = {"q": pa.int64(), "i": pa.int32(), "h": pa.int16(), "b": pa.int8()}

DELIVERY_SCHEMA: Final[Any] = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("group", pa.string()),
        ("incarnation", pa.int64()),
        ("life", pa.int32()),
        ("firstOffset", pa.int64()),
        ("lastOffset", pa.int64()),
        ("recordCount", pa.int64()),
        ("deliveryCount", pa.int32()),
        ("outcome", pa.string()),
        ("cause", pa.string()),
        ("letter", pa.string()),
        ("member", pa.string()),
        ("decidedAtMs", pa.int64()),
        ("controlOffset", pa.int64()),
    ]
)

_OUTCOME_NAMES: Final[Any] = pa.array(
    [OUTCOMES[RecordState(code)] if code in set(OUTCOMES) else None for code in range(max(OUTCOMES) + 1)],
    pa.string(),
)
_CAUSE_NAMES: Final[Any] = pa.array([CAUSES.get(Cause(code)) for code in range(max(CAUSES) + 1)], pa.string())

_LETTER_NAMES: Final[Any] = pa.array([LETTERS.get(cause) for cause in Cause], pa.string())


class SharePartition(NamedTuple):
    """The topic, partition and group of deliveries."""

    topic: str
    partition: int
    group: str


def recorded_deliveries(
    key: SharePartition, columns: ControlColumns, replayed: ReplayedPack, *, has_causes: bool
) -> RecordBatch:
    """The outcomes in deltas, without the ranges that are no delivery.

    These are ranges of control offsets, steps of dead letters, and ranges that only fill gaps. The latter
    have no cause, or, if no causes are recorded, were never delivered.
    """
    indexes = _column(columns.record_indexes)
    causes = _column(columns.causes)
    record_counts = _column(replayed.record_counts)
    members = _column(columns.members)
    names = pa.array(columns.member_names, pa.string())
    values = [
        *_constants(key, len(causes)),
        _column(columns.incarnations).take(indexes),
        _column(replayed.lives).take(indexes),
        _column(columns.first_offsets),
        _column(columns.last_offsets),
        record_counts,
        _column(columns.delivery_counts).cast(pa.int32()),
        _OUTCOME_NAMES.take(_column(columns.states)),
        _CAUSE_NAMES.take(causes),
        _letters(causes),
        names.take(pc.if_else(pc.less(members, 0), pa.scalar(None, pa.int32()), members)),
        _column(columns.decided_at_ms).take(indexes),
        _column(columns.offsets).take(indexes),
    ]
    batch: RecordBatch = pa.record_batch(values, DELIVERY_SCHEMA)
    tells = pc.not_equal(causes, 0) if has_causes else pc.greater(batch.column("deliveryCount"), 0)
    return batch.filter(pc.and_(tells, pc.greater(record_counts, 0)))


def batch_of_deliveries(key: SharePartition, deliveries: Sequence[Delivery]) -> RecordBatch:
    """The outcomes in checkpoints, and those with dead letters."""
    values = [
        [delivery.incarnation for delivery in deliveries],
        [delivery.life for delivery in deliveries],
        [delivery.first_offset for delivery in deliveries],
        [delivery.last_offset for delivery in deliveries],
        [delivery.record_count for delivery in deliveries],
        [delivery.delivery_count for delivery in deliveries],
        [UNKNOWN_OUTCOME if delivery.state is None else OUTCOMES[delivery.state] for delivery in deliveries],
        [None if delivery.cause is None else CAUSES[delivery.cause] for delivery in deliveries],
        [delivery.letter for delivery in deliveries],
        [delivery.member for delivery in deliveries],
        [delivery.decided_at_ms for delivery in deliveries],
        [delivery.control_offset for delivery in deliveries],
    ]
    fields = list(DELIVERY_SCHEMA)[len(SharePartition._fields) :]
    arrays = [pa.array(column, field.type) for column, field in zip(values, fields, strict=True)]
    batch: RecordBatch = pa.record_batch([*_constants(key, len(deliveries)), *arrays], DELIVERY_SCHEMA)
    return batch


def _letters(causes: Any) -> Any:
    """The ends of letters that no known delivery is waiting for; null for all other ranges."""
    if not len(causes) or pc.max(causes).as_py() < min(LETTERS):
        return pa.nulls(len(causes), pa.string())
    return _LETTER_NAMES.take(causes)


def _constants(key: SharePartition, count: int) -> list[Any]:
    topic, partition, group = key
    return [
        pa.repeat(pa.scalar(topic, pa.string()), count),
        pa.repeat(pa.scalar(partition, pa.int32()), count),
        pa.repeat(pa.scalar(group, pa.string()), count),
    ]


def _column(values: array[int]) -> Any:
    """The array's own bytes as an Arrow array."""
    return pa.Array.from_buffers(_ARROW_TYPES[values.typecode], len(values), [None, pa.py_buffer(values)])
