"""How far one partition is read: delivered, processed, committed (pure).

All knowledge about single offsets is here and in `individual_progress`; the other parts only ask for the
place to continue and the offset to commit. Pure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol


class HasOffset(Protocol):
    """A record."""

    @property
    def offset(self) -> int: ...


class Progress(ABC):
    """The offsets of one partition. All offsets are those of the next record."""

    __slots__ = ("position",)

    def __init__(self) -> None:
        self.position: int | None = None
        """The next record to deliver; None until it is known."""

    @abstractmethod
    def seek(self, offset: int) -> None:
        """Continue at this offset."""

    @abstractmethod
    def lose_position(self) -> None:
        """The position must be found again."""

    @abstractmethod
    def deliver(self, records: Sequence[HasOffset], next_offset: int) -> None:
        """These records have been delivered; there are no others before `next_offset`."""

    @abstractmethod
    def settle(self) -> None:
        """The application has processed all records that were delivered."""


class OrderedProgress(Progress):
    """For a partition with one committed offset: all records before it are processed."""

    __slots__ = ("_committed", "_processed")

    def __init__(self) -> None:
        super().__init__()
        self._processed: int | None = None
        """All records before it have been processed: the application has asked for more."""
        self._committed: int | None = None

    def seek(self, offset: int) -> None:
        """Records before the offset count as processed."""
        self.position = self._processed = offset

    def lose_position(self) -> None:
        self.position = self._processed = None

    def deliver(self, records: Sequence[HasOffset], next_offset: int) -> None:
        self.position = next_offset

    def settle(self) -> None:
        self._processed = self.position

    def to_commit(self) -> int | None:
        """The offset to commit; None if it is unknown or committed."""
        return None if self._processed == self._committed else self._processed

    def note_committed(self, offset: int) -> None:
        self._committed = offset
