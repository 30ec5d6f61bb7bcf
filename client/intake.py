"""Where fetched records wait for a reader, and readers for records.

It says how much the leaders may fetch. Bounds: a fetch starts when fewer than `prefetch_records` wait here,
or when nothing does and a reader is there; it asks for `max_records` at most, and in record_limit mode for
what makes up the prefetch twice, by one leader at a time, which take turns.

Nothing is fetched ahead for a reader who has stopped reading: the locks would end here, again and again,
until the broker archives records that nobody has seen. Nor is anything behind records that were delivered
before: of those a consumer should hold none that nobody sees, since every delivery may be the last.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Generic

from barnabas.client.errors import ConsumerClosedError
from barnabas.client.held_record import RecordState
from barnabas.client.options import Settings
from barnabas.client.record import KeyT, ShareRecord, ValueT

_MS_PER_SECOND: Final = 1000


class Intake(Generic[KeyT, ValueT]):
    """The records of all leaders in the order of their arrival."""

    def __init__(self, settings: Settings, on_room: Callable[[], None]) -> None:
        """`on_room` is called when leaders may fetch that could not before."""
        self._settings = settings
        self._on_room = on_room
        self._loop = asyncio.get_running_loop()
        self._records: deque[ShareRecord[KeyT, ValueT]] = deque()
        self._readers: dict[asyncio.Future[None], int] = {}
        """Those who wait, with how many records each would take."""
        self._is_read = False
        """Whether a reader has come since records came last."""
        self._is_redelivery = False
        """Whether a record that came last was delivered before."""
        self._turns: deque[int] = deque()
        """In record_limit mode, the leaders that would fetch; the first may."""
        self._end: BaseException | None = None

    # What leaders call.

    def wanted_count(self, node_id: int) -> int:
        """How many records the leader may ask for now; 0 if none."""
        if self._end is not None:
            return 0
        waiting_count, settings = len(self._records), self._settings
        if waiting_count and waiting_count >= settings.prefetch_records:
            return 0
        may_fetch_ahead = self._is_read and not self._is_redelivery and settings.prefetch_records
        if not self._readers and not may_fetch_ahead:
            return 0
        if not settings.limits_records:
            return settings.max_records
        if node_id not in self._turns:
            self._turns.append(node_id)
        if self._turns[0] != node_id:
            return 0
        room = max(2 * settings.prefetch_records, sum(self._readers.values())) - waiting_count
        return min(room, settings.max_records)

    def pass_turn(self, node_id: int) -> None:
        """This leader has fetched, or cannot: the next one may, and it comes last when it wants again."""
        if node_id in self._turns:
            self._turns.remove(node_id)
            self._on_room()

    def add(self, records: Iterable[ShareRecord[KeyT, ValueT]]) -> None:
        """Records have come; after the end nobody wants them."""
        if self._end is not None:
            return
        added = list(records)
        self._records.extend(added)
        self._is_read = False
        self._is_redelivery = any(record.delivery_count > 1 for record in added)
        if self._records:
            self._wake_readers()

    # What readers call.

    def take(self, count_max: int) -> list[ShareRecord[KeyT, ValueT]]:
        """So many of the records that wait, or fewer; those whose lock has ended meanwhile are passed over.

        Raises `ConsumerClosedError`, or what the consumer has failed with, once nothing is left.
        """
        taken: list[ShareRecord[KeyT, ValueT]] = []
        now_ms = self._loop.time() * _MS_PER_SECOND
        while self._records and len(taken) < count_max:
            record = self._records.popleft()
            if record.state is RecordState.HELD and now_ms < record.lock_deadline_ms:
                taken.append(record)
        self._is_read = True
        if not taken and self._end is not None:
            raise self._end
        if len(self._records) < self._settings.prefetch_records:
            self._on_room()
        return taken

    async def wait(self, count_max: int) -> None:
        """Return when records have come, or nothing more will; `count_max` is what the reader would take."""
        if self._end is not None:
            return
        arrival: asyncio.Future[None] = self._loop.create_future()
        self._readers[arrival] = count_max
        self._on_room()
        try:
            await arrival
        finally:
            self._readers.pop(arrival, None)

    # What the consumer calls.

    def end(self, reason: BaseException | None = None) -> None:
        """Nothing more comes, and what waits goes to nobody: it is closed, unless there is another reason."""
        if self._end is None:
            self._end = reason or ConsumerClosedError("The consumer is closed.")
        self._records.clear()
        self._wake_readers()

    def _wake_readers(self) -> None:
        readers, self._readers = self._readers, {}
        for arrival in readers:
            if not arrival.done():
                arrival.set_result(None)
