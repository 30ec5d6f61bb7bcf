"""How far one partition is read: delivered, processed, committed (pure).

All knowledge about single offsets is here; the other parts only ask for the place to continue and the offset
to commit. Pure.
"""

from __future__ import annotations


class Progress:
    """The offsets of one partition. All offsets are those of the next record."""

    __slots__ = ("_committed", "_processed", "position")

    def __init__(self) -> None:
        self.position: int | None = None
        """The next record to deliver; None until it is known."""
        self._processed: int | None = None
        """All records before it have been processed: the application has asked for more."""
        self._committed: int | None = None

    def seek(self, offset: int) -> None:
        """Continue at this offset. Records before it count as processed."""
        self.position = self._processed = offset

    def lose_position(self) -> None:
        """The position must be found again."""
        self.position = self._processed = None

    def deliver(self, next_offset: int) -> None:
        """The records before `next_offset` have been delivered, or there are none."""
        self.position = next_offset

    def settle(self) -> None:
        """The application has processed all records that were delivered."""
        self._processed = self.position

    def to_commit(self) -> int | None:
        """The offset to commit; None if it is unknown or committed."""
        return None if self._processed == self._committed else self._processed

    def note_committed(self, offset: int) -> None:
        self._committed = offset
