"""Logs with share state, written straight into a data directory by the project's own format code.

A `WrittenGroup` chains its records as the broker's store does, and keeps the image that the broker would
have; a test that wants something wrong in a log puts a record of its own there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from barnabas.protocol.control_record import (
    ShareCheckpoint,
    ShareDelta,
    build_control_batch,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.delivery_state import Cause, LetterPlace, RecordState, StateRange
from barnabas.protocol.record_batch import build_batch
from barnabas.storage.format.cleaned_mark import encode_mark
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage

AVAILABLE, ACKNOWLEDGED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED
ARCHIVING, ARCHIVED = RecordState.ARCHIVING, RecordState.ARCHIVED
BEGAN_AT_MS = 1_760_000_000_000


def accepted(first: int, last: int, count: int = 1, member: str | None = "member") -> StateRange:
    """Records that a member has accepted."""
    return StateRange(first, last, ACKNOWLEDGED, count, Cause.ACCEPT, member)


def released(
    first: int, last: int, count: int = 1, cause: Cause = Cause.RELEASE, member: str | None = "member"
) -> StateRange:
    """Records whose delivery ended without success."""
    return StateRange(first, last, AVAILABLE, count, cause, member)


def archived(
    first: int, last: int, count: int = 1, cause: Cause = Cause.REJECT, member: str | None = "member"
) -> StateRange:
    """Records that are done without success."""
    return StateRange(first, last, ARCHIVED, count, cause, member)


def archiving(
    first: int, last: int, count: int = 1, cause: Cause = Cause.REJECT, member: str | None = "member"
) -> StateRange:
    """Records on their way to a dead letter."""
    place = LetterPlace(Cause.REJECT if cause is Cause.NONE else cause, UUID(int=9), 0, 5)
    return StateRange(first, last, ARCHIVING, count, cause, member, place)


def lettered(first: int, last: int, count: int = 1, cause: Cause = Cause.DEAD_LETTER) -> StateRange:
    """Records whose dead letter is written, or given up."""
    return StateRange(first, last, ARCHIVED, count, cause)


class WrittenLog:
    """The log of one partition, one segment at a time."""

    def __init__(self, data_directory: Path, topic: str, partition: int = 0, *, base_offset: int = 0) -> None:
        self.topic = topic
        self.partition = partition
        self.control_runs = ControlRuns()
        self.next_offset = base_offset
        self.leader_epoch = 1
        self.now_ms = BEGAN_AT_MS
        self._folder = data_directory / f"{topic}-{partition}"
        self._folder.mkdir(parents=True)
        (data_directory / "meta.properties").touch()
        self.roll()

    @property
    def path(self) -> Path:
        """Of the segment being written."""
        return self._folder / f"{self._base_offset:020}.log"

    def roll(self) -> None:
        """Begins a new segment."""
        self._base_offset = self.next_offset
        self.path.touch()

    def write(self, data: bytes, offset_count: int = 1) -> int:
        """Appends a batch as it is; its first offset."""
        offset = self.next_offset
        with self.path.open("ab") as file:
            file.write(data)
        self.next_offset += offset_count
        self.now_ms += 1
        return offset

    def produce(self, count: int, value: bytes = b"value") -> tuple[int, int]:
        """Appends a batch of records; the first and the last offset."""
        records = [(None, value)] * count
        data = build_batch(
            self.next_offset, records, leader_epoch=self.leader_epoch, timestamp_ms=self.now_ms
        )
        first = self.write(data, count)
        return first, first + count - 1

    def record(self, record: ShareCheckpoint | ShareDelta) -> int:
        """Appends a control record; its offset."""
        encode = encode_delta if isinstance(record, ShareDelta) else encode_checkpoint
        return self.control(*encode(record))  # type: ignore[arg-type]

    def control(self, key: bytes, value: bytes) -> int:
        """Appends a control batch around a record of any bytes; its offset."""
        batch = build_control_batch(self.next_offset, self.leader_epoch, self.now_ms, key, value)
        self.control_runs.append(self.next_offset, self.next_offset)
        return self.write(batch)

    def mark(self, count: int) -> int:
        """Appends the mark of cleaned offsets; returns the first of them."""
        first, last = self.next_offset, self.next_offset + count - 1
        self.control_runs.append(first, last)
        return self.write(encode_mark(first, last, self.leader_epoch), count)


class WrittenGroup:
    """A share group that writes into a log; it begins with a checkpoint, unless a test leaves that out."""

    def __init__(
        self,
        log: WrittenLog,
        group: str = "group",
        start_offset: int = 0,
        *,
        incarnation: int = 1,
        is_begun: bool = True,
    ) -> None:
        self.log = log
        self.group = group
        self.image = ShareStateImage(log.control_runs)
        self.image.group_incarnation = incarnation
        self.image.start_offset = self.image.end_offset = start_offset
        if is_begun:
            self.checkpoint()

    def delta(self, *states: StateRange) -> int:
        """Records outcomes; the control record's offset."""
        image = self.image
        delta = ShareDelta(
            self.group,
            image.group_incarnation,
            image.checkpoint_epoch,
            self.log.now_ms,
            image.last_control_offset,
            states,
        )
        offset = self.log.record(delta)
        image.replay_delta(delta, offset)
        return offset

    def checkpoint(
        self,
        *changes: StateRange,
        start_offset: int | None = None,
        checkpoint_epoch: int | None = None,
        deleted: bool = False,
    ) -> int:
        """Records the whole state, with the changes of the same append; the control record's offset."""
        checkpoint = self.image.to_checkpoint(
            self.group,
            checkpoint_epoch=checkpoint_epoch or self.image.checkpoint_epoch + 1,
            decided_at_ms=self.log.now_ms,
            leader_epoch=self.log.leader_epoch,
            start_offset=start_offset,
            changes=changes,
        )
        return self.state(checkpoint._replace(deleted=deleted))

    def reset(self, start_offset: int, *, state_epoch: int | None = None) -> int:
        """Begins anew, as an administrator has it."""
        self.image.start_offset = self.image.end_offset = start_offset
        self.image.ranges = []
        self.image.state_epoch = self.image.state_epoch if state_epoch is None else state_epoch
        return self.checkpoint()

    def state(self, checkpoint: ShareCheckpoint) -> int:
        """Records a checkpoint as it is given."""
        offset = self.log.record(checkpoint)
        self.image.replay_checkpoint(checkpoint, offset)
        return offset

    def as_checkpoint(
        self, states: Sequence[StateRange] = (), changes: Sequence[StateRange] = ()
    ) -> ShareCheckpoint:
        """The next checkpoint, for a test to spoil: with these states in place of its own, their causes left
        out, and with changes that keep theirs.
        """
        checkpoint = self.image.to_checkpoint(
            self.group,
            checkpoint_epoch=self.image.checkpoint_epoch + 1,
            decided_at_ms=self.log.now_ms,
            leader_epoch=self.log.leader_epoch,
        )
        plain = [one._replace(cause=Cause.NONE, member=None) for one in states]
        return checkpoint._replace(states=(*plain, *changes) if plain or changes else checkpoint.states)
