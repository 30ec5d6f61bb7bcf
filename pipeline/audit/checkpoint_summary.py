"""A checkpoint in the history of a share-partition, as the audit's table of checkpoints has it. Pure."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.control_record import ShareCheckpoint


class CheckpointSummary(NamedTuple):
    """A checkpoint. `kind` is first, begun, regular, reset or tombstone; `delta_count` is the number of
    deltas of the one before it; `untold_record_count` is the number of records whose outcome is in no
    delta, only in this checkpoint.
    """

    control_offset: int
    decided_at_ms: int
    kind: str
    incarnation: int
    checkpoint_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    end_offset: int
    range_count: int
    delta_count: int
    untold_record_count: int


def summary_of(
    checkpoint: ShareCheckpoint, offset: int, kind: str, delta_count: int, untold_record_count: int
) -> CheckpointSummary:
    """The checkpoint of the control record at `offset`."""
    return CheckpointSummary(
        offset,
        checkpoint.decided_at_ms,
        kind,
        checkpoint.group_incarnation,
        checkpoint.checkpoint_epoch,
        checkpoint.state_epoch,
        checkpoint.leader_epoch,
        checkpoint.start_offset,
        checkpoint.end_offset,
        len(checkpoint.states),
        delta_count,
        untold_record_count,
    )
