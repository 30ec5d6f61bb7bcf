"""The durable image of a share-partition: the result of replaying its control records in log order.

It serves recovery as sketched beside KIP-932 ("Recovery and log cleaning"): a SHARE_CHECKPOINT sets the whole
state, each SHARE_DELTA that chains to it lays its ranges over the present ones, and the start offset moves
over the final prefix. Nothing else changes an image, so a running broker's image and a recovered one are
equal. Owners, locks and pending changes are not part of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange, is_final
from barnabas.storage.format.control_runs import ControlRuns

UNDECIDED_OFFSET: Final = -1
"""The start offset of a share-partition before its first fetch."""

_NO_CAUSE: Final = Cause.NONE
_FINAL: Final = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)

_SINGLY_MAX: Final = 4
"""More changes than this are laid over the ranges in one pass."""


class ShareStateImage:
    """Start, end and ranges of one share-partition, with the offset of its newest control record.

    `ranges` covers [start_offset, end_offset), except holes that a checkpoint may leave (they are Available,
    count 0). It is sorted and disjoint, and neighbours differ in state, count or condition. Its ranges have
    no cause or member. `control_runs` are the log's, so that counts leave control offsets out.
    """

    __slots__ = (
        "checkpoint_epoch",
        "control_runs",
        "deleted",
        "delta_bytes",
        "delta_count",
        "end_offset",
        "group_incarnation",
        "last_control_offset",
        "leader_epoch",
        "ranges",
        "start_offset",
        "state_epoch",
    )

    def __init__(self, control_runs: ControlRuns) -> None:
        self.control_runs = control_runs
        self.group_incarnation = 0
        self.state_epoch = 0
        self.leader_epoch = 0
        self.checkpoint_epoch = 0
        self.start_offset = UNDECIDED_OFFSET
        self.end_offset = UNDECIDED_OFFSET
        self.ranges: list[StateRange] = []
        self.deleted = False
        self.last_control_offset = -1
        """The offset of the newest control record of this checkpoint epoch: the next record's back offset."""
        self.delta_count = 0
        """Deltas replayed since the checkpoint. It bounds the length of the chain."""
        self.delta_bytes = 0
        """The size of these deltas in the log. It bounds the bytes that a replay reads."""

    @property
    def delivery_complete_count(self) -> int:
        """The number of final data records at or above the start offset (KIP-1226)."""
        return sum(
            self.control_runs.data_count(state_range.base_offset, state_range.last_offset)
            for state_range in self.ranges
            if is_final(state_range.state)
        )

    def replay_checkpoint(self, checkpoint: ShareCheckpoint, offset: int) -> None:
        """Replaces the whole state by the checkpoint at `offset` of the log."""
        self.group_incarnation = checkpoint.group_incarnation
        self.state_epoch = checkpoint.state_epoch
        self.leader_epoch = checkpoint.leader_epoch
        self.checkpoint_epoch = checkpoint.checkpoint_epoch
        self.start_offset = checkpoint.start_offset
        self.end_offset = checkpoint.end_offset
        self.deleted = checkpoint.deleted
        self.ranges = []
        self.last_control_offset = offset
        self.delta_count = self.delta_bytes = 0
        self._lay_over(checkpoint.states)

    def replay_delta(self, delta: ShareDelta, offset: int, size_bytes: int = 0) -> None:
        """Lays the ranges of the delta at `offset` over the image. It must chain to the newest record.

        `size_bytes` is its size in the log.
        """
        assert delta.checkpoint_epoch == self.checkpoint_epoch, (delta, self.checkpoint_epoch)
        assert delta.back_offset == self.last_control_offset, (delta, self.last_control_offset)
        self.last_control_offset = offset
        self.delta_count += 1
        self.delta_bytes += size_bytes
        if len(delta.states) == 1:
            change = delta.states[0]
            last_offset = change.last_offset
            if (
                change.state in _FINAL
                and change.base_offset <= self.start_offset <= last_offset
                and not (self.ranges and self.ranges[0].base_offset <= last_offset + 1)
            ):  # The usual delta only ends the first records, and needs no more work.
                self.start_offset = last_offset + 1
                if self.end_offset < self.start_offset:
                    self.end_offset = self.start_offset
                return
        self._lay_over(delta.states)

    def to_checkpoint(
        self,
        group_id: str,
        *,
        checkpoint_epoch: int,
        decided_at_ms: int,
        leader_epoch: int,
        start_offset: int | None = None,
        changes: Iterable[StateRange] = (),
    ) -> ShareCheckpoint:
        """The checkpoint of this image, with the start moved to `start_offset` and `changes` laid over it.

        The changes are those of the same append, already filled (`delta_states`). The image itself changes
        only when the checkpoint is replayed.
        """
        ahead = self.copy()
        if start_offset is not None:
            ahead.move_start(start_offset)
        ahead._lay_over(changes)
        return ShareCheckpoint(
            group_id=group_id,
            group_incarnation=ahead.group_incarnation,
            checkpoint_epoch=checkpoint_epoch,
            decided_at_ms=decided_at_ms,
            state_epoch=ahead.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=ahead.start_offset,
            end_offset=ahead.end_offset,
            delivery_complete_count=ahead.delivery_complete_count,
            states=tuple(ahead.ranges),
        )

    def copy(self) -> ShareStateImage:
        """An independent image with the same state, with the same control runs."""
        twin = ShareStateImage(self.control_runs)
        twin.group_incarnation = self.group_incarnation
        twin.state_epoch = self.state_epoch
        twin.leader_epoch = self.leader_epoch
        twin.checkpoint_epoch = self.checkpoint_epoch
        twin.start_offset = self.start_offset
        twin.end_offset = self.end_offset
        twin.ranges = list(self.ranges)
        twin.deleted = self.deleted
        twin.last_control_offset = self.last_control_offset
        twin.delta_count = self.delta_count
        twin.delta_bytes = self.delta_bytes
        return twin

    def begin_at_zero(self) -> None:
        """Begin at offset 0, as the group's own records in `__consumer_offsets` say."""
        assert self.start_offset == UNDECIDED_OFFSET, self.start_offset
        self.start_offset = self.end_offset = 0

    def move_start(self, start_offset: int) -> None:
        """Moves the start offset forward and forgets the ranges below it. For building checkpoints."""
        if start_offset <= self.start_offset:
            return
        self.start_offset = start_offset
        self.end_offset = max(self.end_offset, start_offset)
        self.ranges = clip_below(self.ranges, start_offset)
        self._pass_final_prefix()

    def _lay_over(self, states: Iterable[StateRange]) -> None:
        changes = [
            StateRange(
                max(base_offset, self.start_offset), last_offset, state, count, _NO_CAUSE, None, condition
            )
            for base_offset, last_offset, state, count, _cause, _member, condition in states
            if last_offset >= self.start_offset
        ]
        if changes:
            overlay_ranges(self.ranges, changes)
            self.end_offset = max(self.end_offset, max(map(_last_offset, changes)) + 1)
        self._pass_final_prefix()

    def _pass_final_prefix(self) -> None:
        """Moves the start offset behind the final ranges that begin at it."""
        passed = 0
        for state_range in self.ranges:
            if state_range.base_offset != self.start_offset or not is_final(state_range.state):
                break
            self.start_offset = state_range.last_offset + 1
            passed += 1
        del self.ranges[:passed]


def overlay_ranges(ranges: list[StateRange], changes: Sequence[StateRange]) -> None:
    """Lays changes over a sorted list of disjoint ranges in place, in their order; see `overlay_range`."""
    if len(changes) <= _SINGLY_MAX or not _are_ascending(changes):
        for change in changes:
            overlay_range(ranges, change)
        return
    low = max(bisect_left(ranges, changes[0].base_offset, key=_last_offset) - 1, 0)
    high = bisect_right(ranges, changes[-1].last_offset, key=_base_offset)
    ranges[low : high + 1] = merge_ranges(_overlaid(ranges[low : high + 1], changes))


def _are_ascending(changes: Sequence[StateRange]) -> bool:
    """Whether they ascend and are disjoint."""
    return all(before.last_offset < after.base_offset for before, after in pairwise(changes))


def _overlaid(old: Sequence[StateRange], changes: Sequence[StateRange]) -> Iterator[StateRange]:
    """The changes, and between them the parts of the old ranges that they leave; ascending."""
    rest = iter(old)
    old_range = next(rest, None)
    for change in changes:
        while old_range is not None and old_range.base_offset < change.base_offset:
            if old_range.last_offset >= change.base_offset:
                yield StateRange(old_range.base_offset, change.base_offset - 1, *old_range[2:])
                break
            yield old_range
            old_range = next(rest, None)
        yield change
        while old_range is not None and old_range.last_offset <= change.last_offset:
            old_range = next(rest, None)
        if old_range is not None and old_range.base_offset <= change.last_offset:
            old_range = StateRange(change.last_offset + 1, *old_range[1:])
    if old_range is not None:
        yield old_range
    yield from rest


def overlay_range(ranges: list[StateRange], change: StateRange) -> None:
    """Lays `change` over a sorted list of disjoint ranges in place; equal neighbours become one."""
    base_offset, last_offset = change.base_offset, change.last_offset
    if not ranges or ranges[-1].last_offset + 1 < base_offset:
        ranges.append(change)
        return
    low = bisect_left(ranges, base_offset, key=_last_offset)
    high = bisect_right(ranges, last_offset, lo=low, key=_base_offset)
    pieces: list[StateRange] = []
    if low < high:
        first, last = ranges[low], ranges[high - 1]
        if first.base_offset < base_offset:
            pieces.append(StateRange(first.base_offset, base_offset - 1, *first[2:]))
        pieces.append(change)
        if last.last_offset > last_offset:
            pieces.append(StateRange(last_offset + 1, *last[1:]))
    else:
        pieces.append(change)
    low = max(low - 1, 0)
    high = min(high + 1, len(ranges))
    ranges[low:high] = _merged(ranges[low:high], pieces, base_offset, last_offset)


def merge_ranges(ranges: Iterable[StateRange]) -> list[StateRange]:
    """Merges adjoining ranges that are equal in everything else. The ranges must ascend."""
    merged: list[StateRange] = []
    for state_range in ranges:
        if (
            merged
            and state_range.base_offset == merged[-1].last_offset + 1
            and state_range[2:] == merged[-1][2:]
        ):
            merged[-1] = StateRange(merged[-1].base_offset, *state_range[1:])
        else:
            merged.append(state_range)
    return merged


def clip_below(ranges: Iterable[StateRange], offset: int) -> list[StateRange]:
    """The ranges without their parts below `offset`."""
    return [
        state_range if state_range.base_offset >= offset else state_range._replace(base_offset=offset)
        for state_range in ranges
        if state_range.last_offset >= offset
    ]


def _merged(
    old: list[StateRange], pieces: list[StateRange], base_offset: int, last_offset: int
) -> list[StateRange]:
    before = [state_range for state_range in old if state_range.last_offset < base_offset]
    after = [state_range for state_range in old if state_range.base_offset > last_offset]
    return merge_ranges((*before, *pieces, *after))


def _base_offset(state_range: StateRange) -> int:
    return state_range.base_offset


def _last_offset(state_range: StateRange) -> int:
    return state_range.last_offset
