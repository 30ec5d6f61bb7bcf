"""Walks over the segments of one partition, in order, and collects the control records of share groups.

The walk uses only the batches' lengths, and no index. It holds `READ_BYTES` of the log, or one larger control
batch, and the packs of about the same size. It only reads files, and does not use Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from barnabas.pipeline.audit.checks import Check, Violation
from barnabas.pipeline.audit.control_decoder import walk
from barnabas.pipeline.audit.control_walk import BadBatch, Found
from barnabas.pipeline.audit.data_offsets import STRETCH_RUNS_MAX
from barnabas.pipeline.log_source.errors import CorruptLog, SegmentChanged
from barnabas.pipeline.log_source.segment_file import OpenSegment
from barnabas.pipeline.log_source.segment_slice import UNKNOWN_OFFSET, SegmentSlice
from barnabas.protocol.record_batch import HEADER_BYTES, read_header

READ_BYTES: Final = 4 * 1024 * 1024
PACK_BYTES: Final = 1024 * 1024
"""Packs are handed on when they have this size together, so a pack is not much larger than `READ_BYTES`."""

_NoteDamage = Callable[[SegmentSlice, int, int, str], None]
"""Gets the slice, the position in its file, the offset or -1, and the reason."""


class LogWalk:
    """Iterates over the found records, some megabytes at a time, ascending.

    Damaged bytes raise `CorruptLog`, which names the file. If `raise_damage` is false they are a violation in
    `damage` instead, and the walk goes on behind the batch, or with the next segment if the batch's end is
    unknown. A file that was removed or rewritten since the plan always raises `SegmentChanged`.
    """

    def __init__(self, pieces: Sequence[SegmentSlice], *, raise_damage: bool) -> None:
        self.damage: list[Violation] = []
        self.end_offset = 0
        """The end of the log after the walk, exclusive, with control batches at its end."""
        self._pieces = pieces
        self._raise_damage = raise_damage

    def __iter__(self) -> Iterator[Found]:
        for piece in self._pieces:
            with OpenSegment(piece.log_path) as file:
                segment = _SegmentWalk(piece, file, self._note_damage)
                yield from segment.found()
                self.end_offset = max(self.end_offset, segment.end_offset())

    def _note_damage(self, piece: SegmentSlice, position: int, offset: int, reason: str) -> None:
        if self._raise_damage:
            raise CorruptLog(piece.log_path, f"at {position}: {reason}")
        offset = piece.segment_base_offset if offset < 0 else offset
        self.damage.append(
            Violation(Check.DAMAGED, offset, offset, offset, f"{piece.log_path} at {position}: {reason}")
        )


class _SegmentWalk:
    """One slice."""

    def __init__(self, piece: SegmentSlice, file: OpenSegment, note_damage: _NoteDamage) -> None:
        self._piece = piece
        self._file = file
        self._note_damage = note_damage
        self._found = Found()
        self._last_walked = piece.start_position, 0
        """Position and size of the last stretch that held batches."""

    def end_offset(self) -> int:
        """The offset behind the last batch; the segment's base offset if there is none."""
        position, size = self._last_walked
        buffer = self._file.read(position, size)
        offset, place = self._piece.segment_base_offset, 0
        while len(buffer) - place >= HEADER_BYTES:
            header = read_header(buffer, place)
            offset = header.last_offset + 1
            place += header.size_bytes
        return offset

    def found(self) -> Iterator[Found]:
        self._check_first()
        end = self._piece.end_position
        position, size = self._piece.start_position, READ_BYTES
        while position < end and size:
            position, size = self._step(position, size)
            if _is_large_enough(self._found):
                yield self._hand_over()
        if position > end:
            self._note_end(end)
        if self._found.runs:
            yield self._hand_over()

    def _check_first(self) -> None:
        data = self._file.read(self._piece.start_position, HEADER_BYTES)
        if self._piece.first_offset == UNKNOWN_OFFSET or len(data) < HEADER_BYTES:
            return
        if read_header(data).base_offset != self._piece.first_offset:
            reason = "it was rewritten after the audit was planned; run it again"
            raise SegmentChanged(self._file.path, reason)

    def _step(self, position: int, size: int) -> tuple[int, int]:
        """Walks through one buffer; returns (position, size) of the next one, a size of 0 at the end."""
        end = self._piece.end_position
        buffer = self._file.read(position, min(size, end - position))
        if not buffer:
            raise SegmentChanged(self._file.path, f"it has shrunk to {position} bytes; run the audit again")
        try:
            walked = walk(buffer, 0, len(buffer), self._found)
        except BadBatch as bad:
            self._note_damage(self._piece, position + bad.position, bad.offset, bad.reason)
            return (position + bad.next_position, READ_BYTES) if bad.next_position > 0 else (end, 0)
        if walked:
            self._last_walked = position, min(walked, len(buffer))
            return position + walked, READ_BYTES
        missing = read_header(buffer).size_bytes if len(buffer) >= HEADER_BYTES else HEADER_BYTES
        if len(buffer) < missing <= end - position:
            return position, missing
        self._note_end(position)
        return end, 0

    def _note_end(self, position: int) -> None:
        """Handles a batch that is cut short: at the end of the log it is being written, else it is damage."""
        if not self._piece.is_log_end:
            self._note_damage(self._piece, position, -1, "a batch is cut short")

    def _hand_over(self) -> Found:
        found, self._found = self._found, Found()
        return found


def _is_large_enough(found: Found) -> bool:
    packed_bytes = sum(len(pack.payload) for pack in found.packs.values())
    return packed_bytes >= PACK_BYTES or len(found.runs) >= 2 * STRETCH_RUNS_MAX
