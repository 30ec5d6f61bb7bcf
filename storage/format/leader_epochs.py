"""At which offset each leader epoch of a log begins (KIP-101), and the `leader-epoch-checkpoint` file.

It answers OffsetForLeaderEpoch, by which consumers and followers notice that a log was truncated. Entries
ascend in both numbers; an epoch in which nothing was appended leaves none once the next one begins.
"""

from __future__ import annotations

from bisect import bisect_right

from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_lines, encode_lines

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """The epochs of one log, oldest first."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, int]] = []

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(leader epoch, start offset), oldest first."""
        return list(self._entries)

    @property
    def latest_leader_epoch(self) -> int:
        """-1 if there is none."""
        return self._entries[-1][0] if self._entries else UNDEFINED_EPOCH

    def assign(self, leader_epoch: int, start_offset: int) -> bool:
        """Begins an epoch, unless it has begun; whether anything changed.

        Entries that the new one contradicts go: a leader appends nothing below what it knows.
        """
        if self._entries and self._entries[-1][0] == leader_epoch and self._entries[-1][1] <= start_offset:
            return False
        while self._entries and (
            self._entries[-1][0] >= leader_epoch or self._entries[-1][1] >= start_offset
        ):
            self._entries.pop()
        self._entries.append((leader_epoch, start_offset))
        return True

    def end_offset_for(self, leader_epoch: int, end_offset: int) -> tuple[int, int]:
        """(leader epoch, end offset exclusive) of the newest epoch not above the asked one.

        `end_offset` is the end of the log for whoever asks. An epoch older than all that are known ends where
        the oldest begins; one newer than all is unknown: (-1, -1).
        """
        if leader_epoch == UNDEFINED_EPOCH or leader_epoch > self.latest_leader_epoch:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if leader_epoch == self.latest_leader_epoch:
            return leader_epoch, end_offset
        higher = bisect_right(self._entries, leader_epoch, key=lambda entry: entry[0])
        found = leader_epoch if higher == 0 else self._entries[higher - 1][0]
        return found, self._entries[higher][1]

    def epoch_at(self, offset: int) -> int:
        """The epoch that `offset` belongs to; -1 below the first one."""
        slot = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[slot - 1][0] if slot else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drops the epochs that begin at or above `end_offset`; whether any did."""
        kept = [entry for entry in self._entries if entry[1] < end_offset]
        changed = len(kept) < len(self._entries)
        self._entries = kept
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drops the epochs that end at or below `start_offset`, and lets the first left begin there."""
        covering = bisect_right(self._entries, start_offset, key=lambda entry: entry[1]) - 1
        if covering < 0 or (covering == 0 and self._entries[0][1] == start_offset):
            return False
        self._entries[: covering + 1] = [(self._entries[covering][0], start_offset)]
        return True

    def encode(self) -> bytes:
        """The checkpoint file's content."""
        return encode_lines([f"{leader_epoch} {offset}" for leader_epoch, offset in self._entries])

    @classmethod
    def decode(cls, data: bytes) -> LeaderEpochs:
        """What `encode` encoded; CheckpointCorrupt if it is something else."""
        epochs = cls()
        for line in decode_lines(data):
            try:
                leader_epoch, start_offset = map(int, line.split())
            except ValueError as error:
                raise CheckpointCorrupt(f"{line!r} is not a leader epoch and an offset.") from error
            epochs.assign(leader_epoch, start_offset)
        return epochs
