"""Writes Arrow batches of records to one partition, in their order and each once, for a synchronous caller.

Keys, values, headers and timestamps stay unchanged; the topic's settings decide about the type of timestamp.
A batch whose response is lost is sent again with the same sequence (see `client.produce.batch_delivery`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from typing import Final

from barnabas.client.errors import ProduceError
from barnabas.client.produce.batch_delivery import Body
from barnabas.client.produce.batch_writer import BatchWriter
from barnabas.client.produce.transactions import Transactions
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.servers import Servers
from barnabas.protocol.counted import counted
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import HEADER_BYTES, Compression
from barnabas.protocol.records import Record, encode_records

BATCH_RECORDS: Final = 10_000

_US_PER_MS: Final = 1_000
_TOO_LARGE: Final = frozenset({ErrorCode.message_too_large, ErrorCode.record_list_too_large})


class RecordWriter:
    """Writes to one partition. `flush` and `close` it."""

    def __init__(self, servers: Servers, topic: str, partition: TopicIdPartition, batch_bytes: int) -> None:
        """`batch_bytes` bounds the records of a batch. It connects when it sends the first one."""
        self._topic = topic
        self._partition = partition
        self._batch_bytes = batch_bytes
        self._loop = asyncio.new_event_loop()
        self._cluster = servers.cluster()
        self._producer: BatchWriter | None = None
        self._gathered: list[Record] = []
        self._gathered_bytes = 0

    def write(self, batch: RecordBatch) -> None:
        """Adds records, and sends full batches.

        Raises `PipelineError` for a record that the topic refuses, and the client's errors.
        """
        for record in _records(batch):
            size_bytes = _size_bytes(record)
            if self._gathered_bytes + size_bytes > self._batch_bytes or len(self._gathered) == BATCH_RECORDS:
                self._send()
            self._gathered.append(record)
            self._gathered_bytes += size_bytes

    def flush(self) -> None:
        """Returns when the broker has all records; raises the errors of `write`."""
        self._send()
        if self._producer is not None:
            self._run(self._producer.flush())

    def close(self) -> None:
        """Closes the connections. Records that were not flushed are lost."""
        if self._producer is not None:
            self._producer.close()
        self._cluster.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _send(self) -> None:
        if self._gathered:
            self._run(self._deliver(self._gathered))
        self._gathered, self._gathered_bytes = [], 0

    async def _deliver(self, records: Sequence[Record]) -> None:
        if self._producer is None:
            self._producer = await self._become_producer()
        await self._producer.write(self._topic, self._partition, _body(records))

    async def _become_producer(self) -> BatchWriter:
        transactions = Transactions(self._cluster)
        try:
            return BatchWriter(self._cluster, await transactions.begin_idempotent())
        finally:
            transactions.close()

    def _run(self, step: Awaitable[None]) -> None:
        try:
            self._loop.run_until_complete(step)
        except ProduceError as error:
            if error.code not in _TOO_LARGE:
                raise
            raise PipelineError(f"{error}. Raise the topic's max.message.bytes.") from error


def _records(batch: RecordBatch) -> Iterator[Record]:
    columns = (batch.column(name).to_pylist() for name in ("key", "value", "headers"))
    times = batch.column("timestamp").cast("int64").to_pylist()
    for time_us, key, value, headers in zip(times, *columns, strict=True):
        pairs = tuple((header["key"], header["value"]) for header in headers or ())
        yield Record(0, time_us // _US_PER_MS, key, value, pairs)


def _body(records: Sequence[Record]) -> Body:
    numbered = [record._replace(offset=number) for number, record in enumerate(records)]
    times = [record.timestamp_ms for record in records]
    return Body(
        records=encode_records(numbered)[HEADER_BYTES:],
        compression=Compression.NONE,
        record_count=len(records),
        base_timestamp_ms=times[0],
        max_timestamp_ms=max(times),
        label=f"a batch of {counted(len(records), 'record')}",
    )


def _size_bytes(record: Record) -> int:
    """The approximate size of the record on the wire."""
    headers = sum(len(name) + len(value or b"") + 4 for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + 16
