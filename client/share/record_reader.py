"""Turns a fetched partition into records: deserialises values, and separates unreadable records."""

from __future__ import annotations

import logging
from typing import Generic, NamedTuple

from barnabas.client.record_content import Content, Deserializers, KeyT, ValueT
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.client.share.acquired_records import DeliveredRecord, read_acquired
from barnabas.client.share.held_record import ONE_RUN, HeldRecord, Run
from barnabas.client.share.options import Unreadable
from barnabas.client.share.record import Holder, ShareRecord
from barnabas.protocol.counted import counted
from barnabas.protocol.encode.share_fetch import ShareFetchPartitionResult
from barnabas.protocol.extended.runs import RunKind, Runs
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys import key_hash

log = logging.getLogger(__name__)


class Delivery(NamedTuple):
    """The origin and the time of delivered records. Times are those of the event loop."""

    topic: str
    partition: TopicIdPartition
    received_at_ms: int
    lock_ms: int


class ReadRecords(NamedTuple, Generic[KeyT, ValueT]):
    """The records for readers, and the acquired offsets without a readable record."""

    records: list[ShareRecord[KeyT, ValueT]]
    gaps: list[int]
    unreadable: list[int]
    refused: list[HeldRecord]
    """Those of the unreadable records that a deserializer has refused."""


class RecordReader(Generic[KeyT, ValueT]):
    """Reads the records of one consumer."""

    def __init__(self, deserializers: Deserializers[KeyT, ValueT], unreadable: Unreadable) -> None:
        """`unreadable` decides how unreadable records are acknowledged."""
        self._deserializers = deserializers
        self._unreadable = unreadable

    @property
    def verdict(self) -> AcknowledgeType:
        """The acknowledgement of unreadable records."""
        return AcknowledgeType.REJECT if self._unreadable == "reject" else AcknowledgeType.RELEASE

    def read(
        self, result: ShareFetchPartitionResult, delivery: Delivery, holder: Holder
    ) -> ReadRecords[KeyT, ValueT]:
        """One partition's records. Each unreadable batch and each unreadable record is logged in one line."""
        acquired = read_acquired(result.records, result.acquired)
        read = ReadRecords[KeyT, ValueT]([], acquired.gaps, [], [])
        for batch in acquired.unreadable:
            read.unreadable.extend(batch.offsets)
            self._log(delivery, counted(len(batch.offsets), "record"), batch.reason)
        for delivered in acquired.records:
            run = _run_of(delivered.record.key, result.runs)
            try:
                read.records.append(self._make(delivered, delivery, holder, run))
            except Exception as error:
                offset, delivery_count = delivered.record.offset, delivered.delivery_count
                read.unreadable.append(offset)
                read.refused.append(HeldRecord(delivery.partition, offset, delivery_count, 0, 0, run))
                self._log(delivery, f"the record at {delivered.record.offset}", repr(error))
        return read

    def _make(
        self, delivered: DeliveredRecord, delivery: Delivery, holder: Holder, run: Run | None
    ) -> ShareRecord[KeyT, ValueT]:
        record = delivered.record
        content = Content(
            record.timestamp_ms,
            self._deserializers.key(record.key),
            self._deserializers.value(record.value),
            record.headers,
        )
        received_at_ms = delivery.received_at_ms
        return ShareRecord(
            delivery.topic,
            delivery.partition,
            record.offset,
            delivered.delivery_count,
            received_at_ms,
            received_at_ms + delivery.lock_ms,
            content,
            holder,
            run,
        )

    def _log(self, delivery: Delivery, unreadable: str, reason: str) -> None:
        log.error(
            "%s-%d: %s cannot be read, and will be %s: %s",
            delivery.topic,
            delivery.partition.partition,
            unreadable,
            "rejected" if self._unreadable == "reject" else "released",
            reason,
        )


def _run_of(key: bytes | None, runs: Runs | None) -> Run | None:
    """The run of a record with this key, if it is in one."""
    if runs is None:
        return None
    kind, delivery_count_limit = runs
    if kind is RunKind.ALL:
        return Run(ONE_RUN, delivery_count_limit)
    return None if key is None else Run(key_hash(key), delivery_count_limit)
