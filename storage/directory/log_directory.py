"""The data directory: all logs of a broker, their checkpoints, and the maintenance task.

It has the layout of Kafka's log.dir, so that Kafka's tools can read it: `meta.properties`, `.lock`,
checkpoint files, the marker of a clean shutdown, a directory per partition. A log is opened at its first use.
One task flushes changed logs, moves the recovery points, and in longer intervals rolls segments, expires
producers and removes old segments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID, uuid4

from barnabas.protocol.errors import without_frames
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.logging import get_logger
from barnabas.runtime.moment import Moment
from barnabas.runtime.shared_work import SharedWork
from barnabas.storage.directory.checkpoints import Checkpoints
from barnabas.storage.directory.clean_shutdown import note_clean_shutdown, take_clean_shutdown
from barnabas.storage.directory.cleaner import LogCleaner
from barnabas.storage.directory.leftovers import (
    DELETE_SUFFIX,
    STRAY_SUFFIX,
    Leftovers,
    find_leftovers,
    marked_name,
    rename_durably,
)
from barnabas.storage.directory.meta_properties import MetaProperties, settle_meta_properties
from barnabas.storage.directory.record_deletion import Cut, Outcome, delete_records
from barnabas.storage.errors import LogClosed, LogOffline, StorageError
from barnabas.storage.files.full_disk import PROBE_FILE
from barnabas.storage.files.open_files import lacks_descriptor
from barnabas.storage.files.shared_listing import SharedListing
from barnabas.storage.filesystem import FileLock, FileSystem
from barnabas.storage.flushing.flush import Flusher
from barnabas.storage.flushing.flush_schedule import Due, FlushSchedule
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig, StorageConfig
from barnabas.storage.segments.segment import remove_segments
from barnabas.storage.slices import in_slices
from barnabas.storage.state.log_files import LogPlace
from barnabas.storage.state.shared_parts import SharedParts
from barnabas.storage.topic_partition import TopicPartition, parse_directory_name

LOCK_FILE = ".lock"

_Item = TypeVar("_Item")

logger = get_logger("log_directory")

DELETED_AT_ONCE_MAX = 16
"""Topics whose logs are closed and removed at the same time, when thousands of topics are deleted."""


def loop_ms() -> int:
    """The monotonic time of the running loop, in milliseconds."""
    return int(asyncio.get_running_loop().time() * 1000)


class LogDirectory:
    """All logs of one broker. `leader_epoch` is the default epoch of logs that are opened from now on."""

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        lock: FileLock,
        properties: MetaProperties,
        storage: StorageConfig,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
    ) -> None:
        self.path = path
        self.filesystem = filesystem
        self.cluster_id = properties.cluster_id
        self.node_id = properties.node_id
        self.directory_id = properties.directory_id
        self.leader_epoch = 0
        self.storage = storage
        """The settings of all logs."""
        self._lock = lock
        self.was_closed_cleanly = False
        """Whether the last process flushed all logs at its end, and knew of no earlier loss that matters. If
        not, the power may have failed.
        """
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._new_uuid = new_uuid
        self._shared = SharedParts.make(filesystem, path, storage.open_files_max)
        self.full_disk, self.flush_ms = self._shared.full_disk, self._shared.flush_ms
        self.offline_logs = self._shared.offline_logs
        self._checkpoints = Checkpoints(filesystem, path)
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._opening: dict[TopicPartition, asyncio.Task[PartitionLog]] = {}
        self._flush_schedule: FlushSchedule[Flusher] = FlushSchedule(storage)
        self._confirmed_starts: dict[TopicPartition, int] = {}
        """The log starts of offline logs until they are open again; the disk may have older ones."""
        self._flush_due = asyncio.Event()
        self._closing = False
        self._maintenance: asyncio.Task[None] | None = None
        self._removal: asyncio.Task[None] | None = None
        self._syncs = SharedWork(lambda: filesystem.run(filesystem.sync_directory, path))
        """Make the names of new logs' directories durable."""
        self._listing = SharedListing(filesystem, path)
        """Finds the directories of deleted topics, which may be thousands at the same time."""
        self._deletions = asyncio.Semaphore(DELETED_AT_ONCE_MAX)
        self._unsynced: set[TopicPartition] = set()
        """Partitions whose directory names may not be durable yet."""
        self._unmarked: set[TopicPartition] = set()
        """Partitions of deleted topics whose directories could not be marked."""
        self.cleaner = LogCleaner(self._logs.values, self._checkpoints, storage, self._moment)

    @classmethod
    async def open(
        cls,
        filesystem: FileSystem,
        path: str,
        *,
        node_id: int,
        wall_ms: Callable[[], int],
        now_ms: Callable[[], int] = loop_ms,
        cluster_id: str | None = None,
        storage: StorageConfig | None = None,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> LogDirectory:
        """Locks the directory; a missing one is created. `now_ms` is monotonic.

        Without a `cluster_id` the directory keeps its own, or gets a new one. Raises DirectoryLocked;
        InvalidDirectory if another node or cluster owns it; OSError.
        """
        await filesystem.run(filesystem.make_directory, path)
        lock = filesystem.lock(f"{path}/{LOCK_FILE}")
        try:
            properties = await settle_meta_properties(filesystem, path, node_id, cluster_id, new_uuid)
            settings = storage or StorageConfig()
            directory = cls(filesystem, path, lock, properties, settings, now_ms, wall_ms, new_uuid)
            await directory._checkpoints.load()
            directory._checkpoints.keep_only({*await directory.partitions_on_disk()})
            # An earlier process may have been killed before its new directories' names were durable.
            await filesystem.run(filesystem.sync_directory, path)
            if filesystem.exists(f"{path}/{PROBE_FILE}"):  # a crash came while the disk was full
                await filesystem.run(filesystem.remove, f"{path}/{PROBE_FILE}")
            directory.was_closed_cleanly = await take_clean_shutdown(filesystem, path)
        except BaseException:
            lock.release()
            raise
        return directory

    def start(self) -> None:
        """Starts flushes, retention and cleaning, and completes interrupted deletions."""
        assert self._maintenance is None, "started once"
        loop = asyncio.get_running_loop()
        self.cleaner.start()
        self._removal = loop.create_task(self._remove_deleted())
        self._maintenance = loop.create_task(self._maintain())

    async def close(self, *, clean: bool = True, after_loss: bool = False) -> None:
        """Closes all logs and unlocks the directory. A clean close flushes and writes the checkpoints.

        `after_loss`: this process was not closed cleanly before, and the next one has to know that, too.
        """
        self._closing = True
        self._flush_due.set()
        try:
            await self._guarded(self.cleaner.close())
            if self._maintenance is not None and self._removal is not None:
                await self._guarded(self._maintenance)
                await self._guarded(self._removal)
            await asyncio.gather(*self._opening.values(), return_exceptions=True)
            is_flushed = await self._close_logs(clean=clean)
            if clean:
                await self._checkpoints.write(self._open_logs(), high_watermarks=True)
                if is_flushed:
                    await note_clean_shutdown(self.filesystem, self.path, after_loss=after_loss)
        finally:
            self._logs.clear()
            self._lock.release()

    @property
    def logs(self) -> Collection[PartitionLog]:
        """The open logs."""
        return self._logs.values()

    def find(self, topic: str, partition: int) -> PartitionLog | None:
        """The log if it is open and online."""
        log = self._logs.get(TopicPartition(topic, partition))
        return log if log is not None and log.offline is None else None

    async def log(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        *,
        leader_epoch: int | None = None,
    ) -> PartitionLog:
        """The log, opened or created if necessary; StorageError if that fails.

        Recovery opens a log again that went offline, but not before `reopen_backoff_ms` is over.
        """
        key = TopicPartition(topic, partition)
        log = self._logs.get(key)
        if log is not None and log.offline is None:
            return log
        task = self._opening.get(key)
        if task is None:
            if self._closing:
                raise LogClosed(f"{self.path} is closed.")
            offline = None if log is None else log.offline
            self.offline_logs.check_pause(key, offline, self.storage.reopen_backoff_ms)
            epoch = self.leader_epoch if leader_epoch is None else leader_epoch
            opening = self._open_log(key, topic_id, config, epoch)
            task = self._opening[key] = asyncio.get_running_loop().create_task(opening)
            task.add_done_callback(partial(self._opened, key))
        return await asyncio.shield(task)

    def _opened(self, key: TopicPartition, _task: asyncio.Task[PartitionLog]) -> None:
        self._opening.pop(key, None)

    async def start_over(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig, *, offset: int
    ) -> PartitionLog:
        """Discards the content of the log, which then begins and ends at `offset`, even after a crash
        meanwhile.

        Raises OSError, StorageError.
        """
        key = TopicPartition(topic, partition)
        log = self._logs.pop(key, None)
        if log is not None:
            await log.close(clean=False)
        self._confirmed_starts.pop(key, None)
        self._checkpoints.begin_at(key, offset)
        await self._checkpoints.write(self._open_logs())
        directory = f"{self.path}/{key.directory_name}"
        await self.filesystem.run(remove_segments, self.filesystem, directory)
        return await self.log(topic, partition, topic_id, config)

    async def delete_records(self, cuts: Sequence[Cut]) -> list[Outcome]:
        """Moves log starts up as `PartitionLog.delete_records` does, and makes them durable."""
        return await delete_records(
            cuts, self._checkpoints, concurrency_max=self.storage.flush_concurrency_max
        )

    async def delete_topic(self, topic: str) -> None:
        """Deletes the topic's logs: they are marked together, so that no crash brings one back, then removed.

        Raises OSError if one of them could not be marked.
        """
        keys = await self._listing.partitions_of(topic)
        async with self._deletions:
            for key in keys:
                await self._let_go(key)
                await asyncio.sleep(0)  # closing thousands of logs must not hold the loop
            self.offline_logs.remove_topic(topic)
            self._unmarked.update(keys)
            marked = await self._mark(keys, DELETE_SUFFIX)
            self._unmarked.difference_update(keys)
            await self._remove_marked(marked)

    async def settle_leftovers(
        self, topics: Collection[str], deleted_topics: Mapping[UUID, str]
    ) -> Leftovers:
        """Before the start: marks the directories of deleted topics for removal, and renames strays.

        `topics` are the existing topics, `deleted_topics` the deleted ones' names by id. A stray is a
        directory of no known topic, such as one that was copied here by hand. Raises OSError.
        """
        on_disk = await self.partitions_on_disk()
        found = await self.filesystem.run(
            find_leftovers, self.filesystem, self.path, on_disk, topics, deleted_topics
        )
        await self._mark(found.deleted, DELETE_SUFFIX)
        await self._mark(found.strays, STRAY_SUFFIX)
        return found

    async def partitions_on_disk(self) -> list[TopicPartition]:
        """The partitions that have a directory, open or not."""
        names = await self.filesystem.run(self.filesystem.list_directory, self.path)
        return [key for name in names if (key := parse_directory_name(name)) is not None]

    async def _open_log(
        self, key: TopicPartition, topic_id: UUID, config: LogConfig, leader_epoch: int
    ) -> PartitionLog:
        previous = self._logs.pop(key, None)
        if previous is not None:
            await previous.close(clean=False)
            self._checkpoints.note(previous)
            self._confirmed_starts[key] = previous.log_start_offset
        try:
            await self._make_way(key)
            log = await self._open_with_room(key, topic_id, config, leader_epoch)
        except (OSError, RecordFormatError, StorageError) as error:
            self.full_disk.met(error)
            refusal = LogOffline(f"{key.directory_name} cannot be opened: {error}")
            refusal.__cause__ = error
            self.offline_logs.add_failed(key, refusal, self.storage.reopen_backoff_ms)
            raise without_frames(refusal) from error
        confirmed_start = min(self._confirmed_starts.pop(key, 0), log.high_watermark)
        if confirmed_start > log.log_start_offset:
            log.delete_records(confirmed_start)
        self._logs[key] = log
        self.offline_logs.remove(key)
        return log

    async def _make_way(self, key: TopicPartition) -> None:
        """Marks the directory of a deleted topic that still has this name; raises OSError."""
        if key in self._unmarked:
            if self.filesystem.exists(f"{self.path}/{key.directory_name}"):
                await self._mark([key], DELETE_SUFFIX)
            self._unmarked.discard(key)

    async def _open_with_room(
        self, key: TopicPartition, topic_id: UUID, config: LogConfig, leader_epoch: int
    ) -> PartitionLog:
        """Opens the log; while there is no free descriptor, closes segments of other logs and retries."""
        while True:
            try:
                return await self._open_on_disk(key, topic_id, config, leader_epoch)
            except OSError as error:
                if not lacks_descriptor(error) or not self._shared.open_files.make_room():
                    raise

    async def _open_on_disk(
        self, key: TopicPartition, topic_id: UUID, config: LogConfig, leader_epoch: int
    ) -> PartitionLog:
        directory = f"{self.path}/{key.directory_name}"
        if not self.filesystem.exists(directory):
            await self._checkpoints.settle_forgotten(key)
            self._unsynced.add(key)
        place = LogPlace(
            filesystem=self.filesystem,
            directory=directory,
            topic_partition=key,
            topic_id=topic_id,
            config=config,
            storage=self.storage,
            shared=self._shared,
            recovery_point=self._checkpoints.recovery_point(key),
            log_start_offset=self._checkpoints.log_start_offset(key),
            gaps_until=self._checkpoints.gaps_until(key),
        )
        log = await PartitionLog.open(
            place, leader_epoch=leader_epoch, moment=self._moment(), on_flush_due=self._flush_due.set
        )
        await self._settle_name(key, log)
        return log

    async def _settle_name(self, key: TopicPartition, log: PartitionLog) -> None:
        """Makes the name of a new log's directory durable before the log is used; raises OSError."""
        if key in self._unsynced:
            try:
                await self._syncs.run()
            except OSError:
                await log.close(clean=False)
                raise
            self._unsynced.discard(key)

    async def _let_go(self, key: TopicPartition) -> None:
        """Closes the log, if it is open or being opened, and forgets the partition."""
        if key in self._opening:
            await asyncio.wait([self._opening[key]])
        log = self._logs.pop(key, None)
        if log is not None:
            await self._guarded(log.close(clean=False))
        self._confirmed_starts.pop(key, None)
        self._unsynced.discard(key)
        self.cleaner.forget(key)

    async def _mark(self, keys: Sequence[TopicPartition], suffix: str) -> list[str]:
        """Renames the partitions' directories durably, which frees their names; returns the new names."""
        if not keys:
            return []
        for key in keys:
            self._checkpoints.forget(key)
        names = [marked_name(key, self._new_uuid(), suffix) for key in keys]
        renames = [(key.directory_name, name) for key, name in zip(keys, names, strict=True)]
        await self.filesystem.run(rename_durably, self.filesystem, self.path, renames)
        return names

    async def _close_logs(self, *, clean: bool) -> bool:
        """Closes all logs; returns whether all of them are durable up to their ends."""
        outcomes: list[bool] = []
        for some in self._some_at_a_time(list(self._logs.values())):
            outcomes += await asyncio.gather(*(self._close_log(log, clean=clean) for log in some))
        return all(outcomes)

    def _some_at_a_time(self, items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
        size = self.storage.flush_concurrency_max
        return (items[start : start + size] for start in range(0, len(items), size))

    async def _close_log(self, log: PartitionLog, *, clean: bool) -> bool:
        was_online = log.offline is None
        try:
            await log.close(clean=clean)
        except StorageError as error:
            name = log.topic_partition.directory_name
            logger.error("a log was not closed cleanly", log=name, reason=str(error))
            return False
        except Exception as error:
            name = log.topic_partition.directory_name
            logger.error("a log was not closed cleanly", log=name, exc_info=error)
            return False
        return was_online

    async def _maintain(self) -> None:
        """Until closed: flushes at each interval and when one is due; retention in its own interval."""
        loop = asyncio.get_running_loop()
        retention_at = loop.time() + self.storage.retention_check_interval_ms / 1000
        while await self._is_flush_awaited():
            is_retention_due = loop.time() >= retention_at
            if is_retention_due:
                retention_at = loop.time() + self.storage.retention_check_interval_ms / 1000
                await self._guarded(self.retain())
            await self._guarded(self._flush_due_logs(high_watermarks=is_retention_due))
            await self._guarded(self.full_disk.look_again())

    async def _is_flush_awaited(self) -> bool:
        """Waits for the next flush; False if the directory is closed meanwhile."""
        try:
            async with asyncio.timeout(self._flush_schedule.wake_ms(self._flushers()) / 1000):
                await self._flush_due.wait()
        except TimeoutError:
            pass
        else:
            self._flush_due.clear()
        return not self._closing

    async def _guarded(self, step: Awaitable[None]) -> None:
        try:
            await step
        except LogClosed:
            pass  # it was closed meanwhile, for example because its topic was deleted
        except (OSError, StorageError) as error:
            if self._is_full_disk(error):
                return
            logger.error("maintenance of the logs failed", directory=self.path, reason=str(error))
        except Exception as error:  # a bug of ours, which must not end the maintenance of the other logs
            logger.error("maintenance of the logs failed", directory=self.path, exc_info=error)

    def _is_full_disk(self, error: OSError | StorageError) -> bool:
        """Whether the error is due to a full disk. A StorageError may be an old one of an offline log."""
        return self.full_disk.met(error) if isinstance(error, OSError) else self.full_disk.explains(error)

    async def _remove_deleted(self) -> None:
        names = await self.filesystem.run(self.filesystem.list_directory, self.path)
        await self._remove_marked([name for name in names if name.endswith(DELETE_SUFFIX)])

    async def _remove_marked(self, names: Iterable[str]) -> None:
        """Removes the directories one after the other; the next start tries those again that failed."""
        for name in names:
            await self._guarded(self.filesystem.run(self.filesystem.remove_tree, f"{self.path}/{name}"))

    async def flush(self, *, high_watermarks: bool = False) -> None:
        """Flushes the changed logs and writes the checkpoints; raises OSError for the checkpoints."""
        due = self._flush_schedule.take_all(self._flushers(), self._now_ms())
        await self._flush(due, high_watermarks=high_watermarks)

    async def _flush_due_logs(self, *, high_watermarks: bool) -> None:
        due: Due[Flusher] = Due([], [])
        for logs in in_slices(self._open_logs()):
            syncs, flushes = self._flush_schedule.take_due((log.flusher for log in logs), self._now_ms())
            due.syncs.extend(syncs)
            due.flushes.extend(flushes)
            await asyncio.sleep(0)
        for some in self._some_at_a_time(due.syncs):
            await asyncio.gather(*(self._guarded(flusher.sync()) for flusher in some))
        await self._flush(due.flushes, high_watermarks=high_watermarks)

    async def _flush(self, due: Sequence[Flusher], *, high_watermarks: bool) -> None:
        for some in self._some_at_a_time(due):
            await asyncio.gather(*(self._guarded(flusher.flush()) for flusher in some))
        await self._checkpoints.write(self._open_logs(), high_watermarks=high_watermarks)

    def _open_logs(self) -> Iterator[PartitionLog]:
        """The open logs one after the other; logs that are closed before their turn are left out."""
        for key in list(self._logs):
            log = self._logs.get(key)
            if log is not None:
                yield log

    def _flushers(self) -> Iterator[Flusher]:
        return (log.flusher for log in self._logs.values())

    async def retain(self) -> None:
        """Rolls segments, expires producers and removes segments, where due, in all open logs."""
        moment = self._moment()
        for log in list(self._logs.values()):
            if log.offline is None:
                await self._guarded(self._retain(log, moment))

    async def _retain(self, log: PartitionLog, moment: Moment) -> None:
        log.expire_producers(moment.now_ms)
        log.roll_if_due(moment.wall_ms)
        await log.enforce_retention(moment.wall_ms)

    def _moment(self) -> Moment:
        return Moment(self._now_ms(), self._wall_ms())
