"""The queue between fetches and readers: records wait here for a reader, and readers for records.

The queue decides how many records the leaders may fetch. Bounds: a fetch starts when fewer than
`prefetch_records` wait here, or when none wait and a reader does. It asks for at most `max_records`; in
record_limit mode it asks for enough to fill the prefetch twice, and the leaders take turns, one at a time.

Nothing is fetched ahead if the reader has stopped reading. Otherwise locks would expire here again and again,
until the broker archives records that no reader has seen. Nothing is fetched ahead after a redelivery either:
every delivery of such a record may be its last, so none should be spent on a record that waits unread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Generic

from barnabas.client.errors import ConsumerClosedError
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.share.held_record import RecordState
from barnabas.client.share.options import Settings
from barnabas.client.share.record import ShareRecord

_MS_PER_SECOND: Final = 1000


class PrefetchQueue(Generic[KeyT, ValueT]):
    """The records of all leaders in the order of their arrival."""

    def __init__(self, settings: Settings, on_room: Callable[[], None]) -> None:
        """`on_room` is called when leaders that had to wait may fetch."""
        self._settings = settings
        self._on_room = on_room
        self._loop = asyncio.get_running_loop()
        self._records: deque[ShareRecord[KeyT, ValueT]] = deque()
        self._readers: dict[asyncio.Future[None], int] = {}
        """The waiting readers, each with the number of records that it would accept."""
        self._is_read = False
        """Whether a reader has called `take` since the last records arrived."""
        self._is_redelivery = False
        """Whether one of the last records to arrive had been delivered before."""
        self._turns: deque[int] = deque()
        """In record_limit mode, the leaders that want to fetch; only the first may."""
        self._end: BaseException | None = None
        self._is_stopping = False
        """Between a stop and the end: records that still arrive are released."""

    # Leaders call these.

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
        """End this leader's turn: it has fetched, or cannot fetch.

        It queues again at the end when it wants to.
        """
        if node_id in self._turns:
            self._turns.remove(node_id)
            self._on_room()

    def add(self, records: Iterable[ShareRecord[KeyT, ValueT]]) -> None:
        """Add fetched records; after a stop they are released, after the end they are dropped."""
        added = list(records)
        if self._is_stopping:
            for record in added:
                record.release_unread()
        if self._end is not None:
            return
        self._records.extend(added)
        self._is_read = False
        self._is_redelivery = any(record.delivery_count > 1 for record in added)
        if self._records:
            self.wake_readers()

    # Readers call these.

    def take(self, count_max: int) -> list[ShareRecord[KeyT, ValueT]]:
        """At most `count_max` of the waiting records; records whose lock has ended meanwhile are skipped.

        Raises `ConsumerClosedError`, or the error that ended the consumer, once no record is left.
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
        """Return when records have arrived or the queue has ended.

        `count_max` is how many records the reader would accept.
        """
        if self._end is not None:
            return
        arrival: asyncio.Future[None] = self._loop.create_future()
        self._readers[arrival] = count_max
        self._on_room()
        try:
            await arrival
        finally:
            self._readers.pop(arrival, None)

    # The consumer calls this.

    def end(self, reason: BaseException | None = None) -> None:
        """End the queue and drop the waiting records; without a `reason`, the consumer was closed."""
        if self._end is None:
            self._end = reason or ConsumerClosedError("The consumer is closed.")
        self._is_stopping = False
        self._records.clear()
        self.wake_readers()

    def stop(self) -> None:
        """Give readers no further record, and release those that still arrive until the end."""
        self.end(ConsumerClosedError("The consumer is stopping."))
        self._is_stopping = True

    @property
    def has_ended(self) -> bool:
        """Whether readers get no further record."""
        return self._end is not None

    @property
    def count(self) -> int:
        """The records that wait for a reader."""
        return len(self._records)

    def drop(self) -> list[ShareRecord[KeyT, ValueT]]:
        """Take all waiting records out, without a reader."""
        dropped = list(self._records)
        self._records.clear()
        return dropped

    def wake_readers(self) -> None:
        """Let every waiting reader look again."""
        readers, self._readers = self._readers, {}
        for arrival in readers:
            if not arrival.done():
                arrival.set_result(None)
