"""The worked example of KIP-932's draft on recovery: offsets 100-120, control records 130-137.

The example's first checkpoint states 110 where its own text begins at 100; 100 is correct.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.share.log_store.delta_states import delta_states
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage
from tests.share.partition.core import SharePartition

LIMITS = ShareLimits(lock_duration_ms=1_000)
ACCEPT, RELEASE = (1,), (2,)
AVAILABLE, ACKNOWLEDGED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED


class WorkedExample:
    """A share-partition whose log is the example's, and the deltas written to it."""

    def __init__(self) -> None:
        self.control_runs = ControlRuns()
        self.image = ShareStateImage(self.control_runs)
        self.image.replay_checkpoint(ShareCheckpoint("G1", 1, 1, 0, 0, 0, 100, 100, 0), 130)
        self.partition = SharePartition(self.image, self.control_runs)
        self.deltas: list[ShareDelta] = []

    def fetch(self, *ranges: tuple[int, int], records_max: int, now_ms: int = 0) -> None:
        plan = self.partition.plan_acquire(records_max, LIMITS)
        acquired = self.partition.acquire(
            plan,
            "member",
            [(offset, offset) for first, last in ranges for offset in range(first, last + 1)],
            records_max=records_max,
            batch_size=500,
            acquire_mode=AcquireMode.RECORD_LIMIT,
            limits=LIMITS,
            now_ms=now_ms,
        ).acquired
        assert [(first, last) for first, last, _ in acquired] == list(ranges)

    def acknowledge(self, first_offset: int, last_offset: int, types: Sequence[int]) -> list[StateRange]:
        batches = [AckBatch(first_offset, last_offset, types)]
        return self.record(self.partition.decide_acknowledge("member", batches, LIMITS, now_ms=0))

    def record(self, decision: Decision) -> list[StateRange]:
        states = delta_states(self.image, self.partition, decision.changes)
        delta = ShareDelta("G1", 1, 1, 0, self.image.last_control_offset, states)
        self.image.replay_delta(delta, 131 + len(self.deltas))
        self.deltas.append(delta)
        self.partition.complete(decision)
        return states


def accepted(first_offset: int, last_offset: int) -> StateRange:
    """The delta's state for records accepted at their first delivery."""
    return StateRange(first_offset, last_offset, ACKNOWLEDGED, 1, Cause.ACCEPT, "member")


def up_to_the_last_row() -> WorkedExample:
    """The example, checked row by row, before 111 and 112 are acknowledged."""
    example = WorkedExample()
    partition = example.partition

    example.fetch((100, 109), records_max=10)
    assert (partition.spso, partition.speo) == (100, 110)
    assert example.acknowledge(100, 109, ACCEPT) == [accepted(100, 109)]
    assert (partition.spso, partition.speo) == (110, 110)

    example.fetch((110, 119), records_max=10)
    assert (partition.spso, partition.speo) == (110, 120)
    assert example.acknowledge(110, 110, RELEASE) == [
        StateRange(110, 110, AVAILABLE, 1, Cause.RELEASE, "member")
    ]
    assert (example.image.start_offset, example.image.end_offset) == (110, 111), "the recorded SPEO is 111"

    assert example.acknowledge(119, 119, ACCEPT) == [
        StateRange(111, 118, AVAILABLE, 0),
        StateRange(119, 119, ACKNOWLEDGED, 1, Cause.ACCEPT, "member"),
    ]
    assert (partition.spso, partition.speo) == (110, 120)

    example.fetch((110, 110), (120, 120), records_max=2, now_ms=900)
    assert (partition.spso, partition.speo) == (110, 121)

    assert partition.next_deadline_ms() == 1_000
    keep = [AckBatch(113, 118, (4,))]
    assert partition.decide_acknowledge("member", keep, LIMITS, now_ms=900).is_empty
    assert example.record(partition.expire(1_000, LIMITS)) == [
        StateRange(111, 112, AVAILABLE, 1, Cause.LOCK_EXPIRED, "member")
    ]

    assert example.acknowledge(113, 118, ACCEPT) == [
        StateRange(113, 118, ACKNOWLEDGED, 1, Cause.ACCEPT, "member")
    ]

    example.fetch((111, 112), records_max=2)
    assert example.acknowledge(110, 110, ACCEPT) == [
        StateRange(110, 110, ACKNOWLEDGED, 2, Cause.ACCEPT, "member")
    ]
    assert (partition.spso, partition.speo) == (111, 121)
    return example


def test_the_last_row_is_the_delta_at_137() -> None:
    example = up_to_the_last_row()
    assert example.acknowledge(111, 112, ACCEPT) == [
        StateRange(111, 112, ACKNOWLEDGED, 2, Cause.ACCEPT, "member")
    ]
    assert (example.partition.spso, example.partition.speo) == (120, 121)
    assert [delta.back_offset for delta in example.deltas] == [130, 131, 132, 133, 134, 135, 136]
    assert example.image.last_control_offset == 137
    assert (example.image.start_offset, example.image.end_offset) == (120, 120)
    assert example.image.ranges == []


def test_the_last_row_may_be_a_checkpoint_of_epoch_2() -> None:
    example = up_to_the_last_row()
    image, partition = example.image, example.partition
    decision = partition.decide_acknowledge("member", [AckBatch(111, 112, ACCEPT)], LIMITS, now_ms=0)
    states = delta_states(image, partition, decision.changes)
    checkpoint = image.to_checkpoint(
        "G1", checkpoint_epoch=2, decided_at_ms=7, leader_epoch=3, changes=states
    )
    assert checkpoint == ShareCheckpoint("G1", 1, 2, 7, 0, 3, 120, 120, 0)
    assert image.start_offset == 111, "the image moves when the checkpoint is replayed, not before"
    image.replay_checkpoint(checkpoint, 137)
    partition.complete(decision)
    assert (partition.spso, partition.speo) == (120, 121)
    assert (image.start_offset, image.end_offset, image.ranges) == (120, 120, [])
    assert (image.checkpoint_epoch, image.last_control_offset, image.delta_count) == (2, 137, 0)
