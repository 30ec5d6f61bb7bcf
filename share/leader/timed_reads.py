"""The records of a read that may not be delivered now, in groups in which records are delayed, or have a time
to live (docs/decisions/0031).

A batch whose records are all of the present is not looked into. A batch that inflates beyond a bound, or has
very many records, is judged as a whole by its largest timestamp, and its headers are not read. Records
without a timestamp are due at once and never expire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.batch_facts import facts_of_batch
from barnabas.protocol.delivery_state import Cause, Due
from barnabas.protocol.record_batch import BatchHeader, read_header
from barnabas.protocol.record_facts import RecordFacts
from barnabas.protocol.varint import RecordFormatError
from barnabas.share.leader import batch_keys
from barnabas.share.partition.arrival import TimedPart
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import RecordTiming
from barnabas.share.partition.waits import WAIT_MS_MAX, due_at
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan

_DIGITS_MAX: Final = len(str(WAIT_MS_MAX))
"""The longest value of a header that can be a delay."""


class Gate(NamedTuple):
    """Where the reading of new records stops."""

    offset: int
    due_ms: int | None
    """Until when, in wall-clock time; None: until there is room for another delayed record."""
    delay_ms: int
    """The delay of the group by which the time was computed."""


class TimedRead(NamedTuple):
    """The result of a look at the batches of a read."""

    parts: list[TimedPart]
    """Ascending and disjoint."""
    gate: Gate | None
    """The first new record that must not come in flight yet, if there is one."""
    earliest_ms: int | None
    """The earliest timestamp of the records that have not expired; None if none is known to expire."""
    invalid_headers: int
    """Records whose header is no delay."""
    unread_headers: int
    """Records of batches beyond the bounds, whose headers were not read."""


def batches_before(batches: Sequence[BatchSpan], gate: Gate) -> list[BatchSpan]:
    """The batches of a read, up to the gate."""
    return [
        batch._replace(last_offset=min(batch.last_offset, gate.offset - 1))
        for batch in batches
        if batch.base_offset < gate.offset
    ]


def keys_before(keys: Sequence[BatchKeys], gate: Gate) -> list[BatchKeys]:
    """The keys and priorities of a read, up to the gate."""
    return [
        batch.between(batch.base_offset, gate.offset - 1) for batch in keys if batch.base_offset < gate.offset
    ]


def look_at_times(
    read: Sequence[BatchSlice],
    timing: RecordTiming,
    *,
    first_new_offset: int,
    delayed_room: int,
    passed_over: Mapping[int, Cause],
    wall_ms: int,
) -> TimedRead:
    """Looks at the batches of a read, ascending, up to a record that closes the gate.

    Records from `first_new_offset` on can be delayed, `delayed_room` of them by a header. `passed_over` are
    the batches that no member gets, by their base offsets: malformed ones, and those of aborted transactions.
    """
    look = _Look(timing, first_new_offset, delayed_room, wall_ms)
    for data, span in _spans(read):
        header = read_header(data, span.start)
        cause = passed_over.get(span.base_offset)
        if cause is None and (header.is_control or not header.record_count):
            cause = Cause.GAP
        if cause is None:
            look.at_batch(data[span.start : span.end], header, span)
        else:
            look.add(span.base_offset, span.last_offset, cause)
        if look.gate is not None:
            break
    return TimedRead(look.parts, look.gate, look.earliest_ms, look.invalid_headers, look.unread_headers)


def _spans(read: Sequence[BatchSlice]) -> Iterator[tuple[memoryview, BatchSpan]]:
    for slice_ in read:
        for span in slice_.batches:
            yield slice_.data, span


class _Look:
    """The state of a look."""

    def __init__(self, timing: RecordTiming, first_new_offset: int, delayed_room: int, wall_ms: int) -> None:
        self._timing = timing
        self._first_new_offset = first_new_offset
        self._delayed_room = delayed_room
        self._wall_ms = wall_ms
        self.parts: list[TimedPart] = []
        self.gate: Gate | None = None
        self.earliest_ms: int | None = None
        self.invalid_headers = 0
        self.unread_headers = 0

    def add(self, first_offset: int, last_offset: int, fate: Due | Cause) -> None:
        newest = self.parts[-1] if self.parts else None
        if newest is not None and newest.last_offset + 1 == first_offset and newest.fate == fate:
            self.parts[-1] = newest._replace(last_offset=last_offset)
        else:
            self.parts.append(TimedPart(first_offset, last_offset, fate))

    def at_batch(self, batch: memoryview, header: BatchHeader, span: BatchSpan) -> None:
        timing, is_new = self._timing, span.last_offset >= self._first_new_offset
        if self._is_expired(header.max_timestamp_ms):
            self.add(span.base_offset, span.last_offset, Cause.EXPIRED)
            return
        name = timing.delay_header if is_new else None
        is_late = is_new and self._due_ms(header.max_timestamp_ms, timing.delay_ms) > self._wall_ms
        if name is None and not is_late and not timing.ttl_ms:
            return
        facts = self._facts(batch, header, name)
        if facts is None:
            self._judge_whole(header, span, is_late=is_late)
        elif is_late or self._has_timed(facts, header.base_timestamp_ms):
            self._judge_records(facts, header, span)
        else:
            self._note_alive(header.base_timestamp_ms + min(facts.timestamp_deltas_ms, default=0))

    def _facts(self, batch: memoryview, header: BatchHeader, name: bytes | None) -> RecordFacts | None:
        """None for a batch beyond the bounds, and for a malformed one, which other parts pass over.

        The bounds are those of the reading of keys: a batch is divided at the gate only with known keys.
        """
        try:
            return facts_of_batch(
                batch,
                header,
                name,
                records_max=batch_keys.HASHED_RECORDS_MAX,
                inflated_bytes_max=batch_keys.HASHED_BYTES_MAX,
            )
        except RecordFormatError:
            return None

    def _judge_whole(self, header: BatchHeader, span: BatchSpan, *, is_late: bool) -> None:
        timing = self._timing
        if is_late:
            self._close(max(span.base_offset, self._first_new_offset), header.max_timestamp_ms)
        elif timing.delay_header is not None and span.last_offset >= self._first_new_offset:
            self.unread_headers += header.record_count
        self._note_alive(header.max_timestamp_ms)

    def _has_timed(self, facts: RecordFacts, base_timestamp_ms: int) -> bool:
        """Whether a record has the header, or may have expired."""
        if self._timing.ttl_ms:
            first_ms = base_timestamp_ms + min(facts.timestamp_deltas_ms, default=0)
            if first_ms <= self._wall_ms - self._timing.ttl_ms:
                return True
        return any(value is not None for value in facts.header_values)

    def _judge_records(self, facts: RecordFacts, header: BatchHeader, span: BatchSpan) -> None:
        """A part reaches from behind the record before it, so that offsets without a record go with the next
        one, and those at the end with the last one.
        """
        first_offset = span.base_offset
        last_delta = facts.offset_deltas[-1] if facts.offset_deltas else -1
        for offset_delta, timestamp_delta_ms, value in zip(*facts, strict=True):
            is_last = offset_delta == last_delta
            offset = span.last_offset if is_last else span.base_offset + offset_delta
            self._judge(first_offset, offset, header.base_timestamp_ms + timestamp_delta_ms, value)
            if self.gate is not None:
                return
            first_offset = offset + 1

    def _judge(self, first_offset: int, last_offset: int, timestamp_ms: int, value: bytes | None) -> None:
        if self._is_expired(timestamp_ms):
            self.add(first_offset, last_offset, Cause.EXPIRED)
            return
        if last_offset >= self._first_new_offset:
            self._judge_new(max(first_offset, self._first_new_offset), last_offset, timestamp_ms, value)
        self._note_alive(timestamp_ms)

    def _judge_new(self, first_offset: int, last_offset: int, timestamp_ms: int, value: bytes | None) -> None:
        """The delay of a record's header takes the place of the group's."""
        own_delay_ms = None if value is None else self._delay_in(value)
        if own_delay_ms is None:
            if self._due_ms(timestamp_ms, self._timing.delay_ms) > self._wall_ms:
                self._close(first_offset, timestamp_ms)
            return
        due_ms = self._due_ms(timestamp_ms, own_delay_ms)
        if due_ms <= self._wall_ms:
            return
        if self._delayed_room <= 0:
            self.gate = Gate(first_offset, None, self._timing.delay_ms)
            return
        self._delayed_room -= 1
        self.add(first_offset, last_offset, due_at(due_ms))

    def _delay_in(self, value: bytes) -> int | None:
        """The delay in a header, in ms; None if it is none."""
        if value.isdigit() and len(value) <= _DIGITS_MAX:
            delay_ms = int(value)
            if delay_ms <= WAIT_MS_MAX:
                return delay_ms
        self.invalid_headers += 1
        return None

    def _is_expired(self, timestamp_ms: int) -> bool:
        ttl_ms = self._timing.ttl_ms
        return bool(ttl_ms) and 0 <= timestamp_ms <= self._wall_ms - ttl_ms

    def _due_ms(self, timestamp_ms: int, delay_ms: int) -> int:
        """When a record is due. A timestamp may be far in the future, if its topic allows that."""
        if timestamp_ms < 0 or not delay_ms:
            return self._wall_ms
        return min(timestamp_ms + delay_ms, self._wall_ms + WAIT_MS_MAX)

    def _close(self, offset: int, timestamp_ms: int) -> None:
        delay_ms = self._timing.delay_ms
        self.gate = Gate(offset, self._due_ms(timestamp_ms, delay_ms), delay_ms)

    def _note_alive(self, timestamp_ms: int) -> None:
        if timestamp_ms >= 0 and (self.earliest_ms is None or timestamp_ms < self.earliest_ms):
            self.earliest_ms = timestamp_ms
