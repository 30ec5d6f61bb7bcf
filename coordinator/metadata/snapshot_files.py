"""The snapshots in the metadata log's directory: found, read, written and deleted (KIP-630).

A file appears under its name when it is complete and durable. A file that cannot be read all the same is set
aside, and the one before it takes its place. `metadata_log.py` decides when to write a file, and which files
to delete.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import PurePath
from typing import NamedTuple

from barnabas.coordinator.metadata.log_start import StoredSnapshot
from barnabas.coordinator.metadata.snapshot import (
    SnapshotId,
    decode_snapshot,
    encode_snapshot,
    last_contained_timestamp_ms,
    parse_snapshot_name,
)
from barnabas.protocol.metadata_records import MetadataRecord
from barnabas.protocol.varint import NewerVersion, RecordFormatError
from barnabas.runtime.logging import get_logger
from barnabas.runtime.moment import Moment
from barnabas.storage.filesystem import FileSystem

log = get_logger("metadata_snapshots")

DAMAGED_SUFFIX = ".damaged"
"""Put behind the name of a snapshot that cannot be read. Neither Kafka's tools nor we take it for one."""

_HEADER_BYTES = 512
"""Enough of a snapshot to find its header in."""


class LoadedSnapshot(NamedTuple):
    """A snapshot's records, and the time (wall, ms) of the last record that it stands for."""

    snapshot_id: SnapshotId
    last_timestamp_ms: int
    records: Sequence[MetadataRecord]


class SnapshotFiles:
    """The snapshots of one directory. Every method that touches the disk raises OSError."""

    def __init__(self, filesystem: FileSystem, directory: str) -> None:
        self.directory = directory
        self._filesystem = filesystem
        self._stored: list[StoredSnapshot] = []

    @property
    def stored(self) -> Sequence[StoredSnapshot]:
        """Those that can be read, in the order in which they were taken."""
        return self._stored

    @property
    def ids(self) -> list[SnapshotId]:
        """Their ids, in the same order."""
        return [snapshot.snapshot_id for snapshot in self._stored]

    async def open(self, moment: Moment) -> LoadedSnapshot | None:
        """Find the snapshots at this moment, and read the newest readable one; None if there is none.

        Of the others, only the header is read. One that ends behind the newest stands for records that
        were lost, and is set aside like a damaged one; one that the disk doesn't give is passed over. Once
        this returns, the others' names survive a loss of power.
        """
        filesystem = self._filesystem
        names = await filesystem.run(filesystem.list_directory, self.directory)
        ids = sorted(filter(None, map(parse_snapshot_name, names)), key=lambda found: found.age, reverse=True)
        newest: LoadedSnapshot | None = None
        for snapshot_id in ids:
            try:
                if newest is None:
                    newest = await self._load(snapshot_id)
                elif snapshot_id.end_offset > newest.snapshot_id.end_offset:
                    raise RecordFormatError("It stands for records that were lost.")
                self._stored.insert(0, await filesystem.run(self._look_at, snapshot_id, moment))
            except NewerVersion as error:
                raise NewerVersion(f"{self._path(snapshot_id)}: {error}") from error
            except RecordFormatError as error:
                await self._set_aside(snapshot_id, error)
            except OSError as error:
                path = self._path(snapshot_id)
                log.warning("a metadata snapshot cannot be read", path=path, reason=str(error))
        if self._stored:
            await filesystem.run(filesystem.sync_directory, self.directory)
        return newest

    async def write(
        self, snapshot_id: SnapshotId, records: Sequence[MetadataRecord], last_written: Moment
    ) -> None:
        """Make a snapshot, durable when this returns. The last record that it replaces was written then."""
        data = await self._filesystem.run(encode_snapshot, snapshot_id, records, last_written.wall_ms)
        await self._filesystem.replace_whole(self._path(snapshot_id), data)
        self._stored.append(StoredSnapshot(snapshot_id, last_written.now_ms, len(data)))

    async def delete_below(self, offset: int) -> None:
        """Delete the snapshots that end below `offset`."""
        gone = [snapshot_id for snapshot_id in self.ids if snapshot_id.end_offset < offset]
        self._stored = [snapshot for snapshot in self._stored if snapshot.snapshot_id.end_offset >= offset]
        for snapshot_id in gone:
            await self._filesystem.run(self._filesystem.remove, self._path(snapshot_id))

    def find(self, snapshot_id: SnapshotId) -> StoredSnapshot | None:
        """The snapshot with this id, if it is there."""
        return next((snapshot for snapshot in self._stored if snapshot.snapshot_id == snapshot_id), None)

    async def read(self, snapshot_id: SnapshotId, position: int, size_bytes: int) -> bytes | None:
        """A piece of a snapshot's file; None if it was deleted meanwhile."""
        try:
            return await self._filesystem.run(self._read, snapshot_id, position, size_bytes)
        except FileNotFoundError:
            return None

    async def _load(self, snapshot_id: SnapshotId) -> LoadedSnapshot:
        data = await self._filesystem.read_whole(self._path(snapshot_id))
        records = await self._filesystem.run(decode_snapshot, data)
        return LoadedSnapshot(snapshot_id, last_contained_timestamp_ms(data), records)

    def _look_at(self, snapshot_id: SnapshotId, moment: Moment) -> StoredSnapshot:
        timestamp_ms = last_contained_timestamp_ms(self._read(snapshot_id, 0, _HEADER_BYTES))
        size_bytes = self._filesystem.file_size(self._path(snapshot_id))
        return StoredSnapshot(snapshot_id, moment.monotonic_of(timestamp_ms), size_bytes)

    def _read(self, snapshot_id: SnapshotId, position: int, size_bytes: int) -> bytes:
        with closing(self._filesystem.open(self._path(snapshot_id), create=False)) as file:
            return file.read(position, size_bytes)

    async def _set_aside(self, snapshot_id: SnapshotId, error: RecordFormatError) -> None:
        path = self._path(snapshot_id)
        log.warning("an unusable metadata snapshot is set aside", path=path, reason=str(error))
        await self._filesystem.run(self._filesystem.rename, path, f"{path}{DAMAGED_SUFFIX}")

    def _path(self, snapshot_id: SnapshotId) -> str:
        return str(PurePath(self.directory, snapshot_id.file_name))
