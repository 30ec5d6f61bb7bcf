"""Reads one slice, which is a task's work, in memory that does not grow with the slice or the log.

A window of the file moves along the slice. The decoder takes the batches in it, and gives Arrow batches when
it is full. Damage in the file raises `CorruptLog`. With `skips_damage` it is skipped instead: it is reported
in the worker's log, and in a row of its own if the column `damage` is wanted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding import (
    BatchError,
    OffsetRange,
    RecordDecoder,
    decoded_columns,
    with_constants,
)
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.log_source.batch_places import (
    BATCH_BYTES_MAX,
    find_following,
    good_batch_at,
    header_at,
)
from barnabas.pipeline.log_source.errors import CorruptLog, SegmentChanged
from barnabas.pipeline.log_source.segment_file import OpenSegment, SegmentFile
from barnabas.pipeline.log_source.segment_slice import UNKNOWN_OFFSET, SegmentSlice
from barnabas.pipeline.log_source.transaction_index import AbortedTransaction
from barnabas.pipeline.log_source.window import READ_BYTES, Window
from barnabas.protocol.aborted_transactions import AbortedTransactions
from barnabas.protocol.record_batch import HEADER_BYTES, LOG_OVERHEAD
from barnabas.storage.format.offset_index import OffsetIndex

DAMAGE_COLUMN: Final = "damage"
ROWS_MAX: Final = 1_000_000
"""Rows are handed on at this number, plus those of one window: rows without bytes fill no decoder."""

_LENGTH_POSITION = 8

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTask:
    """A slice, and the wanted offsets and times, with both ends inclusive; None for all times."""

    piece: SegmentSlice
    columns: tuple[str, ...]
    offset_range: tuple[int, int]
    time_range_ms: tuple[int, int] | None = None
    aborted: tuple[AbortedTransaction, ...] = ()
    skips_damage: bool = False


def read_log_slice(task: LogTask, *, read_bytes: int = READ_BYTES) -> Iterator[RecordBatch]:
    """The wanted records. Raises `CorruptLog`, and `SegmentChanged` if the file has changed."""
    with OpenSegment(task.piece.log_path) as file:
        _check_unchanged(file, task.piece)
        yield from _SliceReader(file, task, read_bytes).batches()


def _check_unchanged(file: OpenSegment, piece: SegmentSlice) -> None:
    is_same_size = piece.segment_bytes in (None, file.size_bytes())
    if not is_same_size or not _begins_with(file, piece):
        reason = "it was rewritten after the query was planned, by compaction; run the query again"
        raise SegmentChanged(piece.log_path, reason)


def _begins_with(file: OpenSegment, piece: SegmentSlice) -> bool:
    if piece.first_offset == UNKNOWN_OFFSET:
        return True
    header = header_at(file, piece.start_position)
    return header is not None and header.base_offset == piece.first_offset


class _SliceReader:
    """One pass over a slice."""

    def __init__(self, file: OpenSegment, task: LogTask, read_bytes: int) -> None:
        piece = task.piece
        self._file = file
        self._task = task
        self._window = Window(file, piece.start_position, piece.end_position, read_bytes)
        self._columns: Sequence[str] = [name for name in task.columns if name != DAMAGE_COLUMN]
        self._decoder = RecordDecoder(decoded_columns(self._columns))
        self._ranges: Sequence[OffsetRange] = [(*task.offset_range, 0)]
        self._aborted = AbortedTransactions.from_index(task.aborted) if task.aborted else None
        self._damage: list[tuple[int | None, str]] = []
        """Skipped parts that are not reported yet: (first offset that may be missing, description)."""

    def batches(self) -> Iterator[RecordBatch]:
        """The rows, each time that the decoder is full."""
        while self._window.left_bytes:
            self._decode_window()
            if self._decoder.is_full or self._decoder.record_count >= ROWS_MAX:
                yield self._rows()
            if self._damage:
                yield from self._damage_rows()
        if self._decoder.record_count:
            yield self._rows()

    def _decode_window(self) -> None:
        """Decodes the window until the decoder is full; otherwise moves the window on."""
        window, decoder = self._window, self._decoder
        try:
            with window.view() as view:
                taken = decoder.add(
                    view, ranges=self._ranges, aborted=self._aborted, timestamps=self._task.time_range_ms
                )
        except BatchError as error:
            window.advance(error.position)
            self._pass_over(error)
            return
        window.advance(taken)
        if not decoder.is_full and window.left_bytes:
            self._read_on()

    def _read_on(self) -> None:
        """Reads the rest of the batch at the window's position, and the bytes behind it."""
        window = self._window
        stated_bytes = self._stated_bytes()
        if window.held_bytes == window.left_bytes or stated_bytes > min(window.left_bytes, BATCH_BYTES_MAX):
            self._end_early(stated_bytes)
        else:
            window.read_on(stated_bytes)

    def _stated_bytes(self) -> int:
        """The size of the batch at the position, if it is known."""
        with self._window.view() as view:
            if len(view) < LOG_OVERHEAD:
                return LOG_OVERHEAD
            return LOG_OVERHEAD + int.from_bytes(view[_LENGTH_POSITION:LOG_OVERHEAD], "big")

    def _end_early(self, stated_bytes: int) -> None:
        """Handles a batch that the slice cuts: at the end of the log reading stops, else it is damage."""
        window = self._window
        resume = self._good_batch_behind(window.position)
        is_possible = stated_bytes <= BATCH_BYTES_MAX
        if self._task.piece.is_log_end and resume == window.end and is_possible:
            window.advance(window.left_bytes)
            return
        reason = f"is cut short: it states {stated_bytes} bytes, and {window.left_bytes} are left"
        self._skip(resume, f"the batch at byte {window.position} {reason}")

    def _pass_over(self, error: BatchError) -> None:
        window, piece = self._window, self._task.piece
        if piece.is_log_end and self._only_zeros_follow():
            window.advance(window.left_bytes)
            return
        resume = None
        if error.next_position is not None:
            resume = window.position + error.next_position - error.position
        if resume is None or (resume < window.end and header_at(self._file, resume) is None):
            resume = self._good_batch_behind(window.position)
        what = f"the batch of offset {error.base_offset} at byte {window.position} {error.reason}"
        self._skip(resume, what)

    def _only_zeros_follow(self) -> bool:
        """Whether the next header was never written, as in a file of preallocated size."""
        return not any(self._file.read(self._window.position, HEADER_BYTES))

    def _good_batch_behind(self, position: int) -> int:
        """The position of the next good batch; the slice's end if it can't be found."""
        piece = self._task.piece
        following = find_following(self._file, position, piece.end_position)
        if following is not None:
            return following
        segment = SegmentFile(piece.log_path, piece.segment_base_offset, piece.end_position)
        index = OffsetIndex(segment.base_offset, segment.read_beside(".index"))
        for place in index.positions_behind(position):
            if place > position and good_batch_at(self._file, place, piece.end_position) is not None:
                return place
        return piece.end_position

    def _skip(self, resume: int, what: str) -> None:
        """Goes on at `resume`, or raises `CorruptLog`."""
        window, path = self._window, self._task.piece.log_path
        if not self._task.skips_damage:
            raise CorruptLog(path, what)
        report = f"{path}: {what}; the bytes from {window.position} to {resume} are skipped"
        _logger.warning(report)
        self._damage.append((self._decoder.next_offset, report))
        window.advance(resume - window.position)

    def _rows(self) -> RecordBatch:
        piece = self._task.piece
        batch = with_constants(self._decoder.take(), piece.topic, piece.partition, self._columns)
        if DAMAGE_COLUMN not in self._task.columns:
            return batch
        none = pa.nulls(batch.num_rows, pa.string())
        return batch.add_column(self._task.columns.index(DAMAGE_COLUMN), DAMAGE_COLUMN, none)

    def _damage_rows(self) -> Iterator[RecordBatch]:
        """A row for each skipped part, without a key, value or time; none without the column `damage`."""
        damage, self._damage = self._damage, []
        if DAMAGE_COLUMN not in self._task.columns:
            return
        if self._decoder.record_count:
            yield self._rows()
        piece, schema = self._task.piece, self._rows().schema
        rows = [
            {"topic": piece.topic, "partition": piece.partition, "offset": offset, DAMAGE_COLUMN: report}
            for offset, report in damage
        ]
        yield pa.RecordBatch.from_pylist(
            [{name: row.get(name) for name in schema.names} for row in rows], schema=schema
        )
