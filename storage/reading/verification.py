"""Verifies batches that this process has not written, when they are read for the first time.

A disk may change durable bytes. Batches that this process appended, or that recovery verified, are trusted.
For all other batches of a segment (below `unverified_end`) the checksums are computed at the first read, and
the verified parts are remembered, one for each of a few readers. A read of trusted bytes costs one
comparison.

A read of an offset that a bad batch may hold raises `CorruptBatch`. A bad batch is never skipped silently,
because a share group would consider its records gone. The batches before and behind it are served. It is
logged once and counted. Share state is cut out even if it cannot be read; the code that replays it handles
the error.

The checksum of a batch does not cover its base offset and its leader epoch. A wrong base offset contradicts
the neighbouring batches; a wrong leader epoch is not noticed here.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.record_batch import HEADER_BYTES, BatchHeader, read_header
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import CorruptBatch
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.share_index import ShareIndex
from barnabas.storage.segments.damage import Damage, boundaries_of, scan_past_damage
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segment_scan import ScannedBatch
from barnabas.storage.share.share_state import may_be_share_state, read_control_batch
from barnabas.storage.state.log_state import LogState

_CHUNK_BYTES = 32 * 1024
_PARTS_MAX = 8
"""The verified parts of a segment that are remembered, as many as readers at different places."""
_REPORTED_COUNT_MAX = 1_000
"""Bad batches of a log that are logged and counted; reporting more would add nothing."""

_REFUSED = (
    "reads of this batch are refused. Restore the file; or let consumers continue at the next good offset, "
    "which `barnabas log verify` tells: seek there, or run `barnabas groups reset GROUP --to-offset`"
)

logger = get_logger("log")


def distrust_durable(log: LogState) -> None:
    """To be called when a log was opened: recovery has verified the checksums from the recovery point on.

    The segment with the recovery point is distrusted as a whole; verifying its tail again costs little.
    """
    for segment in log.segments:
        if segment.base_offset < log.durability.recovery_point:
            segment.unverified_end = segment.size_bytes


class _Part:
    """A verified part of a segment: all batches between two positions are good."""

    __slots__ = ("end", "next_offset", "start")

    def __init__(self, position: int) -> None:
        self.start = self.end = position
        self.next_offset = 0
        """The end of the last verified batch (exclusive)."""


class _Checked:
    """The verified parts of one segment, the last begun last."""

    __slots__ = ("are_indexes_right", "parts")

    def __init__(self, index: OffsetIndex) -> None:
        self.parts: list[_Part] = []
        self.are_indexes_right = index.is_ascending()
        """Whether no index entry was found to be wrong. With a wrong one the segment is never trusted,
        because reads of trusted bytes rely on the indexes.
        """

    def part_at(self, position: int) -> _Part:
        """The part that `position` adjoins, or a new one, for which an old one may be forgotten."""
        for part in self.parts:
            if part.start <= position <= part.end:
                return part
        del self.parts[: len(self.parts) + 1 - _PARTS_MAX]
        self.parts.append(_Part(position))
        return self.parts[-1]

    def add(self, part: _Part, batch: ScannedBatch, index: OffsetIndex) -> _Part:
        """Adds a good batch to the part, or to another one if it does not adjoin it; returns that part."""
        if batch.position > part.end:
            part = self.part_at(batch.position)
        end = batch.position + len(batch.data)
        if end > part.end:
            part.end, part.next_offset = end, batch.header.last_offset + 1
            for entry in index.entries_between(batch.position, end):
                self.are_indexes_right &= entry == (batch.header.last_offset, batch.position)
        return part


class Verification:
    """The verified parts and the bad batches of one log. Used on the loop's thread only."""

    __slots__ = ("_checked", "_log", "_reported")

    def __init__(self, log: LogState) -> None:
        self._log = log
        self._checked: dict[int, _Checked] = {}
        """By the segment's base offset."""
        self._reported: set[tuple[int, int]] = set()

    @property
    def corrupt_batch_count(self) -> int:
        """The number of bad batches that reads have found."""
        return len(self._reported)

    def forget(self) -> None:
        """To be called when segments have left the log."""
        self._checked.clear()

    def walk(self, segment: Segment, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of the good data batches, from the one that holds or follows `offset` on.

        Raises CorruptBatch at a bad batch; OSError.
        """
        share_index = segment.share_index.get()
        needed_offset = share_index.next_data_offset(offset)
        damage: Damage | None = None
        is_found = False
        for scanned in self._look(segment, offset):
            if isinstance(scanned, Damage):
                if is_found:
                    raise self.corrupt(segment, scanned.position, scanned.reason)
                damage = damage or scanned
                continue
            position, header, _ = scanned
            if header.last_offset < offset:
                damage = None
                continue
            if damage is not None and header.base_offset > needed_offset:
                break
            is_found, damage = True, None
            if not share_index.has_batch_at(position):
                yield position, header
        if damage is not None and needed_offset < self._end_offset(segment):
            raise self.corrupt(segment, damage.position, damage.reason)

    def offset_behind_damage(self, offset: int) -> int:
        """The offset where to go on after a read of `offset` has raised `CorruptBatch`.

        It is the next good batch of the segment, or the segment's end. Raises OSError.
        """
        segment: Segment | None = self._log.segments.floor(offset)
        while segment is not None:
            is_damaged = False
            for scanned in self._look(segment, offset):
                if isinstance(scanned, Damage):
                    is_damaged = True
                elif is_damaged and scanned.header.base_offset > offset:
                    return scanned.header.base_offset
                else:
                    is_damaged = False
            if is_damaged:
                return self._end_offset(segment)
            segment = self._log.segments.after(segment)
        raise AssertionError("no batch at the offset, or behind it, is damaged")

    def corrupt(self, segment: Segment, position: int, reason: str, effect: str = _REFUSED) -> CorruptBatch:
        """The error for a bad batch, which is logged with its effect and counted the first time."""
        error = CorruptBatch(f"The batch at {position} of {segment.log_path} is damaged: {reason}.")
        key = segment.base_offset, position
        if key not in self._reported and len(self._reported) < _REPORTED_COUNT_MAX:
            self._reported.add(key)
            logger.error(
                "a batch is damaged; the rest of the log is served",
                segment=segment.log_path,
                position=position,
                reason=reason,
                effect=effect,
            )
        return error

    def _look(self, segment: Segment, offset: int) -> Iterator[ScannedBatch | Damage]:
        """All batches from one at or before `offset` on, without damaged share state."""
        share_index, offset_index = segment.share_index.get(), segment.offset_index.get()
        position, expected = _start(segment, offset_index, offset)
        checked = self._checked.get(segment.base_offset)
        if checked is None:
            checked = self._checked[segment.base_offset] = _Checked(offset_index)
        part = checked.part_at(position)
        for scanned in scan_past_damage(
            segment.file,
            position,
            segment.size_bytes,
            offsets=range(expected, self._end_offset(segment)),
            boundaries=boundaries_of(offset_index, share_index),
            checked_from=part.next_offset,
            chunk_bytes=_CHUNK_BYTES,
        ):
            if isinstance(scanned, Damage):
                behind_run = share_index.end_of_run(scanned.position)
                if behind_run < scanned.end:
                    yield scanned._replace(position=behind_run)
            else:
                part = checked.add(part, scanned, offset_index)
                seen = _unless_index_differs(scanned, share_index)
                if seen is not scanned and segment.share_index.checksum is None:
                    raise segment.share_index.damage(f"it contradicts the batch at {scanned.position}")
                checked.are_indexes_right &= seen is scanned
                if part.end >= segment.unverified_end and checked.are_indexes_right:
                    segment.unverified_end = min(segment.unverified_end, part.start)
                expected = scanned.header.last_offset + 1
                yield seen
        if _last_data_offset(offset_index, share_index) >= expected:
            end = segment.size_bytes
            yield Damage(end, end, "the file ends where its indexes name more")

    def _end_offset(self, segment: Segment) -> int:
        following = self._log.segments.after(segment)
        return self._log.log_end_offset if following is None else following.base_offset


def _last_data_offset(offset_index: OffsetIndex, share_index: ShareIndex) -> int:
    """The last data offset of a segment by its indexes."""
    last_offset, _ = offset_index.last_entry()
    if len(share_index):
        last = share_index[len(share_index) - 1]
        last_offset = max(last_offset, last.offset + last.last_offset_delta)
    return share_index.previous_data_offset(last_offset)


def _start(segment: Segment, index: OffsetIndex, offset: int) -> tuple[int, int]:
    """(position, base offset) of a batch at or before the one that holds `offset`.

    Index entries that do not match the batch at their position are skipped.
    """
    for last_offset, position in index.entries_down(offset):
        data = segment.file.read(position, HEADER_BYTES) if position >= 0 else b""
        if len(data) == HEADER_BYTES:
            header = read_header(data)
            if header.last_offset == last_offset:
                return position, header.base_offset
    return 0, segment.base_offset


def _unless_index_differs(batch: ScannedBatch, index: ShareIndex) -> ScannedBatch | Damage:
    """The batch, or Damage if the share index lists a part of a data batch, or lists share state wrongly."""
    if not len(index) and not may_be_share_state(batch.header):
        return batch
    start, end = batch.position, batch.position + len(batch.data)
    claims = list(index.spans(start, end))
    if not _is_share_state(batch):
        is_right = not claims
    else:
        entry = index.find(batch.header.base_offset)
        delta = None if entry is None else entry.last_offset_delta
        is_right = claims == [(start, end)] and delta == batch.header.last_offset_delta
    if is_right:
        return batch
    return Damage(start, end, "the share index says something else of it")


def _is_share_state(batch: ScannedBatch) -> bool:
    if not may_be_share_state(batch.header):
        return False
    try:
        return read_control_batch(batch.data, batch.header) is not None
    except RecordFormatError:
        return True
