"""Replays the control records of one log's share groups, and reports contradictions.

The replay is the broker's own (`storage.format.share_image`). A record that does not follow from those before
it is a problem; the group then continues with its next checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import RecordState, StateRange
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage

_FOLLOWERS = {
    RecordState.ACKNOWLEDGED: {RecordState.ACKNOWLEDGED},
    RecordState.ARCHIVING: {RecordState.ARCHIVING, RecordState.ARCHIVED},
    RecordState.ARCHIVED: {RecordState.ARCHIVED},
}
"""The states that may follow a state that a record must not leave."""


@dataclass(slots=True)
class GroupHistory:
    """One group up to some record. `image` is None as long as its state is unknown."""

    image: ShareStateImage | None = None
    checkpoint_offset: int = -1
    """The offset of its newest checkpoint or tombstone (SCO)."""
    control_bytes: int = 0
    """The size of all its control records, including those that are no longer needed."""
    orphans: list[int] = field(default_factory=list[int])
    """The offsets of deltas before the first checkpoint, which cleaning or damage can leave."""

    @property
    def is_live(self) -> bool:
        return self.image is not None and not self.image.deleted


class ShareHistory:
    """The groups of one log by id. `control_runs` are those of the whole log."""

    def __init__(self, control_runs: ControlRuns) -> None:
        self.groups: dict[str, GroupHistory] = {}
        self._control_runs = control_runs

    def take(self, offset: int, record: ShareCheckpoint | ShareDelta, size_bytes: int) -> Iterator[str]:
        """Replay the record at `offset`; returns its contradictions."""
        group = self.groups.setdefault(record.group_id, GroupHistory())
        group.control_bytes += size_bytes
        if isinstance(record, ShareCheckpoint):
            yield from self._take_checkpoint(group, offset, record)
        else:
            yield from _take_delta(group, offset, record)

    @property
    def earliest_checkpoint_offset(self) -> int | None:
        """The least checkpoint offset of a live group (ESO); None without any."""
        return min((group.checkpoint_offset for group in self.groups.values() if group.is_live), default=None)

    def _take_checkpoint(
        self, group: GroupHistory, offset: int, checkpoint: ShareCheckpoint
    ) -> Iterator[str]:
        before = group.image
        after = ShareStateImage(self._control_runs)
        after.replay_checkpoint(checkpoint, offset)
        group.image, group.checkpoint_offset = after, offset
        if before is None:
            return
        if checkpoint.group_incarnation < before.group_incarnation:
            yield f"its incarnation {checkpoint.group_incarnation} is behind {before.group_incarnation}"
        if checkpoint.group_incarnation != before.group_incarnation or before.deleted:
            return
        if checkpoint.checkpoint_epoch <= before.checkpoint_epoch:
            yield (
                f"the checkpoint epoch {checkpoint.checkpoint_epoch} is not above "
                f"{before.checkpoint_epoch}, the last one"
            )
        if checkpoint.state_epoch < before.state_epoch:
            yield f"the state epoch goes back from {before.state_epoch} to {checkpoint.state_epoch}"
        if checkpoint.state_epoch == before.state_epoch and not _is_reset(checkpoint):
            yield from _lost(before, after)


def _is_reset(checkpoint: ShareCheckpoint) -> bool:
    """Whether it may be an administrator's reset, which sets any start offset, mostly in the same state
    epoch.
    """
    return checkpoint.start_offset == checkpoint.end_offset and not checkpoint.states


def _take_delta(group: GroupHistory, offset: int, delta: ShareDelta) -> Iterator[str]:
    image = group.image
    if image is None:
        group.orphans.append(offset)
        return
    problem = _sequence_error(image, delta)
    if problem is not None:
        group.image = None
        yield problem
        return
    before = image.copy()
    image.replay_delta(delta, offset)
    yield from _lost(before, image)


def _sequence_error(image: ShareStateImage, delta: ShareDelta) -> str | None:
    if image.deleted:
        return "it follows the tombstone of its group"
    if delta.group_incarnation != image.group_incarnation:
        return (
            f"its incarnation is {delta.group_incarnation}, that of its checkpoint {image.group_incarnation}"
        )
    if delta.checkpoint_epoch != image.checkpoint_epoch:
        return f"its checkpoint epoch is {delta.checkpoint_epoch}, its checkpoint's {image.checkpoint_epoch}"
    if delta.back_offset != image.last_control_offset:
        return f"it follows {delta.back_offset}, and the last record is at {image.last_control_offset}"
    return None


def _lost(before: ShareStateImage, after: ShareStateImage) -> Iterator[str]:
    """The changes between two states of one state epoch that must never be undone, but are."""
    if after.start_offset < before.start_offset:
        yield f"the start offset goes back from {before.start_offset} to {after.start_offset}"
    for state_range in before.ranges:
        if state_range.state in _FOLLOWERS:
            undone = next(_undone(after, state_range), None)
            if undone is not None:
                yield f"{undone} was {state_range.state.name.lower()}, and is no longer"


def _undone(image: ShareStateImage, was: StateRange) -> Iterator[int]:
    """The first offset of the range whose state may not follow; nothing if there is none."""
    offset = max(was.base_offset, image.start_offset)
    for state_range in image.ranges:
        if state_range.last_offset < offset or state_range.base_offset > was.last_offset:
            continue
        if state_range.base_offset > offset or state_range.state not in _FOLLOWERS[was.state]:
            yield offset if state_range.base_offset > offset else max(offset, state_range.base_offset)
            return
        offset = state_range.last_offset + 1
    if offset <= was.last_offset and offset >= image.start_offset:
        yield offset
