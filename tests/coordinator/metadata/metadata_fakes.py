"""A metadata log in memory under the test's hand, and a controller over it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from uuid import UUID

from barnabas.coordinator.metadata.controller import Controller, Node
from barnabas.coordinator.metadata.image import ConfigResource, MetadataImage
from barnabas.coordinator.metadata.metadata_log import MetadataLog
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.metadata_records import BrokerEndpoint
from barnabas.protocol.record_batch import KeyValue, build_batch, read_header
from barnabas.protocol.varint import Buffer
from barnabas.storage.append import Append
from barnabas.storage.errors import LogOffline, StorageError
from barnabas.storage.filesystem import RealFileSystem

NODE = Node(1, UUID(int=0xD1), (BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0),))


@dataclass
class MemorySlice:
    """What `MemoryLog.read` answers."""

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
        return read_header(self.batches[-1]).last_offset + 1 if self.batches else 0

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
            append.base_offset = self.log_end_offset
            self.batches.append(
                build_batch(self.log_end_offset, records, leader_epoch=self.leader_epoch, timestamp_ms=now_ms)
            )
            append.complete()

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


def controller_over(
    store: MemoryLog, directory: Path, *, bytes_between_snapshots: int = 1 << 40
) -> Controller:
    """A controller that has not started yet."""
    ids = counted_ids()
    log = MetadataLog(
        store, RealFileSystem(), str(directory), bytes_between_snapshots=bytes_between_snapshots
    )
    return Controller(
        NODE,
        log,
        PlainRules(),
        image=MetadataImage(),
        default_partition_count=3,
        new_id=lambda: next(ids),
        wall_ms=lambda: 1_700_000_000_000,
    )
