"""The start offset of each leader epoch of a log (KIP-101), and the `leader-epoch-checkpoint` file.

OffsetForLeaderEpoch uses it; consumers and followers notice a truncation of the log by it. Entries ascend in
both numbers. The entry of an epoch without appends is removed when the next epoch begins.

The format of the file has no checksum. So this broker writes each entry twice: a file whose entries are
neither single nor pairs is damaged. Apache Kafka writes single ones, and ignores repeated ones.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_lines, encode_lines

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """The epochs of one log, oldest first."""

    __slots__ = ("_entries", "changed")

    def __init__(self) -> None:
        self._entries: list[tuple[int, int]] = []
        self.changed = False
        """Whether the file must be written again; its writer resets it."""

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(leader epoch, start offset), oldest first."""
        return list(self._entries)

    @property
    def latest_leader_epoch(self) -> int:
        """-1 if there is none."""
        return self._entries[-1][0] if self._entries else UNDEFINED_EPOCH

    def assign(self, leader_epoch: int, start_offset: int) -> None:
        """Begins an epoch, unless it has begun.

        Entries that contradict the new one are removed: a leader never appends below an earlier offset.
        """
        if self._entries and self._entries[-1][0] == leader_epoch and self._entries[-1][1] <= start_offset:
            return
        while self._entries and (
            self._entries[-1][0] >= leader_epoch or self._entries[-1][1] >= start_offset
        ):
            self._entries.pop()
        self._entries.append((leader_epoch, start_offset))
        self.changed = True

    def end_offset_for(self, leader_epoch: int, end_offset: int) -> tuple[int, int]:
        """(leader epoch, end offset exclusive) of the newest epoch up to `leader_epoch`.

        `end_offset` is the end of the log from the caller's view. An epoch older than all known ones ends
        where the oldest begins. An epoch newer than all known ones is unknown: (-1, -1).
        """
        if leader_epoch == UNDEFINED_EPOCH or leader_epoch > self.latest_leader_epoch:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if leader_epoch == self.latest_leader_epoch:
            return leader_epoch, end_offset
        higher = bisect_right(self._entries, leader_epoch, key=lambda entry: entry[0])
        found = leader_epoch if higher == 0 else self._entries[higher - 1][0]
        return found, self._entries[higher][1]

    def epoch_at(self, offset: int) -> int:
        """The epoch of `offset`; -1 below the first epoch."""
        slot = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[slot - 1][0] if slot else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Drops the epochs that begin at or above `end_offset`."""
        kept = [entry for entry in self._entries if entry[1] < end_offset]
        self.changed |= len(kept) < len(self._entries)
        self._entries = kept

    def truncate_from_start(self, start_offset: int) -> None:
        """Drops the epochs that end at or below `start_offset`; the first remaining one then begins there."""
        covering = bisect_right(self._entries, start_offset, key=lambda entry: entry[1]) - 1
        if covering < 0 or (covering == 0 and self._entries[0][1] == start_offset):
            return
        self._entries[: covering + 1] = [(self._entries[covering][0], start_offset)]
        self.changed = True

    def encode(self) -> bytes:
        """The checkpoint file's content."""
        return encode_lines(
            [line for leader_epoch, offset in self._entries for line in [f"{leader_epoch} {offset}"] * 2]
        )

    @classmethod
    def decode(cls, data: bytes) -> LeaderEpochs:
        """The epochs in a file's content; raises CheckpointCorrupt for other bytes."""
        entries: list[tuple[int, int]] = []
        for line in decode_lines(data):
            try:
                leader_epoch, start_offset = map(int, line.split())
            except ValueError as error:
                raise CheckpointCorrupt(f"{line!r} is not a leader epoch and an offset.") from error
            entries.append((leader_epoch, start_offset))
        if entries[::2] == entries[1::2]:
            entries = entries[::2]
        ascending = all(
            before[0] < after[0] and before[1] < after[1] for before, after in pairwise([(-1, -1), *entries])
        )
        if not ascending:
            raise CheckpointCorrupt("Its entries do not ascend.")
        epochs = cls()
        epochs._entries = entries
        return epochs
