"""The states of a SHARE_DELTA: the decided changes, and the ranges between them and the durable end.

An acquired range below a recorded one is written as Available with one delivery less; above, it is not
written at all. So a delta that changes records beyond the durable end first fills the ranges between. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from barnabas.protocol.control_record import StateRange
from barnabas.storage.format.share_image import ShareStateImage, merge_ranges, overlay_range


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
    end_offset = image.end_offset
    previous_last_offset = -1
    is_ascending = True
    for change in changes:
        if change.base_offset > end_offset:
            states += share_partition.durable_ranges(end_offset, change.base_offset - 1)
        states.append(change)
        is_ascending = is_ascending and change.base_offset > previous_last_offset
        previous_last_offset = change.last_offset
        end_offset = max(end_offset, change.last_offset + 1)
    if is_ascending:
        return merge_ranges(states)
    ordered: list[StateRange] = []
    for state in states:
        overlay_range(ordered, state)
    return ordered
