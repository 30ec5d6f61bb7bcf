"""The checkpoint files of a data directory: recovery point, log start, high watermark and compacted offset of
each partition.

They are written when an offset has moved. For logs that are not open they keep the offsets that were read. A
lost recovery point makes a recovery longer, and a lost end of a compaction the next compaction. But nothing
else has the log starts: without them deleted records would come back. So that file has a copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_offsets, encode_offsets
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.slices import in_slices

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
CLEANED_FILE = "cleaner-offset-checkpoint"
LOG_START_COPY = f"{LOG_START_FILE}.copy"

ANYWHERE = (1 << 63) - 1
"""An offset beyond the end of every log."""

_Key = tuple[str, int]
_Offsets = dict[_Key, int]

logger = get_logger("checkpoints")


class Checkpoints:
    """The four files in memory."""

    def __init__(self, filesystem: FileSystem, directory: str) -> None:
        self._recovery_points = _OffsetFile(filesystem, f"{directory}/{RECOVERY_POINT_FILE}")
        self._log_starts = _CopiedOffsetFile(
            filesystem, f"{directory}/{LOG_START_FILE}", f"{directory}/{LOG_START_COPY}"
        )
        self._high_watermarks = _OffsetFile(filesystem, f"{directory}/{HIGH_WATERMARK_FILE}")
        self._cleaned = _OffsetFile(filesystem, f"{directory}/{CLEANED_FILE}")
        self._forgotten: dict[_Key, int] = {}
        """Forgotten partitions that the files on the disk may still have, with the value of `_forget_count`
        at that time."""
        self._forget_count = 0
        self._files = (self._recovery_points, self._log_starts, self._high_watermarks, self._cleaned)

    async def load(self) -> None:
        """Reads the files; raises InvalidDirectory if the log starts are lost, and OSError.

        Another missing or damaged file counts as empty.
        """
        for file in self._files:
            await file.load()

    def keep_only(self, keys: Collection[_Key]) -> None:
        """Forgets all other partitions: offsets of a deleted one are wrong for a new one of the same name."""
        for key in {key for file in self._files for key in file.offsets} - {*keys}:
            self.forget(key)

    def recovery_point(self, key: _Key) -> int:
        return self._recovery_points.offsets.get(key, 0)

    def log_start_offset(self, key: _Key) -> int:
        return self._log_starts.offsets.get(key, 0)

    def cleaned_offset(self, key: _Key) -> int:
        """The end (exclusive) of the last compaction, 0 without one."""
        return self._cleaned.offsets.get(key, 0)

    def gaps_until(self, key: _Key) -> int:
        """The offset (exclusive) below which gaps between segments are allowed, durable or not: Apache
        Kafka's compaction leaves holes.

        Without a known recovery point gaps are allowed everywhere: more likely the checkpoint file was lost
        than the middle of a log.
        """
        return self.cleaned_offset(key) if self.recovery_point(key) else ANYWHERE

    async def write_cleaned(self, key: _Key, offset: int) -> None:
        """Notes the end of the log's compaction and writes the file; raises OSError."""
        self._cleaned.note(key, offset)
        await self._cleaned.write()

    def note(self, log: PartitionLog) -> None:
        """Notes the log's offsets for the next write of the files."""
        key = log.topic_partition
        self._recovery_points.note(key, log.recovery_point)
        self._high_watermarks.note(key, log.high_watermark)
        # Never ahead of the durable records: a crash would lose the records in between, the state of share
        # groups included. Never below an earlier note, which was true.
        self.note_log_start(key, min(log.log_start_offset, log.durable_offset))

    def note_log_start(self, key: _Key, offset: int) -> None:
        """Notes the log start, unless it is lower than an earlier note, which was true."""
        if offset > self.log_start_offset(key):
            self._log_starts.note(key, offset)

    async def write_log_starts(self) -> None:
        """Writes the file of the log starts, if any has changed; raises OSError."""
        await self._log_starts.write()

    def begin_at(self, key: _Key, offset: int) -> None:
        """Notes that the log begins at `offset` and has no durable records, so that recovery checks all."""
        self._recovery_points.note(key, 0)
        self._high_watermarks.note(key, offset)
        self._log_starts.note(key, offset)

    def forget(self, key: _Key) -> None:
        """Forgets a deleted partition."""
        self._forget_count += 1
        self._forgotten[key] = self._forget_count
        for file in self._files:
            file.forget(key)

    async def settle_forgotten(self, key: _Key) -> None:
        """Returns once the files no longer have the forgotten partition. Raises OSError.

        To be called before a partition of the same name is created, which after a crash would get the old
        offsets.
        """
        if key in self._forgotten:
            await self.write(())

    async def write(self, logs: Iterable[PartitionLog], *, high_watermarks: bool = False) -> None:
        """Writes the files that have changed; raises OSError.

        Other software that opens the directory begins with the high watermark in the file. Barnabas derives
        it from the log, and so writes that file less often. Thousands of logs are visited in slices, each log
        when its turn comes.
        """
        for some in in_slices(logs):
            for log in some:
                self.note(log)
            await asyncio.sleep(0)
        forgotten = dict(self._forgotten)
        await self._recovery_points.write()
        await self._log_starts.write()
        await self._cleaned.write()
        for key, count in forgotten.items():
            if self._forgotten.get(key) == count:
                del self._forgotten[key]
        if high_watermarks:
            await self._high_watermarks.write()


class _OffsetFile:
    """One checkpoint file: an offset per partition."""

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self.offsets: _Offsets = {}
        self._filesystem = filesystem
        self._path = path
        self._changed = False
        self._lock = asyncio.Lock()
        """Held while the file is written: all replacements use the same temporary name."""

    async def load(self) -> None:
        try:
            self.offsets = await self._read(self._path) or {}
        except CheckpointCorrupt as error:
            logger.warning(
                "a checkpoint file is damaged, and counts as empty", path=self._path, reason=str(error)
            )

    def note(self, key: _Key, offset: int) -> None:
        if self.offsets.get(key) != offset:
            self.offsets[key] = offset
            self._changed = True

    def forget(self, key: _Key) -> None:
        self._changed |= self.offsets.pop(key, None) is not None

    async def write(self) -> None:
        async with self._lock:
            if self._changed:
                self._changed = False
                try:
                    await self._replace(encode_offsets(self.offsets))
                except OSError:
                    self._changed = True
                    raise

    async def _read(self, path: str) -> _Offsets | None:
        """The offsets in a file; None if it is missing or has no number of entries, as Kafka creates it.

        Raises CheckpointCorrupt.
        """
        if not self._filesystem.exists(path):
            return None
        data = await self._filesystem.read_whole(path)
        offsets = decode_offsets(data)
        return offsets if data.count(b"\n") > 1 else None

    async def _replace(self, data: bytes) -> None:
        await self._filesystem.replace_whole(self._path, data)


class _CopiedOffsetFile(_OffsetFile):
    """A checkpoint file with a copy, which is written after it and takes its place if it is damaged."""

    def __init__(self, filesystem: FileSystem, path: str, copy_path: str) -> None:
        super().__init__(filesystem, path)
        self._copy_path = copy_path

    async def load(self) -> None:
        has_copy = self._filesystem.exists(self._copy_path)
        try:
            offsets = await self._read(self._path)
        except CheckpointCorrupt as error:
            offsets = await self._read_copy(str(error).rstrip("."))
        else:
            if offsets is None and has_copy:
                offsets = await self._read_copy("it is missing or empty")
        self.offsets = offsets or {}
        self._changed |= bool(offsets) and not has_copy  # an earlier version wrote none

    async def _read_copy(self, reason: str) -> _Offsets:
        """The offsets in the copy, which will be in the file again; InvalidDirectory without a good copy."""
        try:
            offsets = await self._read(self._copy_path)
        except CheckpointCorrupt:
            offsets = None
        if offsets is None:
            raise InvalidDirectory(
                f"{self._path} is damaged: {reason}. There is no good copy of it, so the starts of the logs "
                f"are unknown. Restore the file from a backup. Or remove it and {self._copy_path}: then each "
                "log begins with its first segment, and deleted records that are still there come back."
            )
        logger.warning("a checkpoint file is damaged; its copy is used", path=self._path, reason=reason)
        self._changed = True
        return offsets

    async def _replace(self, data: bytes) -> None:
        await super()._replace(data)
        await self._filesystem.replace_whole(self._copy_path, data)
