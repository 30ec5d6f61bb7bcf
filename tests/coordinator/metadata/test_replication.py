"""The answer to a follower: continue, truncate the log, or read a snapshot first."""

from dataclasses import dataclass

import pytest

from barnabas.coordinator.metadata.replication import DivergingEpoch, locate_follower
from barnabas.coordinator.metadata.snapshot import BOOTSTRAP_ID, SnapshotId
from barnabas.storage.format.leader_epochs import LeaderEpochs


@dataclass
class Log:
    """A log from `log_start_offset` to `log_end_offset`; `begun` are its epochs, as (epoch, start offset)."""

    log_start_offset: int
    log_end_offset: int
    begun: tuple[tuple[int, int], ...]

    @property
    def epochs(self) -> LeaderEpochs:
        epochs = LeaderEpochs()
        for entry in self.begun:
            epochs.assign(*entry)
        return epochs

    @property
    def latest_leader_epoch(self) -> int:
        return self.epochs.latest_leader_epoch

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)


OLD, NEW = SnapshotId(20, 2), SnapshotId(40, 4)
WHOLE = Log(0, 50, ((1, 0), (2, 10), (4, 30)))
CUT = Log(20, 50, ((2, 20), (4, 30)))
"""Complete without the records below the end of `OLD`. There was no epoch 3."""
ALONE = Log(40, 40, ())
"""A log that has started over at the end of `NEW`."""


@pytest.mark.parametrize(
    ("log", "snapshots", "offset", "epoch", "told"),
    [
        # Without snapshots: epochs alone.
        (WHOLE, (), 0, 0, None),
        (WHOLE, (), 5, 1, None),
        (WHOLE, (), 10, 1, None),
        (WHOLE, (), 11, 1, DivergingEpoch(1, 10)),
        (WHOLE, (), 50, 4, None),
        (WHOLE, (), 51, 4, DivergingEpoch(4, 50)),
        (WHOLE, (), 35, 3, DivergingEpoch(2, 30)),
        (WHOLE, (), 35, 7, DivergingEpoch(4, 50)),
        # An empty follower reads the newest snapshot rather than the log.
        (WHOLE, (OLD,), 0, 0, OLD),
        (WHOLE, (OLD, NEW), 0, 0, NEW),
        (WHOLE, (BOOTSTRAP_ID,), 0, 0, None),
        (WHOLE, (BOOTSTRAP_ID, OLD), 0, 0, OLD),
        # The snapshot has the records that the log no longer has.
        (CUT, (OLD, NEW), 19, 2, NEW),
        (CUT, (OLD, NEW), 20, 1, NEW),
        (CUT, (OLD, NEW), 20, 3, NEW),
        (CUT, (OLD, NEW), 25, 1, NEW),
        (CUT, (OLD, NEW), 20, 2, None),
        (CUT, (OLD, NEW), 30, 2, None),
        (CUT, (OLD, NEW), 31, 2, DivergingEpoch(2, 30)),
        (CUT, (OLD, NEW), 35, 3, DivergingEpoch(2, 30)),
        (CUT, (OLD, NEW), 50, 4, None),
        # Nothing but a snapshot.
        (ALONE, (NEW,), 0, 0, NEW),
        (ALONE, (NEW,), 39, 4, NEW),
        (ALONE, (NEW,), 40, 4, None),
        (ALONE, (NEW,), 41, 4, DivergingEpoch(4, 40)),
        (ALONE, (NEW,), 45, 5, DivergingEpoch(4, 40)),
        # The log only knows that this epoch had ended when the log began.
        (Log(20, 50, ((5, 20),)), (OLD,), 25, 3, DivergingEpoch(2, 20)),
    ],
)
def test_the_answer_sends_a_follower_to_the_right_position(
    log: Log,
    snapshots: tuple[SnapshotId, ...],
    offset: int,
    epoch: int,
    told: SnapshotId | DivergingEpoch | None,
) -> None:
    assert locate_follower(log, snapshots, offset, epoch) == told
