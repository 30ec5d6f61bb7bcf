"""Removes unreadable share state from a partition with records of clients.

A damaged or contradictory control record is replaced by the mark of cleaned share state, so that offsets and
other batches do not change. Deltas that depend on it are replaced, too: the group returns to its state before
them. A segment with damaged records of clients is not changed, because its indexes are needed to find the
good batches after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.cli.log_tool.files import UnreadableError, opened
from barnabas.cli.log_tool.places import SegmentFiles
from barnabas.cli.log_tool.segments import Indexes, read_indexes, scan
from barnabas.protocol.control_record import ShareDelta
from barnabas.protocol.varint import NewerVersion, RecordFormatError
from barnabas.storage.format.cleaned_mark import encode_mark, is_mark
from barnabas.storage.segments.damage import Damage
from barnabas.storage.segments.segment_scan import ScannedBatch
from barnabas.storage.share.share_state import decode_share_record, may_be_share_state, read_control_batch


class DroppedState(NamedTuple):
    """Bytes of a segment that were share state, and their offsets, both inclusive."""

    damage: Damage
    content: bytes
    first_offset: int
    last_offset: int


class ShareStateDropping:
    """The removal from one partition; segments must come in their order."""

    def __init__(self) -> None:
        self._dropped_offsets: set[int] = set()
        self._leader_epoch = 0

    def sorted_out(
        self, segment: SegmentFiles, end_offset: int | None
    ) -> tuple[bytes, Sequence[DroppedState]] | None:
        """The segment with marks, and the state that they replace; None if only records of clients are
        damaged.

        Raises UnreadableError if both are damaged, and for share state of a newer version.
        """
        is_data_damaged = False
        left = bytearray()
        dropped: list[DroppedState] = []
        indexes = read_indexes(segment)
        with opened(segment.log_path) as file:
            for scanned in scan(segment, file, indexes, end_offset=end_offset):
                if isinstance(scanned, Damage):
                    content = file.read(scanned.position, scanned.end - scanned.position)
                    found = self._in_damage(scanned, content, indexes)
                else:
                    content = bytes(scanned.data)
                    found = self._in_batch(segment, scanned)
                if found is None:
                    is_data_damaged |= isinstance(scanned, Damage)
                    left += content
                    continue
                dropped.append(found)
                left += encode_mark(found.first_offset, found.last_offset, self._leader_epoch)
        if is_data_damaged and dropped:
            raise UnreadableError(
                f"{segment.log_path} also has damaged records of clients. Delete those first "
                "(kafka-delete-records.sh), or reset the share group's offsets."
            )
        return None if is_data_damaged else (bytes(left), dropped)

    def _in_damage(self, damage: Damage, content: bytes, indexes: Indexes) -> DroppedState | None:
        """The state to drop if all damaged bytes are share state by the share index; else None."""
        entries = indexes.shares.entries_between(damage.position, damage.end)
        if not entries or sum(entry.length_bytes for entry in entries) != len(content):
            return None
        self._dropped_offsets.update(entry.offset for entry in entries)
        last = entries[-1]
        return DroppedState(damage, content, entries[0].offset, last.offset + last.last_offset_delta)

    def _in_batch(self, segment: SegmentFiles, batch: ScannedBatch) -> DroppedState | None:
        header = batch.header
        self._leader_epoch = max(self._leader_epoch, header.leader_epoch)
        if not may_be_share_state(header) or is_mark(header):
            return None
        try:
            if read_control_batch(batch.data, header) is None:
                return None
            _, record = decode_share_record(batch.data)
        except NewerVersion as error:
            raise UnreadableError(f"{segment.log_path}, offset {header.base_offset}: {error}") from error
        except RecordFormatError as error:
            reason = str(error).rstrip(".")
        else:
            if not isinstance(record, ShareDelta) or record.back_offset not in self._dropped_offsets:
                return None
            reason = f"it follows the share state at offset {record.back_offset}, which is dropped"
        self._dropped_offsets.add(header.base_offset)
        end = batch.position + len(batch.data)
        damage = Damage(batch.position, end, reason)
        return DroppedState(damage, bytes(batch.data), header.base_offset, header.last_offset)
