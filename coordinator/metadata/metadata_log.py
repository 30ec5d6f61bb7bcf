"""Where the metadata is kept: the log `__cluster_metadata-0` and its snapshots (KIP-500, KIP-630).

One batch holds what one decision changed, so a decision is there whole or not at all; its leader epoch is the
node's epoch. Once `metadata.log.max.record.bytes.between.snapshots` bytes follow the last snapshot a new one
is written, and at a clean close if there is anything new. The two newest snapshots are kept, and the log from
the older one's end on: if the newest cannot be read, nothing is lost. Older snapshots are deleted after the
log start has moved.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Protocol

from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage
from barnabas.coordinator.metadata.snapshot import (
    SnapshotId,
    decode_log,
    decode_snapshot,
    encode_snapshot,
    parse_snapshot_name,
)
from barnabas.protocol.metadata_records import MetadataRecord, encode_metadata_record
from barnabas.protocol.record_batch import KeyValue
from barnabas.protocol.varint import Buffer, RecordFormatError
from barnabas.storage.append import Append
from barnabas.storage.errors import InvalidDirectory, StorageError
from barnabas.storage.filesystem import FileSystem

_logger = logging.getLogger(__name__)

_READ_BYTES = 1024 * 1024
_SNAPSHOTS_KEPT = 2


class Slice(Protocol):
    """Whole batches read from a log, in pieces."""

    @property
    def buffers(self) -> Sequence[Buffer]: ...


class LogStore(Protocol):
    """What is asked of the log, which `storage.log.PartitionLog` offers.

    `leader_epoch` is set once, when the node's epoch of this start is known; appends from then on carry it.
    """

    @property
    def leader_epoch(self) -> int: ...

    @leader_epoch.setter
    def leader_epoch(self, leader_epoch: int, /) -> None: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    def append_records(self, records: Sequence[KeyValue], now_ms: int) -> Append: ...

    def read(self, offset: int, *, bytes_max: int) -> Slice: ...

    def delete_records(self, before_offset: int) -> int: ...

    async def flush(self) -> None: ...


class MetadataLog:
    """The metadata's log and snapshots in one directory."""

    def __init__(
        self, store: LogStore, filesystem: FileSystem, directory: str, *, bytes_between_snapshots: int
    ) -> None:
        self._store = store
        self._filesystem = filesystem
        self._directory = directory
        self._bytes_between_snapshots = bytes_between_snapshots
        self._bytes_since_snapshot = 0
        self._newest_end_offset = 0
        self._writing: asyncio.Task[None] | None = None

    @property
    def end_offset(self) -> int:
        """Behind the last record."""
        return self._store.log_end_offset

    async def load(self, image: MetadataImage) -> None:
        """Bring an empty `image` up to the end of the log; raises `InvalidDirectory` if records are
        missing.
        """
        changes = MetadataChanges()
        snapshot_id, records = await self._newest_valid_snapshot()
        for record in records:
            image.replay(record, changes)
        self._newest_end_offset = offset = snapshot_id.end_offset
        if not self._store.log_start_offset <= offset <= self._store.log_end_offset:
            raise InvalidDirectory(
                f"{self._directory} holds the records from {self._store.log_start_offset} to "
                f"{self._store.log_end_offset}, which do not follow its snapshot up to {offset}."
            )
        while offset < self._store.log_end_offset:
            offset = self._replay_slice(image, offset, changes)

    def _replay_slice(self, image: MetadataImage, offset: int, changes: MetadataChanges) -> int:
        data = b"".join(self._store.read(offset, bytes_max=_READ_BYTES).buffers)
        self._bytes_since_snapshot += len(data)
        next_offset = offset
        for batch_end_offset, records in decode_log(data, offset):
            next_offset = batch_end_offset
            for record in records:
                image.replay(record, changes)
        if next_offset == offset:
            raise InvalidDirectory(f"{self._directory} holds no readable records at offset {offset}.")
        return next_offset

    def become_leader(self, node_epoch: int) -> None:
        """From now on batches carry the epoch of this start."""
        self._store.leader_epoch = node_epoch

    def append(self, records: Iterable[MetadataRecord], now_ms: int) -> Append:
        """Append what one decision changes, as one batch."""
        values = [encode_metadata_record(record) for record in records]
        self._bytes_since_snapshot += sum(map(len, values))
        return self._store.append_records([(None, value) for value in values], now_ms)

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot_if_due(self, image: MetadataImage, now_ms: int) -> None:
        """Start to write a snapshot of `image`, which holds all that is in the log, if enough bytes
        came since.
        """
        if self._bytes_since_snapshot > self._bytes_between_snapshots and self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self.write_snapshot(image, now_ms))
            self._writing.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writing = None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, OSError | StorageError):
            # Nothing is lost by that but time at the next start, and the next one may succeed.
            _logger.warning(
                "a snapshot of the metadata could not be written in %s: %s", self._directory, error
            )
        elif error is not None:
            raise error

    async def close(self, image: MetadataImage, now_ms: int) -> None:
        """Leave a snapshot for a quick start, if anything is new. The log itself is closed by its owner."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._store.log_end_offset > self._newest_end_offset:
            await self.write_snapshot(image, now_ms)

    async def write_snapshot(self, image: MetadataImage, now_ms: int) -> None:
        """Write the snapshot of `image` as it is now, then give up what is no longer needed."""
        snapshot_id = SnapshotId(self._store.log_end_offset, self._store.leader_epoch)
        data = encode_snapshot(snapshot_id, image.to_records(), now_ms)
        self._bytes_since_snapshot = 0
        # A snapshot must not outlive records that it stands for: the log would have to begin behind its end.
        await self._store.flush()
        await self._filesystem.replace_whole(self._path(snapshot_id), data)
        self._newest_end_offset = snapshot_id.end_offset
        kept, superseded = _split(self._snapshot_ids())
        if len(kept) == _SNAPSHOTS_KEPT:
            self._store.delete_records(kept[-1].end_offset)
        for old_id in superseded:
            self._filesystem.remove(self._path(old_id))

    def _snapshot_ids(self) -> list[SnapshotId]:
        """Those in the directory, the newest first."""
        names = self._filesystem.list_directory(self._directory)
        return sorted(filter(None, map(parse_snapshot_name, names)), reverse=True)

    async def _newest_valid_snapshot(self) -> tuple[SnapshotId, list[MetadataRecord]]:
        for snapshot_id in self._snapshot_ids():
            try:
                data = await self._filesystem.read_whole(self._path(snapshot_id))
                return snapshot_id, decode_snapshot(data)
            except (OSError, RecordFormatError):
                continue  # The one before it and a longer piece of the log say the same.
        return SnapshotId(0, 0), []

    def _path(self, snapshot_id: SnapshotId) -> str:
        return str(PurePath(self._directory, snapshot_id.file_name))


def _split(snapshot_ids: list[SnapshotId]) -> tuple[list[SnapshotId], list[SnapshotId]]:
    return snapshot_ids[:_SNAPSHOTS_KEPT], snapshot_ids[_SNAPSHOTS_KEPT:]
