"""The storage of metadata: the log `__cluster_metadata-0` and its snapshots (KIP-500, KIP-630).

One batch holds the changes of one decision, so a decision is in the log completely or not at all; its leader
epoch is the node's epoch. `snapshot_schedule.py` decides when a snapshot is due, and `log_start.py` where the
log may begin. This module does the work, one step after another: it flushes the log, writes the snapshot,
moves the log start, and deletes the data below it. A clean close leaves a snapshot of everything, for a quick
start.

Two things hold at every moment, and are checked at each start: a log that begins at offset 0 needs no
snapshot; one that begins behind it has a snapshot that ends between its start and its end. A snapshot that is
newer than the log's end replaces the records that the log has lost: the log starts over at its end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.coordinator.metadata.followers import FollowerKey, Followers, Heard
from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage
from barnabas.coordinator.metadata.interfaces import Clock, LogStore
from barnabas.coordinator.metadata.log_start import decide_log_start, waits_for_followers
from barnabas.coordinator.metadata.snapshot import SnapshotId, decode_log
from barnabas.coordinator.metadata.snapshot_files import LoadedSnapshot, SnapshotFiles
from barnabas.coordinator.metadata.snapshot_schedule import SnapshotSchedule
from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings
from barnabas.protocol.errors import ApiError
from barnabas.protocol.metadata_records import MetadataRecord, encode_metadata_record
from barnabas.runtime.logging import get_logger
from barnabas.runtime.moment import Moment
from barnabas.storage.errors import InvalidDirectory, StorageError
from barnabas.storage.log.appended import Append, Appended

log = get_logger("metadata_log")

LOG_START_CHECK_MS = 60_000
"""How often to look whether the log start may move while followers hold it back."""

_READ_BYTES = 1024 * 1024


class _Capture(NamedTuple):
    """The image as it was at one moment."""

    snapshot_id: SnapshotId
    records: Sequence[MetadataRecord]
    last_written: Moment


class MetadataLog:
    """The metadata's log and snapshots in one directory; the owner of one deadline."""

    def __init__(
        self,
        store: LogStore,
        snapshots: SnapshotFiles,
        settings: SnapshotSettings,
        *,
        clock: Clock,
        start_over: Callable[[int], Awaitable[LogStore]],
    ) -> None:
        """`start_over` empties the log and lets it begin and end at an offset, for good; StorageError."""
        self.on_moved: Callable[[], None] | None = None
        """Called after records came to the log's end."""
        self.on_deadline: Callable[[int], None] | None = None
        """Called with a deadline that may not be known yet."""
        self.store = store
        self.snapshots = snapshots
        self._settings = settings
        self._clock = clock
        self._start_over = start_over
        self._schedule = SnapshotSchedule(settings)
        self._followers = Followers()
        self._image = MetadataImage()
        self._unreplayed = 0, Moment(0, 0)
        """Size (bytes) and time of the last append."""
        self._replayed = SnapshotId(0, 0)
        """Up to where the image holds the log: the snapshot that could be taken now."""
        self._last_written = Moment(0, 0)
        """When the last record in the image was written."""
        self._check_at_ms: int | None = None
        """When to look whether the followers still hold the log start back."""
        self._task: asyncio.Task[bool] | None = None

    @property
    def end_offset(self) -> int:
        """Behind the last record that the image holds."""
        return self._replayed.end_offset

    # --- records ----------------------------------------------------------------------------------

    async def load(self, image: MetadataImage) -> None:
        """Bring an empty `image` up to the end of the log.

        `InvalidDirectory` if records are missing; RecordFormatError, OSError, StorageError.
        """
        self._image = image
        snapshot = await self.snapshots.open(self._moment())
        if snapshot is not None and self._is_newer_than_log(snapshot.snapshot_id):
            await self._begin_at(snapshot.snapshot_id)
        self._check_invariants(snapshot)
        if snapshot is not None:
            self._replay_snapshot(snapshot)
        while self.end_offset < self.store.log_end_offset:
            self._replay_slice()
        await self.snapshots.delete_below(self.store.log_start_offset)

    def _is_newer_than_log(self, snapshot_id: SnapshotId) -> bool:
        store = self.store
        if snapshot_id.end_offset == store.log_start_offset == store.log_end_offset:
            return False  # The log has started over there before.
        is_later = 0 <= store.latest_leader_epoch < snapshot_id.epoch
        return is_later or snapshot_id.end_offset > store.log_end_offset

    async def _begin_at(self, snapshot_id: SnapshotId) -> None:
        log.warning(
            "the metadata log is older than its newest snapshot, and starts over at the snapshot's end",
            directory=self.snapshots.directory,
            log_end_offset=self.store.log_end_offset,
            snapshot=snapshot_id.file_name,
        )
        self.store = await self._start_over(snapshot_id.end_offset)

    def _check_invariants(self, snapshot: LoadedSnapshot | None) -> None:
        start_offset, end_offset = self.store.log_start_offset, self.store.log_end_offset
        snapshot_end_offset = 0 if snapshot is None else snapshot.snapshot_id.end_offset
        if not start_offset <= snapshot_end_offset <= end_offset:
            found = "none that can be read" if snapshot is None else snapshot.snapshot_id.file_name
            raise InvalidDirectory(
                f"{self.snapshots.directory} holds the records from {start_offset} to {end_offset}, and no "
                f"snapshot of those before them: the newest is {found}. Put the missing .checkpoint file "
                "back, or restore the whole data directory from a copy; the topics' records are untouched."
            )

    def _replay_snapshot(self, snapshot: LoadedSnapshot) -> None:
        changes = MetadataChanges()
        for record in snapshot.records:
            self._image.replay(record, changes)
        self._schedule.loaded(len(snapshot.records))
        self._replayed = snapshot.snapshot_id
        self._last_written = self._read_time(snapshot.last_timestamp_ms)

    def _replay_slice(self) -> None:
        offset = self.end_offset
        data = b"".join(self.store.read(offset, bytes_max=_READ_BYTES).buffers)
        changes = MetadataChanges()
        for batch in decode_log(data, offset):
            for record in batch.records:
                self._image.replay(record, changes)
            self._replayed = SnapshotId(batch.next_offset, batch.leader_epoch)
            self._last_written = self._read_time(batch.timestamp_ms)
        if self.end_offset == offset:
            raise InvalidDirectory(
                f"{self.snapshots.directory} holds no readable records at offset {offset}."
            )
        self._schedule.note(len(data), changes.superseded_count, self._clock.monotonic_ms())

    def _moment(self) -> Moment:
        return Moment(self._clock.monotonic_ms(), self._clock.wall_ms())

    def _read_time(self, recorded_ms: int) -> Moment:
        """The time (wall, ms) in a record of an earlier process."""
        return Moment(self._moment().monotonic_of(recorded_ms), recorded_ms)

    def become_leader(self, node_epoch: int) -> None:
        """From now on batches carry the epoch of this start."""
        self.store.leader_epoch = node_epoch

    def append(self, records: Iterable[MetadataRecord], now_ms: int) -> Append:
        """Append the changes of one decision as one batch; `replayed` follows before the next append."""
        values = [encode_metadata_record(record) for record in records]
        self._unreplayed = sum(map(len, values)), Moment(self._clock.monotonic_ms(), now_ms)
        return self.store.append_records([(None, value) for value in values], now_ms)

    def replayed(self, appended: Appended, changes: MetadataChanges) -> None:
        """The last append is in the image now: a snapshot may be due."""
        size_bytes, self._last_written = self._unreplayed
        self._replayed = SnapshotId(appended.last_offset + 1, self.store.leader_epoch)
        self._schedule.note(size_bytes, changes.superseded_count, self._clock.monotonic_ms())
        self._look_after()
        if self.on_moved is not None:
            self.on_moved()

    # --- followers --------------------------------------------------------------------------------

    def follower_heard(self, key: FollowerKey, offset: int) -> None:
        """A follower has everything below `offset`, or reads the snapshot that ends there."""
        caught_up = offset >= self.end_offset
        self._followers.heard(key, offset, self._clock.monotonic_ms(), caught_up=caught_up)
        self._look_after()

    def followers(self) -> Mapping[FollowerKey, Heard]:
        """The present followers, and the offset that each has reached."""
        return self._followers.live(self._clock.monotonic_ms())

    # --- snapshots and the log start --------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None if nothing is waited for."""
        if self._task is not None:
            return None
        deadlines_ms = (self._schedule.next_deadline_ms(), self._check_at_ms)
        return min((at_ms for at_ms in deadlines_ms if at_ms is not None), default=None)

    def expire(self, now_ms: int) -> None:
        """Do the work that is due at `now_ms`."""
        self._look_after()

    def _look_after(self) -> None:
        """Take a snapshot and move the log start, if it is time for either and nothing is under way."""
        if self._task is not None:
            return
        is_due = self._schedule.is_due(self._clock.monotonic_ms())
        if is_due or self._next_log_start() > self.store.log_start_offset:
            capture = self._capture() if is_due else None
            self._task = asyncio.get_running_loop().create_task(self._work(capture))
            self._task.add_done_callback(self._worked)
        else:
            self._wait()

    def _wait(self) -> None:
        """Nothing is due now: have `expire` called in time."""
        waits = waits_for_followers(self.snapshots.stored, self.store.log_start_offset)
        self._check_at_ms = self._clock.monotonic_ms() + LOG_START_CHECK_MS if waits else None
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is not None and self.on_deadline is not None:
            self.on_deadline(deadline_ms)

    def _capture(self) -> _Capture:
        """The image holds exactly the records below the snapshot's end: nothing is awaited here, and a record
        that is being appended isn't replayed yet.
        """
        self._schedule.begun()
        return _Capture(self._replayed, list(self._image.to_records()), self._last_written)

    async def _work(self, capture: _Capture | None) -> bool:
        """Whether the disk took all of it. After a failure only the next start takes longer."""
        try:
            if capture is not None:
                await self._write(capture)
            await self._advance_log_start()
        except (ApiError, OSError, StorageError) as error:
            log.warning(
                "no metadata snapshot was taken, or the log start was not moved",
                directory=self.snapshots.directory,
                reason=str(error),
            )
            return False
        return True

    def _worked(self, task: asyncio.Task[bool]) -> None:
        self._task = None
        if task.cancelled():
            return
        if task.result():
            self._look_after()
        else:
            self._wait()

    async def _write(self, capture: _Capture) -> None:
        """Raises OSError, StorageError."""
        try:
            # A snapshot must not outlive records that it stands for: the log would have to start over.
            await self.store.flush()
            await self.snapshots.write(*capture)
        except (OSError, StorageError):
            self._schedule.failed(self._clock.monotonic_ms())
            raise
        self._schedule.succeeded(len(capture.records))

    async def _advance_log_start(self) -> None:
        """ApiError if the log start cannot be moved; OSError, StorageError."""
        offset = self._next_log_start()
        if offset > self.store.log_start_offset:
            self.store.delete_records(offset)
            await self.snapshots.delete_below(offset)

    def _next_log_start(self) -> int:
        return decide_log_start(
            self.snapshots.stored,
            self.store.log_start_offset,
            log_bytes=self.store.size_bytes,
            replicated_offset=self._followers.replicated_offset(self._clock.monotonic_ms()),
            settings=self._settings,
            now_ms=self._clock.monotonic_ms(),
        )

    async def close(self) -> None:
        """Leave a snapshot for a quick start, if anything is new.

        No append may be under way. The log itself is closed by its owner.
        """
        while self._task is not None:
            await asyncio.wait([self._task])
        ids = self.snapshots.ids
        if not ids or self.end_offset > ids[-1].end_offset:
            await self._work(self._capture())
