"""The share state in a log, and its runs of offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.record_batch import read_header
from barnabas.protocol.varint import Buffer
from barnabas.storage.format.cleaned_mark import is_mark
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.share.share_state import decode_share_record


class ControlRecord(NamedTuple):
    """Share state in the log, both offsets inclusive; `record` is None for the mark of cleaned share
    state.
    """

    offset: int
    last_offset: int
    size_bytes: int
    record: ShareCheckpoint | ShareDelta | None


def read_control_record(batch: Buffer) -> ControlRecord:
    """A control batch of share state, or a mark. Raises RecordFormatError for any other batch."""
    header = read_header(batch)
    record = None if is_mark(header) else decode_share_record(batch)[1]
    return ControlRecord(header.base_offset, header.last_offset, len(batch), record)


def runs_of(controls: Iterable[ControlRecord]) -> ControlRuns:
    """The runs of control offsets; records that are out of order are skipped."""
    runs, next_offset = ControlRuns(), 0
    for control in controls:
        if next_offset <= control.offset <= control.last_offset:
            runs.append(control.offset, control.last_offset)
            next_offset = control.last_offset + 1
    return runs
