"""Appends that wait for their turn, and the group that is written together.

An append is planned when all appends before it are written or planned. Only then are its offsets known, its
producer's sequence checked and, for share state, its batch encoded. Appends that are planned together are one
write. Batches of clients get a new prefix of 16 bytes with base offset and leader epoch; the rest is written
directly from the request's buffer. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    TRANSACTIONAL_FLAG,
    KeyValue,
    ProducedBatch,
    build_batch,
    log_append_time_header,
    patched_prefix,
    read_header,
)
from barnabas.protocol.transaction_marker import TransactionEnd, build_marker_batch
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer
from barnabas.runtime.completion import Completion
from barnabas.storage.log.appended import Append, Appended
from barnabas.storage.producers.open_transactions import TransactionBegun, TransactionStep
from barnabas.storage.producers.producer_state import (
    ProducedSequence,
    ProducerEntry,
    ProducerState,
    check_epoch,
    entry_after,
    entry_after_marker,
    find_duplicate,
    transaction_step,
)
from barnabas.storage.producers.transaction_checks import check_marker, check_produced
from barnabas.storage.segments.control_batch import ControlBatch
from barnabas.storage.state.newest_batches import BATCH_BYTES_MAX

PREFIX_BYTES: Final = 16
_RECORD_OVERHEAD_BYTES: Final = 24
"""An upper estimate of a record's bytes beside a small key and value."""
_MARKER_BYTES: Final = 78
"""The exact size of a transaction's marker."""
_CONTROL_BYTES: Final = 256
"""An estimate for share state, whose size is known only once it is encoded."""


class PlannedBatch(NamedTuple):
    """A batch with its place in the log; `control` if it is share state, which has no timestamp."""

    size_bytes: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    control: ControlBatch | None
    data: bytes | None
    """The bytes of a small batch that is not share state."""


_new_planned, _new_appended = maker(PlannedBatch), maker(Appended)


class AppendGroup:
    """The content of the next write, in the order of the log."""

    __slots__ = (
        "_known_producers",
        "appends",
        "batches",
        "buffers",
        "leader_epoch",
        "log_append_time",
        "next_offset",
        "producers",
        "size_bytes",
        "steps",
        "written",
    )

    def __init__(
        self, next_offset: int, leader_epoch: int, known_producers: ProducerState, *, log_append_time: bool
    ) -> None:
        self.next_offset = next_offset
        self.leader_epoch = leader_epoch
        self.log_append_time = log_append_time
        self.buffers: list[Buffer] = []
        self.batches: list[PlannedBatch] = []
        self.appends: list[PendingAppend] = []
        self.written = False
        """Whether all of it is in the file, durable or not."""
        self.producers: dict[int, ProducerEntry] = {}
        """The producers' entries after the group is written."""
        self.steps: list[TransactionStep] = []
        """The beginnings and ends of their transactions, in the order of the log."""
        self.size_bytes = 0
        self._known_producers = known_producers

    def producer(self, producer_id: int) -> ProducerEntry | None:
        """The producer's entry after the group is written."""
        return self.producers.get(producer_id) or self._known_producers.get(producer_id)

    def note_producer(
        self,
        producer_id: int,
        before: ProducerEntry | None,
        after: ProducerEntry,
        *,
        is_aborted: bool = False,
    ) -> None:
        """Records the producer's entry after its batch at `next_offset`."""
        self.producers[producer_id] = after
        step = transaction_step(producer_id, before, after, self.next_offset, is_aborted=is_aborted)
        if step is not None:
            self.steps.append(step)

    def add(
        self, buffers: Sequence[Buffer], size_bytes: int, last_offset: int, max_timestamp_ms: int
    ) -> None:
        """Adds a batch of data or a marker at `next_offset`; its bytes hold this base offset."""
        data = None
        if size_bytes <= BATCH_BYTES_MAX:
            data = b"".join(buffers)
            self.buffers.append(data)
        else:
            self.buffers += buffers
        self.batches.append(
            _new_planned((size_bytes, self.next_offset, last_offset, max_timestamp_ms, None, data))
        )
        self.size_bytes += size_bytes
        self.next_offset = last_offset + 1

    def add_control(self, control: ControlBatch) -> None:
        """Adds a batch of share state, encoded for `next_offset` and `leader_epoch`."""
        data, last_offset = control.data, self.next_offset + control.last_offset_delta
        self.buffers.append(data)
        self.batches.append(_new_planned((len(data), self.next_offset, last_offset, -1, control, None)))
        self.size_bytes += len(data)
        self.next_offset = last_offset + 1


class PendingAppend(Protocol):
    """An append that waits; its size and its count of offsets may be estimates.

    First `plan` is called, then `written` or `failed`. If it is never planned, only `failed` is called.
    """

    size_bytes: int
    offset_count: int
    timestamp_ms: int
    """The largest timestamp of its records, which decides the roll of a segment; -1 without a timestamp."""

    def plan(self, group: AppendGroup) -> None:
        """Join the group, or raise and leave the group unchanged."""
        ...

    def written(self, log_start_offset: int) -> None:
        """The group is written, and the log's state includes it."""
        ...

    def failed(self, error: Exception) -> None:
        """The append failed; none of its records may be relied on."""
        ...


class _LogAppend:
    """An append whose caller holds a completion."""

    __slots__ = ("_base_offset", "_last_offset", "_log_append_time_ms", "appended")

    def __init__(self) -> None:
        self.appended: Append = Completion()
        self._base_offset = self._last_offset = self._log_append_time_ms = -1

    def written(self, log_start_offset: int) -> None:
        """See `PendingAppend`."""
        self.appended.complete(
            _new_appended((self._base_offset, self._last_offset, self._log_append_time_ms, log_start_offset))
        )

    def failed(self, error: Exception) -> None:
        """See `PendingAppend`."""
        self.appended.fail(error)


class ProducedAppend(_LogAppend):
    """Batches of a client, checked by `validate_produced`.

    `plan` raises ApiError for a sequence out of order, or a transaction that is not open.
    """

    __slots__ = (
        "_batches",
        "_from_zero",
        "_has_producer",
        "_is_verified",
        "_now_ms",
        "_records",
        "offset_count",
        "size_bytes",
        "timestamp_ms",
    )

    def __init__(
        self,
        records: Buffer,
        batches: Sequence[ProducedBatch],
        now_ms: int,
        *,
        is_verified: bool = False,
        from_zero: bool = False,
    ) -> None:
        self.appended = Completion()
        self._base_offset = self._last_offset = self._log_append_time_ms = -1
        self.size_bytes = len(records)
        self.offset_count = 0
        self.timestamp_ms = -1
        self._has_producer = False
        for _, header in batches:
            self.offset_count += header.last_offset_delta + 1
            if header.max_timestamp_ms > self.timestamp_ms:
                self.timestamp_ms = header.max_timestamp_ms
            if header.producer_id >= 0:
                self._has_producer = True
        self._records = records
        self._batches = batches
        self._now_ms = now_ms
        self._is_verified = is_verified
        self._from_zero = from_zero

    def plan(self, group: AppendGroup) -> None:
        duplicate = self._take_in_sequence(group) if self._has_producer else None
        group.appends.append(self)
        if duplicate is not None:
            self._base_offset, self._last_offset = duplicate.base_offset, duplicate.last_offset
            self._log_append_time_ms = duplicate.timestamp_ms
            return
        self._base_offset = group.next_offset
        view = memoryview(self._records)
        for batch in self._batches:
            position, header = batch
            last_offset = group.next_offset + header.last_offset_delta
            end = position + LOG_OVERHEAD + header.batch_length
            if group.log_append_time:
                head = log_append_time_header(
                    self._records, batch, group.next_offset, group.leader_epoch, self._now_ms
                )
                rest, timestamp_ms = view[position + HEADER_BYTES : end], self._now_ms
            else:
                head = patched_prefix(header, group.next_offset, group.leader_epoch)
                rest, timestamp_ms = view[position + PREFIX_BYTES : end], header.max_timestamp_ms
            group.add((head, rest), end - position, last_offset, timestamp_ms)
        self._last_offset = group.next_offset - 1
        if group.log_append_time:
            self._log_append_time_ms = self._now_ms

    def _take_in_sequence(self, group: AppendGroup) -> ProducedSequence | None:
        """Gives the group the entries of the producers, or returns the earlier batch if this one is a
        duplicate.
        """
        producers: dict[int, ProducerEntry] = {}
        steps: list[TransactionStep] = []
        next_offset = group.next_offset
        for _, header in self._batches:
            if header.producer_id >= 0:
                known = producers.get(header.producer_id) or group.producer(header.producer_id)
                if (duplicate := find_duplicate(known, header)) is not None:
                    return duplicate
                check_produced(known, header, is_verified=self._is_verified, from_zero=self._from_zero)
                timestamp_ms = self._now_ms if group.log_append_time else header.max_timestamp_ms
                after = entry_after(known, header, next_offset, timestamp_ms)
                if after.transaction_first_offset == next_offset:
                    steps.append(TransactionBegun(header.producer_id, next_offset))
                producers[header.producer_id] = after
            next_offset += header.last_offset_delta + 1
        group.producers.update(producers)
        group.steps += steps
        return None


class RecordsAppend(_LogAppend):
    """Records of the broker itself as one batch. With a producer they are part of its transaction, unchecked.

    `plan` raises ApiError, INVALID_PRODUCER_EPOCH, if a newer epoch has fenced the producer meanwhile.
    """

    __slots__ = ("_producer", "_records", "offset_count", "size_bytes", "timestamp_ms")

    def __init__(
        self, records: Sequence[KeyValue], now_ms: int, producer: ProducerIdentity | None = None
    ) -> None:
        assert records, "a batch has at least one record"
        super().__init__()
        self.offset_count = len(records)
        self.timestamp_ms = now_ms
        self.size_bytes = HEADER_BYTES + sum(
            _RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"") for key, value in records
        )
        self._producer = producer
        self._records = records

    def plan(self, group: AppendGroup) -> None:
        data = self._build(group)
        if self._producer is not None:
            header = read_header(data)
            known = group.producer(header.producer_id)
            check_epoch(known, *self._producer)
            after = entry_after(known, header, group.next_offset, self.timestamp_ms)
            group.note_producer(header.producer_id, known, after)
        self._base_offset = group.next_offset
        self._last_offset = group.next_offset + self.offset_count - 1
        group.add((data,), len(data), self._last_offset, self.timestamp_ms)
        group.appends.append(self)

    def _build(self, group: AppendGroup) -> bytes:
        offset, epoch, timestamp_ms = group.next_offset, group.leader_epoch, self.timestamp_ms
        if self._producer is None:
            return build_batch(offset, self._records, leader_epoch=epoch, timestamp_ms=timestamp_ms)
        return build_batch(
            offset,
            self._records,
            leader_epoch=epoch,
            timestamp_ms=timestamp_ms,
            attributes=TRANSACTIONAL_FLAG,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
        )


class MarkerAppend(_LogAppend):
    """The end of a producer's transaction; `plan` raises ApiError as `check_marker` does."""

    __slots__ = (
        "_end",
        "_producer",
        "_transaction_version",
        "offset_count",
        "size_bytes",
        "timestamp_ms",
    )

    def __init__(
        self, producer: ProducerIdentity, end: TransactionEnd, now_ms: int, *, transaction_version: int
    ) -> None:
        super().__init__()
        self.offset_count = 1
        self.timestamp_ms = now_ms
        self.size_bytes = _MARKER_BYTES
        self._producer = producer
        self._end = end
        self._transaction_version = transaction_version

    def plan(self, group: AppendGroup) -> None:
        known = group.producer(self._producer.producer_id)
        check_marker(known, self._producer, transaction_version=self._transaction_version)
        data = build_marker_batch(
            group.next_offset,
            self._producer,
            self._end,
            leader_epoch=group.leader_epoch,
            timestamp_ms=self.timestamp_ms,
            attributes=LOG_APPEND_TIME_FLAG if group.log_append_time else 0,
        )
        after = entry_after_marker(known, self._producer.producer_epoch, self._end, self.timestamp_ms)
        group.note_producer(self._producer.producer_id, known, after, is_aborted=not self._end.commit)
        self._base_offset = self._last_offset = group.next_offset
        group.add((data,), len(data), group.next_offset, self.timestamp_ms)
        group.appends.append(self)


class ControlAppend:
    """The base of an append of share state; a subclass implements the steps of `PendingAppend`.

    Its size is known only when it is planned.
    """

    __slots__ = ()

    size_bytes: int = _CONTROL_BYTES
    offset_count: int = 1
    timestamp_ms: int = -1

    def plan(self, group: AppendGroup) -> None:
        raise NotImplementedError

    def written(self, log_start_offset: int) -> None:
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        raise NotImplementedError
