"""Deadlines by key, in a heap that lets a deadline be put off for the price of one dictionary lookup.

The one heap of the broker: `Deadlines` keeps the owners in it, each coordinator its members. Putting a
deadline off leaves the heap as it is. An entry that comes up before its real deadline is pushed again. A
cancelled entry stays in the heap without its key, until it comes up or the heap is rebuilt.

Deadlines are not stored: each begins anew when its key is loaded. Pure: times are monotonic milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)

_STALE_MAX: Final = 64
"""Stale heap entries that never cause a rebuild; above it, at most one stale entry per live entry."""


class _Entry(Generic[_Key]):
    __slots__ = ("deadline_ms", "key", "order", "wake_ms")

    def __init__(self, key: _Key, deadline_ms: int, order: int) -> None:
        self.key: _Key | None = key
        """None once the entry was cancelled or has expired."""
        self.deadline_ms = deadline_ms
        self.wake_ms = deadline_ms
        """The time of the entry's one live place in the heap; places with another time are stale."""
        self.order = order


class DeadlineTable(Generic[_Key]):
    """Deadlines by key, one each. Keys with equal deadlines expire in the order in which they were added."""

    def __init__(self) -> None:
        self._entries: dict[_Key, _Entry[_Key]] = {}
        self._heap: list[tuple[int, int, _Entry[_Key]]] = []
        self._order = count()

    def __len__(self) -> int:
        """The number of keys with a deadline."""
        return len(self._entries)

    def __contains__(self, key: _Key) -> bool:
        return key in self._entries

    @property
    def heap_size(self) -> int:
        """Places in the heap, stale ones included: memory grows with it."""
        return len(self._heap)

    def restart(self, key: _Key, deadline_ms: int) -> bool:
        """Set the key's deadline, or move it; returns whether the next deadline may be earlier now."""
        entry = self._entries.get(key)
        if entry is None:
            self._add(key, deadline_ms)
            return True
        entry.deadline_ms = deadline_ms
        if deadline_ms >= entry.wake_ms:
            return False
        # Only after a timeout was lowered.
        self._wake_at(entry, deadline_ms)
        return True

    def bring_forward(self, key: _Key, deadline_ms: int) -> bool:
        """Set the key's deadline, or move it to an earlier time; returns whether anything changed."""
        entry = self._entries.get(key)
        if entry is None:
            self._add(key, deadline_ms)
            return True
        if entry.deadline_ms <= deadline_ms:
            return False
        entry.deadline_ms = deadline_ms
        self._wake_at(entry, deadline_ms)
        return True

    def put_off(self, key: _Key, delay_ms: int) -> None:
        """Move the key's deadline to a later time, if it has one."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.deadline_ms += delay_ms

    def cancel(self, key: _Key) -> None:
        """Remove the key's deadline, if it has one."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            entry.key = None
            self._bound_stale()

    def clear(self) -> None:
        """Remove every deadline."""
        self._entries.clear()
        self._heap.clear()

    def next_deadline_ms(self) -> int | None:
        """When to call `expire` next; it may be earlier than any deadline. None without deadlines."""
        while self._heap:
            wake_ms, _, entry = self._heap[0]
            if entry.key is not None and entry.wake_ms == wake_ms:
                return wake_ms
            heappop(self._heap)
        return None

    def expire(self, now_ms: int) -> list[_Key]:
        """Remove the deadlines that have passed; returns their keys, earliest first."""
        expired: list[_Key] = []
        while self._heap and self._heap[0][0] <= now_ms:
            wake_ms, _, entry = heappop(self._heap)
            if entry.key is None or entry.wake_ms != wake_ms:
                continue
            if entry.deadline_ms > now_ms:
                self._wake_at(entry, entry.deadline_ms)
            else:
                expired.append(entry.key)
                del self._entries[entry.key]
                entry.key = None
        return expired

    def _add(self, key: _Key, deadline_ms: int) -> None:
        entry = self._entries[key] = _Entry(key, deadline_ms, next(self._order))
        heappush(self._heap, (deadline_ms, entry.order, entry))

    def _wake_at(self, entry: _Entry[_Key], wake_ms: int) -> None:
        entry.wake_ms = wake_ms
        heappush(self._heap, (wake_ms, entry.order, entry))
        self._bound_stale()

    def _bound_stale(self) -> None:
        """Rebuild the heap once most of it is stale: stale places far in the future would stay until then."""
        live = len(self._entries)
        if len(self._heap) - live > max(live, _STALE_MAX):
            self._heap = [(entry.wake_ms, entry.order, entry) for entry in self._entries.values()]
            heapify(self._heap)
