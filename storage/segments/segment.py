"""One segment of a log: a file of record batches and its indexes.

A segment keeps the indexes and timestamps that follow from its batches. The log owns the offsets and the
meaning of batches. The files are opened on demand and closed by `OpenFiles`, so work in a thread pins the
segment. Names and index rules are Kafka's (LogSegment): the first batch behind index.interval.bytes of others
gets an offset entry, and a time entry if the largest timestamp grew. Share state counts for positions and
never for timestamps.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.filesystem import File, FileSystem
from barnabas.storage.format import offset_index, share_index, time_index, transaction_index
from barnabas.storage.format.index_checksums import SegmentChecksums
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.share_index import ShareIndex, ShareIndexEntry, group_hash
from barnabas.storage.format.time_index import NO_TIMESTAMP, TimeIndex
from barnabas.storage.format.transaction_index import AbortedTransaction, TransactionIndex
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.control_batch import ControlBatch
from barnabas.storage.segments.stored_index import Index, StoredIndex

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
SHARE_INDEX_SUFFIX: Final = ".shareindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
DELETED_SUFFIX: Final = ".deleted"
"""The suffix of a file that has left the log and will be removed."""
SEGMENT_SUFFIXES: Final = (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    SHARE_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

OFFSET_DIGITS: Final = 20
"""The digits of the offset in a file's name."""

RELATIVE_OFFSET_MAX: Final = 2**31 - 1

BatchIndex = StoredIndex[OffsetIndex] | StoredIndex[TimeIndex] | StoredIndex[ShareIndex]
SegmentIndex = BatchIndex | StoredIndex[TransactionIndex]


class Segment:
    """A segment; `size_bytes` of its file are valid. Methods that touch its files raise OSError."""

    __slots__ = (
        "_aged_by",
        "_closing",
        "_file",
        "_filesystem",
        "_index_interval_bytes",
        "_open_files",
        "_pins",
        "_roll_ms",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "first_timestamp_ms",
        "log_path",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "offset_index",
        "share_index",
        "size_bytes",
        "time_index",
        "timestamps_known",
        "transaction_index",
        "unverified_end",
        "used",
    )

    def __init__(
        self,
        filesystem: FileSystem,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        open_files: OpenFiles,
        damaged_indexes: set[str],
        created_ms: int,
    ) -> None:
        """`damaged_indexes` gets the paths of index files that are found to be damaged."""
        prefix = f"{directory}/{base_offset:0{OFFSET_DIGITS}d}"
        self.base_offset = base_offset
        self.log_path = prefix + LOG_SUFFIX
        self.size_bytes = 0
        self.created_ms = created_ms

        def index(suffix: str, entry_bytes: int, load: Callable[[bytes], Index]) -> StoredIndex[Index]:
            return StoredIndex(filesystem, prefix + suffix, entry_bytes, load, self._open, damaged_indexes)

        self.offset_index = index(
            OFFSET_INDEX_SUFFIX, offset_index.ENTRY_BYTES, partial(OffsetIndex, base_offset)
        )
        self.time_index = index(TIME_INDEX_SUFFIX, time_index.ENTRY_BYTES, partial(TimeIndex, base_offset))
        self.share_index = index(
            SHARE_INDEX_SUFFIX, share_index.ENTRY_BYTES, partial(ShareIndex, base_offset)
        )
        self.transaction_index = index(
            TRANSACTION_INDEX_SUFFIX, transaction_index.ENTRY_BYTES, TransactionIndex
        )
        self.bytes_since_index = 0
        self.unverified_end = 0
        """Batches below this position must be verified when they are read; see `verification`."""
        self.timestamps_known = True
        self.first_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.used = False
        self._file: File | None = None
        self._filesystem = filesystem
        self._index_interval_bytes = index_interval_bytes
        self._open_files = open_files
        self._pins = 0
        self._closing = False
        """Whether it is to be closed at its last `unpin`."""
        self._aged_by: LogConfig | None = None
        self._roll_ms = 0
        """The age at which it is closed by that config."""

    def create_files(self) -> None:
        """Creates the empty files of a new segment, except the transaction index, which few segments need."""
        for path in (self.log_path, *(index.path for index in self.batch_indexes)):
            self._open_files.open(self._filesystem, path, create=True).close()

    @property
    def offsets(self) -> range:
        """The offsets that may occur in the segment."""
        return range(self.base_offset, self.base_offset + RELATIVE_OFFSET_MAX + 1)

    @property
    def paths(self) -> tuple[str, ...]:
        return self.log_path, *(index.path for index in self.indexes)

    @property
    def batch_indexes(self) -> Sequence[BatchIndex]:
        """The indexes that can be rebuilt from the segment's batches alone."""
        return self.offset_index, self.time_index, self.share_index

    @property
    def indexes(self) -> Sequence[SegmentIndex]:
        """All indexes. To rebuild the transaction index, earlier segments are needed as well."""
        return *self.batch_indexes, self.transaction_index

    def expect(self, checksums: SegmentChecksums | None) -> None:
        """Sets the checksums that the index files had when the log was flushed last; None if unknown."""
        for index, checksum in zip(self.indexes, checksums or (None,) * len(self.indexes), strict=True):
            index.expected = checksum

    @property
    def index_checksums(self) -> SegmentChecksums | None:
        """Those of the index files now; None if the origin of one is unknown."""
        known = [checksum for index in self.indexes if (checksum := index.checksum) is not None]
        return SegmentChecksums._make(known) if len(known) == len(self.indexes) else None

    @property
    def file(self) -> File:
        """The open log file."""
        self.used = True
        if self._file is None:
            self._file = self._open(self.log_path)
            self._open_files.add(self)
        return self._file

    def _open(self, path: str) -> File:
        """Opens a file of the segment; without a free descriptor, other segments are closed first."""
        return self._open_files.open(self._filesystem, path)

    def read(self, position: int, size_bytes: int) -> bytes:
        """Bytes of the segment. OSError, also if the file is shorter than `size_bytes`."""
        data = self.file.read(position, size_bytes)
        if len(data) < size_bytes:
            raise OSError(errno.EIO, "the file is shorter than its written content", self.log_path)
        return data

    @property
    def pinned(self) -> bool:
        return self._pins > 0

    def pin(self) -> None:
        """Keeps the file open until `unpin`, for work in a thread."""
        self._pins += 1

    def unpin(self) -> None:
        self._pins -= 1
        if self._closing and not self.pinned:
            self.close()

    def evict(self) -> None:
        """Closes the file and releases the indexes; for `OpenFiles`."""
        if self._file is not None:
            self._file.close()
            self._file = None
        for index in self.indexes:
            index.release()

    def close(self) -> None:
        """Closes the file and releases the indexes, once the segment is not pinned. Writes nothing; the next
        use opens the segment again.
        """
        self._closing = self.pinned
        if self._closing:
            return
        if self._file is not None:
            self._open_files.remove(self)
        self.evict()

    def hand_over(self, open_files: OpenFiles) -> None:
        """Closes the file, so that the loop's thread opens it and counts it in `open_files`."""
        if self._file is not None:
            self._open_files.remove(self)
            self._file.close()
            self._file = None
        self._open_files = open_files

    def adopt_file(self, file: File) -> None:
        """Takes over a handle of the log file, which still has another name; the segment has none open."""
        assert self._file is None, self.log_path
        self._file = file
        self._open_files.add(self)

    def remove_files(self) -> None:
        """Removes the existing files; raises OSError."""
        for path in self.paths:
            if self._filesystem.exists(path):
                self._filesystem.remove(path)

    def mark_deleted(self) -> list[str]:
        """Renames the existing files, which leave the log; returns the new paths. Raises OSError."""
        marked: list[str] = []
        for path in self.paths:
            if self._filesystem.exists(path):
                self._filesystem.rename(path, path + DELETED_SUFFIX)
                marked.append(path + DELETED_SUFFIX)
        return marked

    def note_data(self, last_offset: int, size_bytes: int, max_timestamp_ms: int) -> None:
        """Notes a batch of data, or a transaction marker, that was written at the end."""
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.max_timestamp_offset = last_offset
        if self.first_timestamp_ms < 0:
            self.first_timestamp_ms = max_timestamp_ms
        if self.bytes_since_index > self._index_interval_bytes:
            self._index_position(last_offset)
        self.bytes_since_index += size_bytes
        self.size_bytes += size_bytes

    def note_control(self, base_offset: int, size_bytes: int, control: ControlBatch) -> None:
        """Notes a batch of share state that was written at the end."""
        _, last_offset_delta, group_id, kind, tombstone = control
        hashed = group_hash(group_id)
        entry = base_offset, self.size_bytes, size_bytes, hashed, last_offset_delta, kind, tombstone
        self.share_index.add(self.share_index.get().append(entry))
        if self.bytes_since_index > self._index_interval_bytes:
            self._index_position(base_offset + last_offset_delta)
        self.bytes_since_index += size_bytes
        self.size_bytes += size_bytes

    @property
    def has_aborted(self) -> bool:
        """Whether the segment has abort markers."""
        return bool(self.transaction_index.size_bytes or self.transaction_index.pending_bytes)

    def note_aborted(self, aborted: AbortedTransaction) -> None:
        """Notes a transaction whose abort marker was written at the end."""
        self.transaction_index.add(self.transaction_index.get().append(aborted))

    def note_damage(self, end: int, share_state: Iterable[ShareIndexEntry]) -> None:
        """Notes durable bytes up to `end` that are damaged, and the share state that an index lists in them.

        The next batch gets an entry in the offset index, so that it can be found behind the damage.
        """
        for entry in share_state:
            self.share_index.add(self.share_index.get().append(entry))
        self.bytes_since_index = self._index_interval_bytes + 1
        self.size_bytes = end

    def _index_position(self, last_offset: int) -> None:
        """Notes in the indexes that the next batch is at this position."""
        self.offset_index.add(self.offset_index.get().append(last_offset, self.size_bytes))
        self.note_max_timestamp()
        self.bytes_since_index = 0

    def note_max_timestamp(self) -> None:
        """Adds the largest timestamp to the time index, if it grew since the last entry.

        To be called at the latest when the segment is closed by a roll.
        """
        if self.max_timestamp_ms >= 0:
            self.time_index.add(
                self.time_index.get().append(self.max_timestamp_ms, self.max_timestamp_offset)
            )

    def max_timestamp(self) -> tuple[int, int]:
        """(largest timestamp in ms, last offset of its batch), or (-1, base offset) without any timestamp."""
        if not self.timestamps_known:
            self.max_timestamp_ms, self.max_timestamp_offset = self.time_index.peek().last_entry()
            self.timestamps_known = True
        return self.max_timestamp_ms, self.max_timestamp_offset

    def takes(
        self, size_bytes: int, last_offset: int, now_ms: int, timestamp_ms: int, config: LogConfig
    ) -> bool:
        """Whether an append of `size_bytes`, up to `last_offset`, keeps segment and indexes within their
        bounds of size and age. An empty segment takes one of any size.
        """
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return False
        if self.size_bytes == 0:
            return True
        index_bytes = config.segment_index_bytes
        first_ms = self.first_timestamp_ms
        waited_ms = timestamp_ms - first_ms if first_ms >= 0 else now_ms - self.created_ms
        if self._aged_by is not config:
            self._aged_by, self._roll_ms = config, config.roll_ms(self.log_path)
        return (
            self.size_bytes + size_bytes <= config.segment_bytes
            and self.offset_index.length_bytes < index_bytes
            and self.time_index.length_bytes < index_bytes
            and self.share_index.length_bytes < index_bytes
            and waited_ms <= self._roll_ms
        )

    def holds_share_state_alone(self) -> bool:
        """Whether the segment has no data."""
        return self.share_index.peek().length_bytes == self.size_bytes

    def waited_ms(self, now_ms: int, timestamp_ms: int) -> int:
        """The time between its first record and `timestamp_ms`; without timestamps, the segment's age."""
        if self.first_timestamp_ms >= 0:
            return timestamp_ms - self.first_timestamp_ms
        return now_ms - self.created_ms


@contextmanager
def kept_open(segments: Sequence[Segment]) -> Generator[None]:
    """Pins these segments in the `with` block, for work in a thread."""
    for segment in segments:
        segment.pin()
    try:
        yield
    finally:
        for segment in segments:
            segment.unpin()


def remove_segments(filesystem: FileSystem, directory: str) -> None:
    """Removes all segments of a closed log durably; raises OSError.

    The newest are removed first, so that a crash leaves a log without gaps.
    """
    names = filesystem.list_directory(directory)
    for name in reversed([name for name in names if name.endswith(SEGMENT_SUFFIXES)]):
        filesystem.remove(f"{directory}/{name}")
    filesystem.sync_directory(directory)
