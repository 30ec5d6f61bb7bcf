"""Reads a task's records by plain fetches, straight into Arrow: the executors' side of the source.

It selects records by their offsets. The group has acquired these, so they are no control records and no
records of aborted transactions, and an offset without a record is a hole from compaction. Offsets that the
log doesn't hold any more and corrupt ones fail the task or are noted in the side table, by the options.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, closing
from typing import Final

from barnabas.client.consume.topic_reader import FetchedRecords, ReadSettings, TopicReader
from barnabas.client.errors import ConsumerError, RecordsGoneError, TopicGoneError
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding import BatchError, RecordDecoder, decoded_columns, with_constants
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.reader_cache import Access, cached_reader
from barnabas.pipeline.share_source.group import explained
from barnabas.pipeline.share_source.ranges import (
    AcquiredRange,
    OffsetRange,
    intersect,
    partition_acquired,
    subtract,
    union,
)
from barnabas.pipeline.share_source.settings import ShareSettings
from barnabas.pipeline.share_source.side_table import SideTable
from barnabas.pipeline.share_source.splitting import Piece
from barnabas.protocol.varint import Buffer

_OFFSET_BYTES: Final = 8


def read_pieces(settings: ShareSettings, pieces: Sequence[Piece]) -> Iterator[RecordBatch]:
    """The records of the pieces as Arrow batches of the settings' columns. Raises `PipelineError`."""
    try:
        with cached_reader(Access(settings.servers, ReadSettings())) as reader:
            for piece in pieces:
                with closing(reader.items(PieceReader(settings, reader.topics, piece).read())) as batches:
                    yield from batches
    except ConsumerError as error:
        raise explained(error, settings.group) from error


class PieceReader:
    """Reads one piece, once."""

    def __init__(self, settings: ShareSettings, reader: TopicReader, piece: Piece) -> None:
        self._settings = settings
        self._reader = reader
        self._piece = piece
        self._decoder = RecordDecoder(decoded_columns(settings.columns))
        self._side_table = None if settings.side_table is None else SideTable(settings.side_table)
        self._wanted = union(piece.ranges)
        """The offsets that are still to be read."""

    async def read(self) -> AsyncGenerator[RecordBatch]:
        """The records in their order. Raises `PipelineError` and `ConsumerError`."""
        while self._wanted:
            try:
                async with aclosing(self._reader.read(self._piece.partition, self._wanted)) as fetches:
                    async for fetched in fetches:
                        for batch in self._decode(fetched):
                            yield batch
            except RecordsGoneError as error:
                is_truncated = error.offset >= error.end_offset
                self._lose(None if is_truncated else error.log_start_offset, error)
            except TopicGoneError as error:
                self._lose(None, error)
        if self._decoder.record_count:
            yield self._take()

    def _decode(self, fetched: FetchedRecords) -> Iterator[RecordBatch]:
        _, ranges = partition_acquired(self._piece.ranges, self._wanted)
        records, position = fetched.records, 0
        while position < len(records):
            try:
                position = self._decoder.add(records, position, ranges=ranges)
            except BatchError as error:
                position = len(records) if error.next_position is None else error.next_position
                end_offset = (
                    _base_offset(records, position) if position < len(records) else fetched.next_offset
                )
                self._note_corrupt(error, end_offset)
            if self._decoder.is_full:
                yield self._take()
        self._wanted = subtract(self._wanted, _before(fetched.next_offset))

    def _take(self) -> RecordBatch:
        piece = self._piece
        decoded = self._decoder.take()
        return with_constants(decoded, piece.topic, piece.partition.partition, self._settings.columns)

    def _note_corrupt(self, error: BatchError, end_offset: int) -> None:
        """A batch cannot be decoded: notes the wanted offsets of it, up to `end_offset`, exclusive."""
        unread = intersect(
            self._wanted, [OffsetRange(error.base_offset, max(end_offset - 1, error.base_offset))]
        )
        if self._settings.on_corrupt == "fail":
            raise PipelineError(
                f"{self._name}: offsets {_named(unread)} are corrupt: {error} To go on without them set "
                "onCorrupt=sideTable."
            ) from error
        self._note(unread, str(error))

    def _lose(self, first_offset: int | None, error: ConsumerError) -> None:
        """The log begins at `first_offset`; with None it holds none of the wanted records any more."""
        kept = [] if first_offset is None else subtract(self._wanted, _before(first_offset))
        lost = subtract(self._wanted, kept)
        if self._settings.fail_on_data_loss:
            raise PipelineError(
                f"{self._name}: offsets {_named(lost)} of this batch are not in the log any more: {error} "
                "To go on without them set failOnDataLoss=false."
            ) from error
        self._note(lost, str(error))
        self._wanted = kept

    def _note(self, unread: Sequence[OffsetRange], reason: str) -> None:
        assert self._side_table is not None, "settings see to it"
        for offset_range in unread:
            self._side_table.note(self._piece.topic, self._piece.partition.partition, offset_range, reason)

    @property
    def _name(self) -> str:
        return f"{self._piece.topic}-{self._piece.partition.partition}"


def _before(offset: int) -> list[OffsetRange]:
    """All offsets below this one."""
    return [OffsetRange(0, offset - 1)] if offset > 0 else []


def _base_offset(records: Buffer, position: int) -> int:
    return int.from_bytes(records[position : position + _OFFSET_BYTES], "big", signed=True)


def _named(ranges: Sequence[OffsetRange | AcquiredRange]) -> str:
    return ", ".join(f"{first} to {last}" for first, last, *_ in ranges)
