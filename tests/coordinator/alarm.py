"""A small stand-in for the broker's `Deadlines`: it never asks a coordinator by itself, the coordinator has
to report its deadlines.
"""

from __future__ import annotations

from typing import Protocol


class Expirable(Protocol):
    """Something that is to be expired when its deadline comes."""

    def next_deadline_ms(self) -> int | None: ...

    def expire(self, now_ms: int) -> None: ...


class Alarm:
    """Set for one owner, whenever that tells that its deadline may have moved."""

    def __init__(self) -> None:
        self.armed_ms: int | None = None

    def deadline_moved(self, owner: Expirable) -> None:
        """An earlier deadline counts; at one that was put off the owner is asked again."""
        deadline_ms = owner.next_deadline_ms()
        if deadline_ms is not None and (self.armed_ms is None or deadline_ms < self.armed_ms):
            self.armed_ms = deadline_ms

    def ring(self, owner: Expirable, now_ms: int) -> None:
        """The time has come."""
        self.armed_ms = None
        owner.expire(now_ms)
        self.deadline_moved(owner)
