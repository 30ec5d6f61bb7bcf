"""One deadline per key, in a heap where postponing a deadline costs one dictionary write.

Postponing leaves the heap unchanged; an entry that reaches the top before its real deadline is put back.
Deadlines are kept in memory only: they begin anew when their owner is loaded. Pure: times are arguments, in
monotonic milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)

_STALE_MAX: Final = 64
"""Stale entries that the heap may have; more are allowed while there are more live entries."""


class _Entry(Generic[_Key]):
    __slots__ = ("deadline_ms", "key", "order", "wake_ms")

    def __init__(self, key: _Key, deadline_ms: int, order: int) -> None:
        self.key = key
        self.deadline_ms = deadline_ms
        self.wake_ms = deadline_ms
        """The time of the key's one live heap entry; its entries with another time are stale."""
        self.order = order


class DeadlineTable(Generic[_Key]):
    """Deadlines by key, at most one for each key."""

    def __init__(self) -> None:
        self._entries: dict[_Key, _Entry[_Key]] = {}
        self._heap: list[tuple[int, int, _Entry[_Key]]] = []
        self._order = count()

    def __contains__(self, key: _Key) -> bool:
        return key in self._entries

    def restart(self, key: _Key, deadline_ms: int) -> None:
        """Set the key's deadline, or move it."""
        entry = self._entries.get(key)
        if entry is None:
            entry = _Entry(key, deadline_ms, next(self._order))
            self._entries[key] = entry
            heappush(self._heap, (deadline_ms, entry.order, entry))
            return
        entry.deadline_ms = deadline_ms
        if deadline_ms < entry.wake_ms:
            # Only after a timeout was lowered.
            self._wake_at(entry, deadline_ms)

    def cancel(self, key: _Key) -> None:
        """Forget the key's deadline, if it has one."""
        self._entries.pop(key, None)
        self._bound_stale()

    def next_deadline_ms(self) -> int | None:
        """When to call `expire` next; it may be earlier than any deadline."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def expire(self, now_ms: int) -> list[_Key]:
        """Forget the deadlines that have passed, and return their keys, earliest first."""
        ended: list[_Key] = []
        while self._heap and self._heap[0][0] <= now_ms:
            wake_ms, _, entry = heappop(self._heap)
            if not self._is_live(entry, wake_ms):
                continue
            if entry.deadline_ms > now_ms:
                self._wake_at(entry, entry.deadline_ms)
            else:
                del self._entries[entry.key]
                ended.append(entry.key)
        return ended

    def _wake_at(self, entry: _Entry[_Key], wake_ms: int) -> None:
        entry.wake_ms = wake_ms
        heappush(self._heap, (wake_ms, entry.order, entry))
        self._bound_stale()

    def _is_live(self, entry: _Entry[_Key], wake_ms: int) -> bool:
        return self._entries.get(entry.key) is entry and entry.wake_ms == wake_ms

    def _bound_stale(self) -> None:
        """Rebuild the heap once most of it is stale: stale entries far in the future never reach the top."""
        live = len(self._entries)
        if len(self._heap) - live > max(live, _STALE_MAX):
            self._heap = [(entry.wake_ms, entry.order, entry) for entry in self._entries.values()]
            heapify(self._heap)

    def _drop_stale(self) -> None:
        while self._heap and not self._is_live(self._heap[0][2], self._heap[0][0]):
            heappop(self._heap)
