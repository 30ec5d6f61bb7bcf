"""The states of a SHARE_DELTA: the decided changes, and the ranges between them and the durable end.

An acquired range below a recorded one is written as Available with one delivery less; above, it is not
written at all. So a delta that changes records beyond the durable end first fills the ranges between. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from barnabas.protocol.delivery_state import StateRange
from barnabas.storage.format.share_image import ShareStateImage, merge_ranges, overlay_ranges


class DurableRanges(Protocol):
    """Anything that knows the recorded projection of live state; a SharePartition does."""

    def durable_ranges(self, first_offset: int, last_offset: int) -> list[StateRange]: ...


def delta_states(
    image: ShareStateImage, share_partition: DurableRanges, changes: Sequence[StateRange]
) -> list[StateRange]:
    """The states of the delta that records `changes`, after the records in `image`.

    The changes are in the order decided, of one decision or of several that share an append; where two name
    an offset, the later one wins. The result is ascending, disjoint, and has no hole behind the image's end.
    """
    states: list[StateRange] = []
    overlay_ranges(states, changes)
    filled: list[StateRange] = []
    next_offset = image.end_offset
    for state in states:
        if next_offset < state.base_offset:
            filled += share_partition.durable_ranges(next_offset, state.base_offset - 1)
        filled.append(state)
        next_offset = max(next_offset, state.last_offset + 1)
    return states if len(filled) == len(states) else merge_ranges(filled)
