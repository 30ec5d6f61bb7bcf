"""Finds offsets by time, for ListOffsets (KIP-79, KIP-734) and share groups that begin at a duration.

The time index gives the start of the search, the batches' headers find the batch, and only the records of
this batch are decoded, in a thread if they are many. Share state is ignored. An unreadable batch on the way
raises CorruptBatch.

The log may change during a search. If it is closed, the search ends with an error. A roll makes no
difference. If its start moves or it is cleaned, the search begins again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from barnabas.protocol.batch_body import batch_body, small_body
from barnabas.protocol.record_batch import BatchHeader, is_checksum_valid
from barnabas.protocol.record_walk import RECORDS_PER_STEP, record_spans
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.stepwise import Steps, StepwiseWork, do_at_once
from barnabas.storage.format.time_index import NO_TIMESTAMP
from barnabas.storage.reading.reader import Reader
from barnabas.storage.segments.segment import Segment
from barnabas.storage.state.log_state import LogState

TimedOffset = tuple[int, int]
"""(timestamp in ms, offset) of a record."""

_HEADERS_PER_TURN = 1_000
"""Headers that are read in one turn of the loop; they take 1 or 2 ms."""


class _LogChangedError(Exception):
    """A searched segment has left the log, or the record that was found is below the log start."""


class OffsetLookup:
    """One search in one log. Used on the loop's thread only."""

    __slots__ = ("_log", "_reader", "_work")

    def __init__(self, log: LogState, reader: Reader, work: StepwiseWork) -> None:
        self._log = log
        self._reader = reader
        self._work = work

    async def first_from(self, timestamp_ms: int) -> TimedOffset | None:
        """The first record at or after `timestamp_ms`; None if there is none."""
        return await self._settled(partial(self._first_from, timestamp_ms))

    async def latest(self) -> TimedOffset | None:
        """The record with the largest timestamp, the first if several have it; None without any."""
        return await self._settled(self._latest)

    async def _settled(self, search: Callable[[], Awaitable[TimedOffset | None]]) -> TimedOffset | None:
        """The result of a search during which the log did not change."""
        while True:
            try:
                return await search()
            except _LogChangedError:
                continue

    async def _first_from(self, timestamp_ms: int) -> TimedOffset | None:
        log = self._log
        for segment in log.segments.from_offset(log.log_start_offset):
            self._check_unchanged(segment)
            if segment.max_timestamp()[0] < timestamp_ms:
                continue
            offset = max(segment.time_index.get().floor_offset(timestamp_ms), log.log_start_offset)
            floor_position = segment.offset_index.get().floor_position(offset)
            walk = self._reader.walk(segment, floor_position, offset)
            for number, (position, header) in enumerate(walk, 1):
                if header.base_offset >= log.high_watermark:
                    return None
                if header.max_timestamp_ms >= timestamp_ms and header.last_offset >= log.log_start_offset:
                    found = await self._in_batch(segment, position, header, timestamp_ms)
                    if found is not None:
                        return found
                if not number % _HEADERS_PER_TURN:
                    await self._let_others(segment)
        return None

    async def _latest(self) -> TimedOffset | None:
        first, *others = self._log.segments.from_offset(self._log.log_start_offset)
        largest = max((first, *others), key=_max_timestamp_ms)
        found = await self._latest_of(largest)
        if found is not None or largest is not first:
            return found
        found = await self._latest_from_start(first)
        following = max(others, key=_max_timestamp_ms, default=None)
        if following is not None and (found is None or _max_timestamp_ms(following) > found[0]):
            self._check_unchanged(following)
            return await self._latest_of(following)
        return found

    async def _latest_of(self, segment: Segment) -> TimedOffset | None:
        """The record with the segment's largest timestamp; None without any, or if it is below the start."""
        timestamp_ms, last_offset = segment.max_timestamp()
        if timestamp_ms < 0 or last_offset < self._log.log_start_offset:
            return None
        floor_position = segment.offset_index.get().floor_position(last_offset)
        for position, header in self._reader.walk(segment, floor_position, last_offset):
            if header.last_offset >= last_offset:
                return await self._in_batch(segment, position, header, header.max_timestamp_ms)
        return None

    async def _latest_from_start(self, segment: Segment) -> TimedOffset | None:
        """The record with the largest timestamp in the segment from the log start on.

        Reads all its headers. This is needed only if a deleted record has a later timestamp than the rest.
        """
        found: TimedOffset | None = None
        largest: tuple[int, BatchHeader] | None = None
        largest_ms = NO_TIMESTAMP
        start_offset = self._log.log_start_offset
        floor_position = segment.offset_index.get().floor_position(start_offset)
        walk = self._reader.walk(segment, floor_position, start_offset)
        for number, (position, header) in enumerate(walk, 1):
            if header.base_offset < start_offset <= header.last_offset:
                found = await self._in_batch(segment, position, header, None)
                largest_ms = NO_TIMESTAMP if found is None else found[0]
            elif header.base_offset >= start_offset and header.max_timestamp_ms > largest_ms:
                largest, largest_ms = (position, header), header.max_timestamp_ms
            if not number % _HEADERS_PER_TURN:
                await self._let_others(segment)
        if largest is not None:
            return await self._in_batch(segment, *largest, largest_ms)
        return found if largest_ms >= 0 else None

    async def _in_batch(
        self, segment: Segment, position: int, header: BatchHeader, timestamp_ms: int | None
    ) -> TimedOffset | None:
        """The batch's first record at or after `timestamp_ms`; for None, its record with the largest
        timestamp.

        Only records at or above the log start count.
        """
        batch = segment.read(position, header.size_bytes)
        steps = _find(batch, header, timestamp_ms, self._log.log_start_offset)
        try:
            if small_body(batch, header) is not None:
                return do_at_once(steps)
            found = await self._work.run(steps)
        except RecordFormatError as error:
            raise self._reader.verification.corrupt(segment, position, str(error).rstrip(".")) from error
        self._check_unchanged(segment)
        if found is not None and found[1] < self._log.log_start_offset:
            raise _LogChangedError
        return found

    async def _let_others(self, segment: Segment) -> None:
        await asyncio.sleep(0)
        self._check_unchanged(segment)

    def _check_unchanged(self, segment: Segment) -> None:
        """Raises StorageError if the log was closed meanwhile."""
        self._log.check_online()
        if self._log.segments.floor(segment.base_offset) is not segment:
            raise _LogChangedError


def _max_timestamp_ms(segment: Segment) -> int:
    return segment.max_timestamp()[0]


def _find(
    batch: bytes, header: BatchHeader, timestamp_ms: int | None, start_offset: int
) -> Steps[TimedOffset | None]:
    """The search of `_in_batch` among the records from `start_offset` on; RecordFormatError."""
    if not is_checksum_valid(batch, 0, header):
        raise RecordFormatError("Its checksum does not match its bytes.")
    latest: TimedOffset | None = None
    for index, span in enumerate(record_spans(batch_body(batch, header), header.record_count)):
        offset = header.base_offset + span.offset_delta
        time_ms = header.base_timestamp_ms + span.timestamp_delta_ms
        if header.log_append_time:
            time_ms = header.max_timestamp_ms
        if offset >= start_offset:
            if timestamp_ms is None:
                latest = (time_ms, offset) if latest is None or time_ms > latest[0] else latest
            elif time_ms >= timestamp_ms:
                return time_ms, offset
        if not index % RECORDS_PER_STEP:
            yield
    return latest
