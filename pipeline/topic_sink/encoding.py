"""Encodes rows into batches: one open batch for each partition, which is returned when it is full.

Each partition keeps the order of a task's rows. A batch is full with `batch_bytes` of records before
compression. A larger record makes a batch of its own, which the broker may refuse. All open batches together
have at most `OPEN_BYTES_MAX`; beyond that the largest is sent before it is full. With a `Mark`, each record
gets a header that identifies it when it is written again. A row's own header of that name, from an earlier
write, is always left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from crc32c import crc32c

from barnabas.client.cluster.topics import Topic
from barnabas.client.produce.batch_delivery import Body
from barnabas.client.produce.open_batch import NO_HEADERS, OpenBatch
from barnabas.client.produce.partitioner import KeylessTurns, partition_of_key
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.topic_sink.columns import Row, as_bytes, rows
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.varint import zigzag_varint

WRITE_HEADER: Final = "barnabas.write"
"""query id : batch id : task : row : CRC-32C of key, value and headers, in hexadecimal."""

OPEN_BYTES_MAX: Final = 64 * 1024 * 1024
"""The bound of all records of a task that wait for their batches to fill, for any number of partitions."""

_NULL: Final = b"\x01"
_MS_PER_SECOND: Final = 1000


class Mark(NamedTuple):
    """The write that these rows belong to: the beginning of the header."""

    query_id: str
    batch_id: int
    task: int


class EncodedBatch(NamedTuple):
    """A batch for a partition."""

    topic: str
    partition: TopicIdPartition
    body: Body


class _Open(OpenBatch):
    """A partition's batch that is being filled."""

    __slots__ = ("first_row",)

    def __init__(self, first_row: int, base_timestamp_ms: int) -> None:
        super().__init__(base_timestamp_ms)
        self.first_row = first_row


class Encoder:
    """One task's rows."""

    def __init__(
        self, task: int, batch_bytes: int, compression: Compression, mark: Mark | None, topic: str | None
    ) -> None:
        """`topic` is the topic of all rows; None if the rows have it in a column."""
        self._batch_bytes = batch_bytes
        self._compression = compression
        self._prefix = None if mark is None else f"{mark.query_id}:{mark.batch_id}:{mark.task}:"
        self._topic = topic
        self._turns = KeylessTurns(task)
        self._open: dict[tuple[str, int], _Open] = {}
        self._open_bytes = 0
        self._topics: dict[str, Topic] = {}
        self.row_count = 0

    def add(self, batch: RecordBatch, topics: Mapping[str, Topic]) -> Iterator[EncodedBatch]:
        """Encodes the rows of a batch; yields the batches that become full."""
        self._topics.update(topics)
        now_ms = int(time.time() * _MS_PER_SECOND)
        for row in rows(batch, self._topic):
            topic = self._topics[row.topic or ""]
            key = topic.name, self._partition(topic, row)
            while self._is_full(key, row):
                yield self._close(key)
                if row.key is None:
                    self._turns.next(topic.name)
                    key = topic.name, self._partition(topic, row)
            self._take(key, row, now_ms)
            if self._open_bytes > OPEN_BYTES_MAX:
                yield self._close(max(self._open, key=lambda partition: self._open[partition].size_bytes))

    def finish(self) -> Iterator[EncodedBatch]:
        """The batches that are not full."""
        for key in list(self._open):
            yield self._close(key)

    def _partition(self, topic: Topic, row: Row) -> int:
        if row.partition is not None:
            if not 0 <= row.partition < topic.partition_count:
                raise PipelineError(
                    f"Row {self.row_count} names partition {row.partition} of {topic.name}, "
                    f"which has {topic.partition_count}."
                )
            return row.partition
        if row.key is not None:
            return partition_of_key(row.key, topic.partition_count)
        return self._turns.current(topic.name, topic.partition_count)

    def _is_full(self, key: tuple[str, int], row: Row) -> bool:
        """Whether a row doesn't fit into its partition's batch, as far as key and value tell."""
        batch = self._open.get(key)
        row_bytes = len(row.key or b"") + len(row.value or b"")
        return batch is not None and batch.size_bytes + row_bytes > self._batch_bytes

    def _take(self, key: tuple[str, int], row: Row, now_ms: int) -> None:
        """Appends a row to its batch."""
        timestamp_ms = now_ms if row.timestamp_ms is None else row.timestamp_ms
        batch = self._open.get(key)
        if batch is None:
            batch = self._open[key] = _Open(self.row_count, timestamp_ms)
        self._open_bytes += batch.add(timestamp_ms, row.key, row.value, self._headers(row))
        self.row_count += 1

    def _headers(self, row: Row) -> bytes:
        given = row.headers or ()
        if self._prefix is None and not given:
            return NO_HEADERS
        # A mark in the row is of an earlier write: two rows made of one record would both have it.
        encoded = [
            self._header(header) for header in given if header is None or header["key"] != WRITE_HEADER
        ]
        if self._prefix is None:
            return zigzag_varint(len(encoded)) + b"".join(encoded)
        checksum = crc32c(b"".join(encoded), crc32c(row.value or b"", crc32c(row.key or b"")))
        mark = f"{self._prefix}{self.row_count}:{checksum:08x}".encode()
        return b"".join((zigzag_varint(len(encoded) + 1), *encoded, _header(WRITE_HEADER, mark)))

    def _header(self, given: Any) -> bytes:
        if given is None or given["key"] is None:
            raise PipelineError(f"Row {self.row_count} of the task has a header without a key.")
        return _header(given["key"], as_bytes(given["value"]))

    def _close(self, key: tuple[str, int]) -> EncodedBatch:
        batch = self._open.pop(key)
        self._open_bytes -= batch.size_bytes
        topic, partition = key
        body = batch.body(self._compression, _label(batch.first_row, len(batch)))
        return EncodedBatch(topic, TopicIdPartition(self._topics[topic].topic_id, partition), body)


def _header(name: str, value: bytes | None) -> bytes:
    encoded = name.encode()
    return b"".join(
        (
            zigzag_varint(len(encoded)),
            encoded,
            _NULL if value is None else zigzag_varint(len(value)) + value,
        )
    )


def _label(first_row: int, count: int) -> str:
    if count == 1:
        return f"the record of the task's row {first_row}"
    return f"a batch of {count} records from the task's row {first_row} on"


def partitions_by_topic(batches: Sequence[EncodedBatch]) -> dict[str, set[int]]:
    """The destination of batches."""
    found: dict[str, set[int]] = {}
    for batch in batches:
        found.setdefault(batch.topic, set()).add(batch.partition.partition)
    return found
