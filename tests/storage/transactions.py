"""Producers with transactions for the storage tests, and a reader of committed records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, build_batch, iterate_headers, validate_produced
from barnabas.protocol.transaction_marker import read_marker_batch
from barnabas.storage.log.appended import Append
from barnabas.storage.log.partition_log import PartitionLog
from tests.storage.log_building import NOW_MS, append

LARGE = 2**30


class Producer:
    """A producer that counts its sequence; the log accepts its transactions unchecked."""

    def __init__(self, log: PartitionLog, producer_id: int, producer_epoch: int = 0) -> None:
        self.log = log
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.sequence = 0

    def send(self, count: int = 1, *, is_verified: bool = True, **options: Any) -> Append:
        """A batch of the transaction."""
        batch = transactional(
            count,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.sequence,
            **options,
        )
        batches = validate_produced(batch, message_bytes_max=LARGE, transactional_allowed=True)
        appended = self.log.append_produced(batch, batches, NOW_MS, is_verified=is_verified)
        if appended.error is None:
            self.sequence += count
        return appended

    def send_outside(self, count: int = 1) -> Append:
        """A batch outside transactions."""
        appended = append(
            self.log,
            count,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.sequence,
        )
        if appended.error is None:
            self.sequence += count
        return appended

    def end(self, *, commit: bool, coordinator_epoch: int = 0, transaction_version: int = 0) -> Append:
        """Appends the marker; from transaction version 2 on in the next epoch, which the producer uses
        afterwards.
        """
        if transaction_version >= 2:
            self.producer_epoch += 1
            self.sequence = 0
        return self.log.append_marker(
            self.producer_id,
            self.producer_epoch,
            coordinator_epoch,
            commit=commit,
            now_ms=NOW_MS,
            transaction_version=transaction_version,
        )

    def commit(self, **options: Any) -> Append:
        return self.end(commit=True, **options)

    def abort(self, **options: Any) -> Append:
        return self.end(commit=False, **options)


def transactional(
    count: int = 1, *, value: bytes | None = b"value", key: bytes | None = None, **options: Any
) -> bytes:
    """A batch of a transaction, in the form in which a client sends it."""
    return build_batch(
        0,
        [(key, value)] * count,
        leader_epoch=-1,
        timestamp_ms=NOW_MS,
        attributes=TRANSACTIONAL_FLAG,
        **options,
    )


def committed_read(log: PartitionLog, offset: int = 0, *, bytes_max: int = LARGE) -> list[int]:
    """The base offsets of the visible data for a reader of committed records, as in Kafka's clients."""
    seen: list[int] = []
    while True:
        read = log.read(offset, bytes_max=bytes_max, upper_offset=log.last_stable_offset, with_aborted=True)
        if not read.buffers:
            return seen
        data = b"".join(read.buffers)
        seen += _committed(data, read.aborted, offset)
        offset = max(header.last_offset for _, header in iterate_headers(data)) + 1


def has_open_transaction(log: PartitionLog, producer_id: int, producer_epoch: int) -> bool:
    """Whether the producer has an open transaction, by all batches of the log."""
    return any(
        entry[:2] == (producer_id, producer_epoch) and entry.transaction_first_offset >= 0
        for entry in log.active_producers()
    )


def _committed(data: bytes, aborted: Sequence[tuple[int, int]], offset: int) -> list[int]:
    waiting = sorted(aborted, key=lambda one: one[1])
    ongoing: set[int] = set()
    committed: list[int] = []
    for position, header in iterate_headers(data):
        while waiting and waiting[0][1] <= header.last_offset:
            ongoing.add(waiting.pop(0)[0])
        if header.is_control:
            end = read_marker_batch(data[position : position + header.size_bytes], header)
            if end is not None and not end.commit:
                ongoing.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ongoing) and header.last_offset >= offset:
            committed.append(header.base_offset)
    return committed
