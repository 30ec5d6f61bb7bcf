"""A metadata log in memory that the test controls, and a controller over it."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from uuid import UUID

from barnabas.coordinator.metadata.controller import Controller, Node
from barnabas.coordinator.metadata.image import ConfigResource, MetadataImage
from barnabas.coordinator.metadata.metadata_log import MetadataLog
from barnabas.coordinator.metadata.snapshot_files import SnapshotFiles
from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.metadata_records import BrokerEndpoint
from barnabas.protocol.record_batch import KeyValue, build_batch, read_header
from barnabas.protocol.varint import Buffer
from barnabas.storage.errors import LogOffline, StorageError
from barnabas.storage.filesystem import FileSystem, RealFileSystem
from barnabas.storage.log.appended import Append, Appended

WALL_START_MS = 1_700_000_000_000

NODE = Node(1, UUID(int=0xD1), (BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0),))


@dataclass
class MemorySlice:
    """The result of `MemoryLog.read`."""

    buffers: Sequence[Buffer]


@dataclass
class MemoryLog:
    """Whole batches in a list. With `held` appends wait for `release`; with `broken` they fail, with
    `fault`.
    """

    leader_epoch: int = 0
    log_start_offset: int = 0
    batches: list[bytes] = field(default_factory=list[bytes])
    held: bool = False
    broken: bool = False
    fault: StorageError = field(default_factory=lambda: LogOffline("the disk is gone"))
    flush_count: int = 0
    _waiting: list[tuple[Append, Sequence[KeyValue], int]] = field(
        default_factory=list[tuple[Append, Sequence[KeyValue], int]]
    )

    @property
    def log_end_offset(self) -> int:
        return read_header(self.batches[-1]).last_offset + 1 if self.batches else self.log_start_offset

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.batches))

    @property
    def latest_leader_epoch(self) -> int:
        return read_header(self.batches[-1]).leader_epoch if self.batches else -1

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """As a log that has seen every epoch from 0 on."""
        for batch in map(read_header, self.batches):
            if batch.leader_epoch > leader_epoch:
                return leader_epoch, batch.base_offset
        is_known = leader_epoch == self.latest_leader_epoch
        return (leader_epoch, self.log_end_offset) if is_known else (-1, -1)

    async def start_over(self, offset: int) -> "MemoryLog":
        """The same log, empty from `offset` on."""
        self.batches.clear()
        self.log_start_offset = offset
        return self

    def append_records(self, records: Sequence[KeyValue], now_ms: int) -> Append:
        append = Append()
        self._waiting.append((append, records, now_ms))
        if not self.held:
            self.release()
        return append

    def release(self) -> None:
        """End the appends that wait, in their order."""
        waiting, self._waiting = self._waiting, []
        for append, records, now_ms in waiting:
            if self.broken:
                append.fail(self.fault)
                continue
            base_offset = self.log_end_offset
            self.batches.append(
                build_batch(self.log_end_offset, records, leader_epoch=self.leader_epoch, timestamp_ms=now_ms)
            )
            append.complete(Appended(base_offset, self.log_end_offset - 1, -1, 0))

    def read(self, offset: int, *, bytes_max: int) -> MemorySlice:
        """One batch at a time, so that a reader must come back."""
        for batch in self.batches:
            if read_header(batch).last_offset >= offset:
                return MemorySlice([batch])
        return MemorySlice([])

    def delete_records(self, before_offset: int) -> int:
        self.log_start_offset = before_offset
        self.batches = [batch for batch in self.batches if read_header(batch).last_offset >= before_offset]
        return before_offset

    async def flush(self) -> None:
        self.flush_count += 1


class PlainRules:
    """Takes every setting but one called `refused`; `listed` is a list with the default `a`."""

    def check(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        if "refused" in configs:
            raise ApiError(ErrorCode.invalid_config, "refused")

    def list_default(self, resource_type: int, name: str) -> str | None:
        return "a" if name == "listed" else None


def counted_ids() -> Iterator[UUID]:
    """Ids that a test can foretell."""
    return (UUID(int=number, version=4) for number in count(1))


class HandClock:
    """Both times, which stand still until they are moved."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.wall_shift_ms = 0
        """How far the wall clock was set forward."""

    def wall_ms(self) -> int:
        return WALL_START_MS + self.now_ms + self.wall_shift_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


def metadata_log_over(
    store: MemoryLog,
    directory: Path,
    settings: SnapshotSettings | None = None,
    clock: HandClock | None = None,
    *,
    filesystem: FileSystem | None = None,
) -> MetadataLog:
    """A metadata log with its snapshots in `directory`."""
    return MetadataLog(
        store,
        SnapshotFiles(filesystem or RealFileSystem(), str(directory)),
        settings or SnapshotSettings(),
        clock=clock or HandClock(),
        start_over=store.start_over,
    )


def controller_over(
    store: MemoryLog,
    directory: Path,
    settings: SnapshotSettings | None = None,
    clock: HandClock | None = None,
    *,
    filesystem: FileSystem | None = None,
) -> Controller:
    """A controller that has not started yet."""
    ids = counted_ids()
    clock = clock or HandClock()
    return Controller(
        NODE,
        metadata_log_over(store, directory, settings, clock, filesystem=filesystem),
        PlainRules(),
        image=MetadataImage(),
        default_partition_count=3,
        new_id=lambda: next(ids),
        wall_ms=clock.wall_ms,
    )


async def settle() -> None:
    """Let the started tasks end."""
    for _ in range(20):
        await asyncio.sleep(0)
