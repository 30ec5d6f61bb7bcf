"""A batch of share state, ready to be written. Pure."""

from typing import NamedTuple


class ControlBatch(NamedTuple):
    """A control batch of one share group's state, and its entry in the share index.

    `data` is the whole batch at the offset and leader epoch that its encoder was given. `kind` is the control
    type (5 checkpoint, 6 delta), or 0 for the mark of cleaned records, which belongs to no group.
    """

    data: bytes
    last_offset_delta: int
    group_id: str
    kind: int
    tombstone: bool
