"""The last recorded change of a record: its cause, its time, and the member. Pure."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.delivery_state import Cause, RecordState


class RecordedChange(NamedTuple):
    """A change of neighbouring offsets, both ends inclusive, as a control record has it."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    cause: Cause
    member_id: str | None
    """The member that caused the change, or that lost its lock by it."""
    timestamp_ms: int
    """Wall time."""


NO_CHANGE = RecordedChange(-1, -1, RecordState.AVAILABLE, 0, Cause.NONE, None, -1)
"""For records whose state was never recorded, because they were delivered once at most."""
