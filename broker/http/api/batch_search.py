"""Searches batches of records for a text, in steps for a thread (`StepwiseWork`).

Few batches have the text, so each is decompressed and searched as a whole. Only a batch that has the text
somewhere is divided into its records, and only a record that has it somewhere is read completely.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.broker.http.api.found_records import Field, FoundRecord, find_in
from barnabas.protocol.batch_body import batch_body
from barnabas.protocol.record_batch import BatchHeader, is_checksum_valid, read_header
from barnabas.protocol.record_walk import record_spans
from barnabas.protocol.records import Record, record_of_span
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.stepwise import Steps
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan

BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
"""A batch that is larger, or decompresses to more, is not searched."""

ANSWER_CHARACTERS_MAX: Final = 1_000_000
"""A search ends after matches with that many characters."""

_STEP_COST: Final = 1_000
"""A step ends after this cost. The unit is about a microsecond."""
_BATCH_COST: Final = 20
_RECORD_COST: Final = 1
_BYTES_OF_COST: Final = 1_000
"""Bytes that are decompressed, copied and searched at the cost of 1."""
_WINDOW_BYTES: Final = _STEP_COST * _BYTES_OF_COST
"""The most bytes that are searched at once."""


class BatchSearch:
    """One search: its limits, and its results so far. The steps of one call end before the next call."""

    def __init__(self, text: bytes, fields: Sequence[Field], matches_max: int) -> None:
        self._text = text
        self._fields = fields
        self._matches_max = matches_max
        self._step_cost = self._character_count = 0
        self.found: list[FoundRecord] = []
        """The matches, ascending."""
        self.searched_count = 0
        self.skipped_count = 0
        """The offsets of batches that are malformed or too large."""
        self.decompressed_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the answer can have no further match."""
        return len(self.found) >= self._matches_max or self._character_count >= ANSWER_CHARACTERS_MAX

    def search(self, read: BatchSlice, offset: int, decompressed_bytes_max: int) -> Steps[int]:
        """Searches the batches from `offset` on. Returns the first offset that was not searched.

        Ends early if the answer is full, or behind a batch that reaches `decompressed_bytes_max`.
        """
        bytes_max = self.decompressed_bytes + decompressed_bytes_max
        for span in read.batches:
            batch = read.data[span.start : span.end]
            offset = yield from self._search_batch(batch, span, max(offset, span.base_offset))
            if self.is_full or self.decompressed_bytes >= bytes_max:
                break
        return offset

    def _search_batch(self, batch: memoryview, span: BatchSpan, offset: int) -> Steps[int]:
        """Returns the first offset that was not searched."""
        header = read_header(batch)
        behind = span.last_offset + 1
        if header.is_control:
            return behind
        yield from self._spend(_BATCH_COST)
        searched_before = self.searched_count
        try:
            return (yield from self._search_records(header, _body(batch, header), offset, behind))
        except RecordFormatError:
            self.skipped_count += behind - offset - (self.searched_count - searched_before)
            return behind

    def _search_records(self, header: BatchHeader, body: bytes, offset: int, behind: int) -> Steps[int]:
        self.decompressed_bytes += len(body)
        hit = yield from self._find(body, 0)
        if hit < 0 and header.base_offset >= offset:
            self.searched_count += header.record_count
            return behind
        for span in record_spans(body, header.record_count):
            yield from self._spend(_RECORD_COST)
            record_offset = header.base_offset + span.offset_delta
            is_wanted = record_offset >= offset
            self.searched_count += is_wanted
            if not 0 <= hit < span.end:
                continue
            hit = yield from self._find(body, span.end)
            if is_wanted and self._matches(record_of_span(header, body, span)) and self.is_full:
                return record_offset + 1
        return behind

    def _matches(self, record: Record) -> bool:
        """Whether one of the fields has the text; then the record is among the matches."""
        match = find_in(record, self._text, self._fields)
        if match is not None:
            self.found.append(match)
            self._character_count += match.character_count
        return match is not None

    def _find(self, body: bytes, start: int) -> Steps[int]:
        """The position of the text from `start` on, -1 if it is not there."""
        while start < len(body):
            end = start + _WINDOW_BYTES
            hit = body.find(self._text, start, end + len(self._text) - 1)
            yield from self._spend(((min(end, len(body)) if hit < 0 else hit) - start) // _BYTES_OF_COST)
            if hit >= 0:
                return hit
            start = end
        return -1

    def _spend(self, cost: int) -> Steps[None]:
        self._step_cost += cost
        if self._step_cost >= _STEP_COST:
            self._step_cost = 0
            yield


def _body(batch: memoryview, header: BatchHeader) -> bytes:
    """The records, decompressed. RecordFormatError if they are malformed or too large."""
    if len(batch) > BATCH_BYTES_MAX or not is_checksum_valid(batch, 0, header):
        raise RecordFormatError("The batch is damaged, or too large for a search.")
    return batch_body(batch, header, decompressed_bytes_max=BATCH_BYTES_MAX)
