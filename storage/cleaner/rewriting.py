"""Makes one new segment of several old ones, without cleaned share state and compacted records.

Runs of share state below the given offset become marks (`format.cleaned_mark`); neighbouring runs of one
leader epoch are merged. The last batch stays, if necessary without its records, so that the segment keeps its
end offset and its age.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.varint import Buffer, RecordFormatError
from barnabas.storage.cleaner.compaction import Compaction, empty_batch
from barnabas.storage.cleaner.segment_writer import SegmentWriter
from barnabas.storage.cleaner.slices import SliceMeter, Work
from barnabas.storage.cleaner.sources import (
    Source,
    read_batches,
    read_share_index,
    read_transaction_index,
)
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.format.cleaned_mark import encode_mark, is_mark, split_run
from barnabas.storage.format.share_index import CLEANED
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.segments.control_batch import ControlBatch
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segment_scan import ScannedBatch
from barnabas.storage.share.share_state import may_be_share_state, read_control_batch

_NO_SPAN = (-1, -1)


def rewrite(
    filesystem: FileSystem,
    sources: Sequence[Source],
    segment: Segment,
    *,
    state_end_offset: int,
    compaction: Compaction | None,
    slice_bytes: int,
) -> Work:
    """Writes the new `segment` from the sources; share state from `state_end_offset` on stays.

    Raises OSError, and RecordFormatError where a source is damaged.
    """
    with closing(SegmentWriter(filesystem, segment)) as writer:
        rewriting = _Rewriting(writer, state_end_offset, compaction)
        meter = SliceMeter(slice_bytes)
        for source in sources:
            spans = read_share_index(filesystem, source).spans(0, source.size_bytes)
            next_start, _ = next(spans, _NO_SPAN)
            with closing(filesystem.open(source.segment.log_path, create=False)) as file:
                for batch in read_batches(file, source):
                    if batch.position == next_start:
                        rewriting.take_share_state(batch)
                        next_start, _ = next(spans, _NO_SPAN)
                    else:
                        rewriting.take_data(batch)
                    if meter.add(len(batch.data), rewriting.items(batch.header)):
                        meter.add(writer.write())
                        yield meter.take()
        rewriting.end()
        for source in sources:
            for aborted in read_transaction_index(filesystem, source).entries_from(0):
                rewriting.take_aborted(aborted)
        writer.finish(had_aborted=any(source.segment.has_aborted for source in sources))
        yield meter.take()


class _Rewriting:
    """The treatment of each batch."""

    def __init__(self, writer: SegmentWriter, state_end_offset: int, compaction: Compaction | None) -> None:
        self._writer = writer
        self._state_end_offset = state_end_offset
        self._compaction = compaction
        self._run: tuple[int, int, int] | None = None
        """(base offset, last offset, leader epoch) of the run of cleaned share state that was read last."""
        self._dropped: BatchHeader | None = None
        """The last batch that was read, if nothing of it stayed."""

    def items(self, header: BatchHeader) -> int:
        """The work for the batch: the number of batches and records that are examined."""
        return 1 if self._compaction is None else 1 + header.record_count

    def take_share_state(self, batch: ScannedBatch) -> None:
        _, header, data = batch
        if not may_be_share_state(header):
            raise RecordFormatError(
                f"The share index takes the data at {header.base_offset} for share state."
            )
        if is_mark(header) or header.base_offset < self._state_end_offset:
            self._extend_run(header)
            return
        self._end_run()
        control = read_control_batch(data, header)
        assert control is not None, header
        self._add_control(header.base_offset, control)

    def take_data(self, batch: ScannedBatch) -> None:
        _, header, data = batch
        kept: Buffer | None = data
        if self._compaction is not None:
            kept = self._compaction.compact(data, header)
        if kept is None:
            self._dropped = header
            return
        self._end_run()
        self._writer.add_data(kept)
        self._dropped = None

    def take_aborted(self, aborted: AbortedTransaction) -> None:
        """Keeps the index entry of an aborted transaction if the pass found batches of it. Called last."""
        if self._compaction is None or aborted.last_offset in self._compaction.transactions.kept_markers:
            self._writer.segment.note_aborted(aborted)

    def _extend_run(self, header: BatchHeader) -> None:
        self._dropped = None
        if self._run is not None:
            base_offset, last_offset, leader_epoch = self._run
            if header.base_offset == last_offset + 1 and header.leader_epoch == leader_epoch:
                self._run = base_offset, header.last_offset, leader_epoch
                return
            self._end_run()
        self._run = header.base_offset, header.last_offset, header.leader_epoch

    def _end_run(self) -> None:
        if self._run is None:
            return
        run_base_offset, run_last_offset, leader_epoch = self._run
        self._run = None
        assert run_base_offset < self._state_end_offset, (self._state_end_offset, run_base_offset)
        for base_offset, last_offset in split_run(run_base_offset, run_last_offset):
            mark = encode_mark(base_offset, last_offset, leader_epoch)
            self._add_control(
                base_offset, ControlBatch(mark, last_offset - base_offset, "", CLEANED, tombstone=False)
            )

    def _add_control(self, base_offset: int, control: ControlBatch) -> None:
        self._writer.add_control(base_offset, control)
        self._dropped = None

    def end(self) -> None:
        self._end_run()
        if self._dropped is not None:
            self._writer.add_data(empty_batch(self._dropped))
