"""Checks a segment: each batch, and each batch against those before it."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.cli.log_tool.control_records import ControlRecord, read_control_record
from barnabas.cli.log_tool.files import opened
from barnabas.cli.log_tool.findings import Finding
from barnabas.cli.log_tool.index_checks import OffsetEntries, ShareEntries, TimeEntries
from barnabas.cli.log_tool.places import SegmentFiles
from barnabas.cli.log_tool.segments import read_indexes, scan
from barnabas.cli.log_tool.transaction_checks import TransactionEntries
from barnabas.cli.log_tool.verification import FoundControl, LogVerification, SegmentPlace
from barnabas.protocol.counted import counted
from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.cleaned_mark import is_mark
from barnabas.storage.format.leader_epochs import UNDEFINED_EPOCH
from barnabas.storage.segments.damage import Damage
from barnabas.storage.segments.segment_scan import ScannedBatch
from barnabas.storage.share.share_state import may_be_share_state, read_control_batch


def check_segment(segment: SegmentFiles, log: LogVerification) -> Iterator[Finding]:
    """The findings in a segment, which follows the segments that `log` has read. Raises OSError."""
    yield from _SegmentCheck(SegmentPlace(segment, log)).run()


class _SegmentCheck:
    """The check of one segment, with its indexes."""

    def __init__(self, place: SegmentPlace) -> None:
        self._place = place
        self._log = place.log
        self._indexes = read_indexes(place.segment)
        self._offset_entries = OffsetEntries(place, self._indexes)
        self._time_entries = TimeEntries(place, self._indexes)
        self._share_entries = ShareEntries(place, self._indexes)
        self._transaction_entries = TransactionEntries(place, self._indexes)

    def run(self) -> Iterator[Finding]:
        log, segment = self._log, self._place.segment
        if log.next_offset >= 0:
            yield from self._check_follows(segment.base_offset, None)
        log.next_offset = max(log.next_offset, segment.base_offset)
        damage: Finding | None = None
        with opened(segment.log_path) as file:
            end_offset = log.partition.end_offset(segment)
            for scanned in scan(segment, file, self._indexes, end_offset=end_offset):
                if isinstance(scanned, Damage):
                    damage = self._damage(scanned, file.size_bytes)
                    continue
                if damage is not None:
                    again = f"; good again from offset {scanned.header.base_offset} on"
                    yield damage._replace(message=damage.message + again)
                    damage = None
                yield from self._check_batch(scanned)
        if damage is not None:
            yield damage
        yield from self._offset_entries.finish()
        yield from self._time_entries.finish()
        yield from self._share_entries.finish()
        yield from self._transaction_entries.finish()

    def _damage(self, damage: Damage, file_bytes: int) -> Finding:
        self._log.is_behind_damage = self._log.had_damage = True
        self._offset_entries.skip(damage)
        self._share_entries.skip(damage)
        offset, size_bytes = self._log.next_offset, damage.end - damage.position
        if self._place.is_last and damage.end == file_bytes and not self._place.is_settled(offset):
            message = (
                f"the last {size_bytes} bytes are no whole batch ({damage.reason}); a start truncates them"
            )
            return self._place.at(damage.position, offset, message)._replace(is_problem=False)
        return self._place.at(
            damage.position, offset, f"{size_bytes} bytes are no good batch: {damage.reason}"
        )

    def _check_batch(self, batch: ScannedBatch) -> Iterator[Finding]:
        log, (position, header, data) = self._log, batch
        if header.base_offset > log.next_offset:
            yield from self._check_follows(header.base_offset, position)
        log.is_behind_damage = False
        for message in self._wrong_in_header(header):
            yield self._place.at(position, header.base_offset, message)
        control: ControlRecord | None = None
        try:
            if may_be_share_state(header) and read_control_batch(data, header) is not None:
                control = read_control_record(data)
        except RecordFormatError as error:
            yield self._place.at(position, header.base_offset, f"share state that cannot be read: {error}")
        if control is not None:
            log.controls.append(FoundControl(self._place.name, position, control))
        else:
            log.last_data_offset = header.last_offset
            yield from self._time_entries.check(batch)
            yield from self._check_transaction(batch)
        yield from self._share_entries.check(batch, control)
        yield from self._offset_entries.check(batch)
        if log.with_records:
            for message in _wrong_in_records(batch):
                yield self._place.at(position, header.base_offset, message)
        log.next_offset = header.last_offset + 1
        log.batch_count += 1

    def _check_transaction(self, batch: ScannedBatch) -> Iterator[Finding]:
        try:
            yield from self._transaction_entries.check(batch)
        except RecordFormatError as error:
            yield self._place.at(batch.position, batch.header.base_offset, str(error))

    def _check_follows(self, offset: int, position: int | None) -> Iterator[Finding]:
        """Check that a batch or segment at `offset` follows the one before it; only compaction leaves
        holes.
        """
        expected = self._log.next_offset
        if offset < expected:
            yield self._place.at(position, offset, f"it begins at {offset}, where {expected - 1} was before")
        elif offset > expected and not (self._log.is_behind_damage or self._log.partition.was_cleaned):
            yield self._place.at(position, offset, f"the offsets {expected} to {offset - 1} are missing")

    def _wrong_in_header(self, header: BatchHeader) -> Iterator[str]:
        log, partition = self._log, self._log.partition
        count, span = header.record_count, header.last_offset_delta + 1
        if count != span and not is_mark(header) and not (partition.was_cleaned and count < span):
            yield f"it states {counted(count, 'record')}, and spans {counted(span, 'offset')}"
        if header.leader_epoch < log.leader_epoch:
            yield f"its leader epoch is {header.leader_epoch}, and {log.leader_epoch} was before"
        log.leader_epoch = max(header.leader_epoch, log.leader_epoch)
        is_noted = log.leader_epochs is not None and self._place.is_settled(header.last_offset)
        if (
            log.leader_epochs is not None
            and is_noted
            and header.base_offset >= (partition.log_start_offset or 0)
        ):
            noted = log.leader_epochs.epoch_at(header.base_offset)
            if noted == UNDEFINED_EPOCH:
                if log.first_without_epoch is None:
                    log.first_without_epoch = header.base_offset
            elif noted != header.leader_epoch:
                yield f"its leader epoch is {header.leader_epoch}, by leader-epoch-checkpoint {noted}"


def _wrong_in_records(batch: ScannedBatch) -> Iterator[str]:
    try:
        offsets = [record.offset for record in iterate_records(batch.data)]
    except RecordFormatError as error:
        yield f"its records cannot be read: {error}"
        return
    if offsets != sorted(set(offsets)):
        yield "the offsets of its records aren't ascending"
    if offsets and not batch.header.base_offset <= offsets[0] <= offsets[-1] <= batch.header.last_offset:
        yield f"it has records at {offsets[0]} to {offsets[-1]}, and ends at {batch.header.last_offset}"
