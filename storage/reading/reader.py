"""Reads a log: slices of its files, located by the indexes, with share state cut out.

`read` serves Fetch and works by positions: it reads only the header of the first batch that it returns, and
the last batch may be cut short, as Kafka's clients expect. `read_batches` serves share groups, which need the
beginning of each batch. Both are synchronous, because the data is usually in the page cache, where a read
costs less than the hand-over to a thread. They raise OSError from the disk, ApiError for an offset outside
the log, and CorruptBatch for an offset that a damaged batch may hold. Batches before a damaged one are
returned without it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice
from struct import Struct
from typing import Final, NamedTuple

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import (
    CONTROL_FLAG,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    BatchHeader,
)
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import CorruptBatch
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan, LogSlice
from barnabas.storage.reading.read_errors import Reads
from barnabas.storage.reading.transaction_lookup import aborted_between
from barnabas.storage.reading.verification import Verification
from barnabas.storage.segments.segment import Segment
from barnabas.storage.share.share_state import may_be_share_state
from barnabas.storage.state.log_state import LogState
from barnabas.storage.state.newest_batches import NewestBatch

_SPAN: Final = Struct(">qi9xhi30xi")
"""Fields of a batch's header: base offset, batch length, attributes, last offset delta, record count."""

_NO_HOLE: Final = (-1, -1)

_HINT_COUNT_MAX: Final = 64
_WALK_BYTES: Final = 16 * 1024
_VERIFIED_MAX: Final = 500
"""A read verifies no more batches, which takes some milliseconds; the next read goes on behind them."""
_HOLE_BYTES_MAX: Final = 32 * 1024
"""Share state up to this size between two pieces is read with them and left out; larger parts are skipped."""
_WINDOW_BYTES_MIN: Final = 4 * 1024
_WINDOW_MARGIN: Final = 1.25
_RECORD_BYTES_AT_FIRST: Final = 256.0
_RECORD_BYTES_WEIGHT: Final = 0.25


_NOTHING: Final = BatchSlice([], memoryview(b""))


class _Wanted(NamedTuple):
    """The arguments of `read_batches`; `upper_offset` is exclusive."""

    offset: int
    upper_offset: int
    records_max: int
    bytes_max: int
    at_least_one: bool


class _Scan(NamedTuple):
    """The wanted batches in a window of bytes."""

    spans: list[BatchSpan]
    record_count: int
    scanned_bytes: int
    """The end of the examined batches in the window."""
    is_finished: bool
    """Whether a limit was reached, not only the end of the window."""
    next_bytes: int
    """The size of a batch that the window cuts short, else 0."""
    has_empty: bool


_new_header, _new_scan, _new_wanted = maker(BatchHeader), maker(_Scan), maker(_Wanted)
_new_log_slice, _new_slice, _new_span = maker(LogSlice), maker(BatchSlice), maker(BatchSpan)


class Reader:
    """Reads one log. Used on the loop's thread only."""

    __slots__ = ("_hints", "_log", "_record_bytes", "reads", "verification")

    def __init__(self, log: LogState) -> None:
        self.verification = Verification(log)
        self.reads = Reads(log)
        """Gives the errors of reads the form that callers expect."""
        self._log = log
        self._hints: OrderedDict[int, tuple[Segment, int]] = OrderedDict()
        """The segment and position of the batch at an offset, so that a continuing reader needs no search."""
        self._record_bytes = _RECORD_BYTES_AT_FIRST
        """The average size of a record in recent reads."""

    def forget_positions(self) -> None:
        """To be called when segments have left the log or were written anew."""
        self._hints.clear()
        self._log.newest.forget()
        self.verification.forget()
        self._log.key_buckets.forget()

    def read(
        self,
        offset: int,
        *,
        bytes_max: int,
        upper_offset: int | None,
        at_least_one: bool,
        with_aborted: bool = False,
    ) -> LogSlice:
        """The log from `offset` on and below `upper_offset` (exclusive; the high watermark if None).

        Ends with the segment, unless it is read from memory. `at_least_one` allows the first batch more than
        `bytes_max`.
        """
        upper_offset = self._bounded(offset, upper_offset)
        if not with_aborted and self._log.newest.start_offset <= offset < upper_offset:
            newest = self._log.newest.read(offset, upper_offset, upper_offset - offset)
            return _newest_slice(newest, offset, bytes_max, at_least_one)
        found = self._find_data(offset, upper_offset)
        if found is None:
            return LogSlice([], 0, offset)
        segment, start, first = found
        pieces: list[tuple[int, int]] = []
        size_bytes = 0
        if at_least_one or first.size_bytes <= bytes_max:
            bytes_max = max(bytes_max, first.size_bytes)
            pieces, size_bytes = self._find_pieces(segment, start, offset, upper_offset, bytes_max)
            if size_bytes == first.size_bytes:  # such a reader goes on with the next batch
                self._remember(first.last_offset + 1, segment, start + size_bytes)
        aborted: Sequence[tuple[int, int]] = ()
        if with_aborted:
            aborted = self._aborted(segment, offset, pieces[-1][1] if pieces else start)
        return LogSlice(_read_pieces(segment, pieces), size_bytes, first.base_offset, aborted)

    def _find_pieces(
        self, segment: Segment, start: int, offset: int, upper_offset: int, bytes_max: int
    ) -> tuple[list[tuple[int, int]], int]:
        """(start, end) of the pieces to read, from the batch at `start` on, which holds `offset`; and their
        size.
        """
        is_verified = start >= segment.unverified_end
        if is_verified:
            end = self._end_position(segment, start, upper_offset)
        else:
            end = self._verified_end(segment, offset, upper_offset, bytes_max)
        pieces = _data_pieces(segment, start, end, bytes_max)
        size_bytes = sum([end - start for start, end in pieces])
        if is_verified and size_bytes < bytes_max:
            self._remember_end(segment, pieces[-1][1], upper_offset)
        return pieces, size_bytes

    def _aborted(self, segment: Segment, offset: int, end: int) -> list[tuple[int, int]]:
        """The aborted transactions that may have batches from `offset` on and before the position `end`."""
        segments = self._log.segments
        upper_offset = segment.offset_index.get().upper_offset(end)
        if upper_offset is None:
            following = segments.after(segment)
            upper_offset = self._log.log_end_offset if following is None else following.base_offset
        return [aborted[:2] for aborted in aborted_between(segments, offset, upper_offset)]

    def available_bytes(self, offset: int, *, upper_offset: int | None, enough: int) -> int:
        """The bytes that `read` could return from `offset` on, counted up to `enough`."""
        upper_offset = self._bounded(offset, upper_offset)
        if offset >= upper_offset or enough <= 1:
            return int(offset < upper_offset)
        found = self._find_data(offset, upper_offset)
        if found is None:
            return 0
        segment: Segment | None = found[0]
        start, available = found[1], 0
        while segment is not None and segment.base_offset < upper_offset and available < enough:
            try:
                end = self._end_position(segment, start, upper_offset)
            except CorruptBatch:
                return enough  # a fetch must not wait: it gets the error
            control_bytes = sum(end - start for start, end in segment.share_index.get().spans(start, end))
            available += end - start - control_bytes
            segment, start = self._log.segments.after(segment), 0
        return available

    def timestamp_at(self, offset: int) -> int | None:
        """The time of the first record of the batch that holds or follows `offset`, by its header.

        Batches that compaction has emptied, and transaction markers, are passed over. None if there is no
        such batch below the high watermark, or if its records have no timestamps.
        """
        for _, _, header in self._data_from(offset, self._bounded(offset, None)):
            if header.record_count and not header.is_control:
                return header.first_timestamp_ms if header.first_timestamp_ms >= 0 else None
        return None

    def read_batches(
        self,
        offset: int,
        *,
        records_max: int,
        bytes_max: int,
        upper_offset: int | None = None,
        at_least_one: bool = True,
    ) -> BatchSlice:
        """The batches with `records_max` data offsets from `offset` on.

        Fewer at the end of a segment and when `bytes_max` is reached; `at_least_one` allows the first batch
        more than that. All are below `upper_offset` (exclusive; the high watermark if None). Raises
        OFFSET_OUT_OF_RANGE, StorageError.
        """
        upper_offset = self._bounded(offset, upper_offset)
        if offset >= upper_offset:
            return _NOTHING
        newest = self._log.newest
        if offset >= newest.start_offset:
            return _newest_batches(newest.read(offset, upper_offset, records_max), bytes_max, at_least_one)
        try:
            return self._read_batches(
                _new_wanted((offset, upper_offset, records_max, bytes_max, at_least_one))
            )
        except (OSError, RecordFormatError) as error:
            raise self.reads.error_of(error) from error

    def _read_batches(self, wanted: _Wanted) -> BatchSlice:
        """The same from the file."""
        offset = wanted.offset
        window_bytes = self._first_window_bytes(wanted)
        segment, position = self._floor(offset)
        while True:
            position = segment.share_index.get().end_of_run(position)
            left_bytes = segment.size_bytes - position
            if position < segment.unverified_end and left_bytes > 0:
                position, left_bytes = self._verified_window(segment, offset, window_bytes)
            if left_bytes <= 0:
                following = self._log.segments.after(segment)
                if following is None:
                    return _NOTHING
                segment, position = following, 0
                continue
            data = segment.read(position, min(window_bytes, left_bytes))
            holes = segment.share_index.get().spans(position, position + len(data))
            scan = _scan_batches(data, position, wanted, holes)
            if scan.spans and (scan.is_finished or len(data) == left_bytes):
                self._remember_scan(segment, position, scan)
                return _slice(scan, data)
            if scan.is_finished:
                return _NOTHING
            if not scan.spans:
                position += scan.scanned_bytes
            window_bytes = max(2 * window_bytes, scan.next_bytes)

    def walk(self, segment: Segment, position: int, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of each data batch in the segment, from the one at `position` on.

        That batch is at or before the one that holds `offset`.
        """
        if position < segment.unverified_end:
            yield from self.verification.walk(segment, offset)
            return
        share_index = segment.share_index.get()
        data, data_start = b"", position
        while position < segment.size_bytes:
            if position + HEADER_BYTES > data_start + len(data):
                data_start = position
                data = segment.read(position, min(_WALK_BYTES, segment.size_bytes - position))
            header = _new_header(HEADER.unpack_from(data, position - data_start))
            if header.attributes & CONTROL_FLAG and may_be_share_state(header):
                behind = share_index.end_of_run(position)
                if behind > position:
                    position = behind
                    continue
            yield position, header
            position += header.size_bytes

    def _bounded(self, offset: int, upper_offset: int | None) -> int:
        log = self._log
        if log.offline is not None:
            log.check_online()
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise ApiError(
                ErrorCode.offset_out_of_range,
                f"{log.topic_partition.directory_name} holds {log.log_start_offset} to {log.high_watermark}, "
                f"not {offset}.",
            )
        return log.high_watermark if upper_offset is None else min(upper_offset, log.high_watermark)

    def _floor(self, offset: int) -> tuple[Segment, int]:
        """A position at or before the batch that holds `offset`, or else the next batch."""
        hint = self._hints.get(offset)
        runs = self._log.control_runs
        if hint is None and len(runs) and offset > runs.known_from:
            hint = self._hints.get(runs.previous_data_offset(offset - 1) + 1)
        if hint is not None:
            return hint
        segment = self._log.segments.floor(offset)
        return segment, segment.offset_index.get().floor_position(offset)

    def _find_data(self, offset: int, upper_offset: int) -> tuple[Segment, int, BatchHeader] | None:
        """The first data batch that ends at or above `offset`: its segment, position and header."""
        return next(self._data_from(offset, upper_offset), None)

    def _data_from(self, offset: int, upper_offset: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
        """The data batches that end at or above `offset` and begin below `upper_offset`; see `_find_data`."""
        if offset >= upper_offset:
            return
        segment: Segment | None
        segment, position = self._floor(offset)
        while segment is not None:
            for found, header in self.walk(segment, position, offset):
                if header.base_offset >= upper_offset:
                    return
                if header.last_offset >= offset:
                    yield segment, found, header
            segment, position = self._log.segments.after(segment), 0

    def _end_position(self, segment: Segment, start: int, upper_offset: int) -> int:
        """The position in the segment where the batches below `upper_offset` end."""
        following = self._log.segments.after(segment)
        segment_end = self._log.high_watermark if following is None else following.base_offset
        if upper_offset >= segment_end:
            return segment.size_bytes
        floor_position = segment.offset_index.get().floor_position(upper_offset)
        for position, header in self.walk(segment, max(floor_position, start), upper_offset):
            if header.base_offset >= upper_offset:
                return position
        return segment.size_bytes

    def _verified_end(self, segment: Segment, offset: int, upper_offset: int, bytes_max: int) -> int:
        """The end of the good batches below `upper_offset`, of at most `bytes_max` and `_VERIFIED_MAX`."""
        end, left_bytes = 0, bytes_max
        try:
            for position, header in islice(self.verification.walk(segment, offset), _VERIFIED_MAX):
                if header.base_offset >= upper_offset or left_bytes <= 0:
                    break
                end = position + header.size_bytes
                left_bytes -= header.size_bytes
        except CorruptBatch:
            if not end:
                raise
        return end

    def _verified_window(self, segment: Segment, offset: int, window_bytes: int) -> tuple[int, int]:
        """(position, bytes) of the good part of the segment from the batch on that holds or follows `offset`.

        The part extends to the segment's end, unless a bad batch lies within `window_bytes`, or more than
        `_VERIFIED_MAX` batches do.
        """
        start = end = segment.size_bytes
        try:
            for count, (position, header) in enumerate(self.verification.walk(segment, offset), start=1):
                start, end = min(start, position), position + header.size_bytes
                if end - start >= window_bytes:
                    break
                if count == _VERIFIED_MAX:
                    return start, end - start
        except CorruptBatch:
            if start == segment.size_bytes:
                raise
            return start, end - start
        return start, segment.size_bytes - start

    def _first_window_bytes(self, wanted: _Wanted) -> int:
        expected = min(wanted.records_max * self._record_bytes, wanted.bytes_max)
        return int(expected * _WINDOW_MARGIN) + _WINDOW_BYTES_MIN

    def _remember_scan(self, segment: Segment, position: int, scan: _Scan) -> None:
        first, last = scan.spans[0], scan.spans[-1]
        self._remember(last.last_offset + 1, segment, position + last.end)
        record_bytes = (last.end - first.start) / max(scan.record_count, 1)
        self._record_bytes += (record_bytes - self._record_bytes) * _RECORD_BYTES_WEIGHT

    def _remember_end(self, segment: Segment, position: int, upper_offset: int) -> None:
        """After a read up to the high watermark, keeps a hint for readers that follow the log."""
        if segment is self._log.segments.active and upper_offset == self._log.high_watermark:
            self._remember(upper_offset, segment, position)

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        self._hints[offset] = segment, position
        if len(self._hints) > _HINT_COUNT_MAX:
            self._hints.popitem(last=False)


def _scan_batches(data: bytes, origin: int, wanted: _Wanted, holes: Iterator[tuple[int, int]]) -> _Scan:
    """Finds the wanted batches in a window, which begins with a batch at `origin` in the segment.

    `holes` are the segment's spans of share state within the window, ascending.
    """
    offset, upper_offset, records_left, bytes_left, at_least_one = wanted
    spans: list[BatchSpan] = []
    add, unpack_from = spans.append, _SPAN.unpack_from
    position, data_bytes, is_finished, next_bytes, has_empty = 0, len(data), False, 0, False
    hole_start, hole_end = next(holes, _NO_HOLE)
    while data_bytes - position >= HEADER_BYTES:
        if origin + position == hole_start:
            position = hole_end - origin
            hole_start, hole_end = next(holes, _NO_HOLE)
            continue
        base_offset, batch_length, attributes, last_offset_delta, record_count = unpack_from(data, position)
        size_bytes = LOG_OVERHEAD + batch_length
        end = position + size_bytes
        last_offset = base_offset + last_offset_delta
        if base_offset >= upper_offset or (
            size_bytes > bytes_left and last_offset >= offset and (spans or not at_least_one)
        ):
            is_finished = True
            break
        if end > data_bytes:
            next_bytes = size_bytes
            break
        if last_offset >= offset:
            has_data = record_count > 0 and not attributes & CONTROL_FLAG
            has_empty = has_empty or not has_data
            add(_new_span((base_offset, last_offset, position, end, has_data)))
            bytes_left -= size_bytes
            records_left -= last_offset + 1 - (base_offset if base_offset > offset else offset)  # noqa: FURB136
        position = end
        if records_left <= 0 or bytes_left <= 0:
            is_finished = True
            break
    records = wanted.records_max - records_left
    return _new_scan((spans, records, position, is_finished, next_bytes, has_empty))


def _slice(scan: _Scan, data: bytes) -> BatchSlice:
    """The scanned batches, of which there is one at least."""
    spans = scan.spans
    return _new_slice((spans, memoryview(data)[: spans[-1].end], scan.has_empty))


def _newest_batches(found: Sequence[NewestBatch], bytes_max: int, at_least_one: bool) -> BatchSlice:
    """The slice for a share group, of batches that are in memory."""
    spans: list[BatchSpan] = []
    pieces: list[bytes] = []
    start, has_empty = 0, False
    for base_offset, last_offset, data, has_data in found:
        end = start + len(data)
        if end > bytes_max and (spans or not at_least_one):
            break
        spans.append(_new_span((base_offset, last_offset, start, end, has_data)))
        pieces.append(data)
        has_empty |= not has_data
        start = end
    if not spans:
        return _NOTHING
    return _new_slice((spans, memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces)), has_empty))


def _newest_slice(found: Sequence[NewestBatch], offset: int, bytes_max: int, at_least_one: bool) -> LogSlice:
    """The slice of a log for `offset`, of batches that are in memory; it may end within one."""
    if not found:
        return LogSlice([], 0, offset)
    first_bytes = len(found[0].data)
    if bytes_max < first_bytes:
        bytes_max = first_bytes if at_least_one else 0
    read = memoryview(b"".join([batch.data for batch in found]))[:bytes_max]
    return _new_log_slice(([read] if bytes_max else [], len(read), found[0].base_offset, ()))


def _data_pieces(segment: Segment, start: int, end: int, bytes_max: int) -> list[tuple[int, int]]:
    """(start, end) of the pieces without share state, at most `bytes_max`. A data batch is at `start`."""
    pieces: list[tuple[int, int]] = []
    left_bytes = bytes_max
    for control_start, control_end in segment.share_index.get().spans(start, end):
        if control_start > start:
            piece_bytes = min(control_start - start, left_bytes)
            pieces.append((start, start + piece_bytes))
            left_bytes -= piece_bytes
            if not left_bytes:
                return pieces
        start = control_end
    if start < end:
        pieces.append((start, min(end, start + left_bytes)))
    return pieces


def _read_pieces(segment: Segment, pieces: Sequence[tuple[int, int]]) -> list[memoryview]:
    """The pieces' bytes; pieces that are close to each other are read together."""
    buffers: list[memoryview] = []
    first = 0
    for number in range(1, len(pieces) + 1):
        if number == len(pieces) or pieces[number][0] - pieces[number - 1][1] > _HOLE_BYTES_MAX:
            start, end = pieces[first][0], pieces[number - 1][1]
            data = memoryview(segment.read(start, end - start))
            buffers += [data[begin - start : end - start] for begin, end in pieces[first:number]]
            first = number
    return buffers
