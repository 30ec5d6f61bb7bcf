"""The state of `verify` between the segments of a log, and the places of findings."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.cli.log_tool.control_records import ControlRecord
from barnabas.cli.log_tool.findings import Finding
from barnabas.cli.log_tool.places import PartitionFiles, SegmentFiles
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.producers.producer_state import ProducerState


@dataclass(slots=True)
class FoundControl:
    """Share state, and its place."""

    file: str
    position: int
    control: ControlRecord


@dataclass(slots=True)
class LogVerification:
    """The part of a log that was read. `leader_epochs` is None if their file is missing or damaged."""

    partition: PartitionFiles
    leader_epochs: LeaderEpochs | None
    with_records: bool
    next_offset: int = -1
    """The offset after the last batch; -1 before the first segment."""
    last_data_offset: int = -1
    leader_epoch: int = -1
    first_without_epoch: int | None = None
    """The first offset, from the log start on, for which `leader_epochs` has none."""
    controls: list[FoundControl] = field(default_factory=list[FoundControl])
    batch_count: int = 0
    producers: ProducerState = field(default_factory=ProducerState)
    """The state that the batches of transactions give."""
    had_damage: bool = False
    is_behind_damage: bool = False
    """Whether the last bytes read were damaged, so that their offsets are unknown."""

    def is_settled(self, offset: int, *, is_last_segment: bool) -> bool:
        """Whether all files must be complete for this offset."""
        if self.partition.was_closed:
            return True
        if self.partition.recovery_point is None:
            return not is_last_segment
        return offset < self.partition.recovery_point


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """One segment of a log; makes its findings."""

    segment: SegmentFiles
    log: LogVerification

    @property
    def is_last(self) -> bool:
        return self.segment is self.log.partition.segments[-1]

    @property
    def name(self) -> str:
        return self.log.partition.named(self.segment.log_path.name)

    def is_settled(self, offset: int) -> bool:
        """Whether all files must be complete for this offset."""
        return self.log.is_settled(offset, is_last_segment=self.is_last)

    def at(self, position: int | None, offset: int, message: str) -> Finding:
        """A problem in the segment itself."""
        return Finding(self.name, message, position, offset)

    def in_index(self, suffix: str, offset: int | None, message: str) -> Finding:
        """A problem in one of its indexes."""
        return Finding(
            self.log.partition.named(self.segment.log_path.with_suffix(suffix).name), message, None, offset
        )
