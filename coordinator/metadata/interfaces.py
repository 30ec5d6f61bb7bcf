"""The needs of the metadata log: the log that holds its records, and the time."""

from collections.abc import Sequence
from typing import Protocol

from barnabas.protocol.record_batch import KeyValue
from barnabas.protocol.varint import Buffer
from barnabas.storage.log.appended import Append


class Slice(Protocol):
    """Whole batches read from a log, in pieces."""

    @property
    def buffers(self) -> Sequence[Buffer]: ...


class LogStore(Protocol):
    """The log, which `storage.log.PartitionLog` implements.

    `leader_epoch` is set once, when the node's epoch of this start is known; later appends carry it.
    """

    @property
    def leader_epoch(self) -> int: ...

    @leader_epoch.setter
    def leader_epoch(self, leader_epoch: int, /) -> None: ...

    @property
    def latest_leader_epoch(self) -> int: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    def append_records(self, records: Sequence[KeyValue], now_ms: int) -> Append: ...

    def read(self, offset: int, *, bytes_max: int) -> Slice: ...

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]: ...

    def delete_records(self, before_offset: int) -> int: ...

    async def flush(self) -> None: ...


class Clock(Protocol):
    """Wall time for stored times, monotonic time for waits; both in ms."""

    def wall_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...
