"""Reads ranges of one partition's offsets as record batches, without decoding them.

    reader = TopicReader(cluster)
    async for fetched in reader.read(partition, [(0, 999), (5_000, 5_999)]):
        decode(fetched.records, fetched.aborted)

Ranges are (first offset, last offset), both inclusive, ascending and disjoint. The result is whole batches
with all records of the ranges that the log has, in its order. Batches are never cut, so they also contain
records outside the ranges, which the caller must drop. Offsets may be missing: transaction markers, the state
of share groups and compaction leave offsets without records.

While the caller decodes one answer, the next fetch is outstanding. The reader retries while the leader
changes, a broker restarts or a connection breaks, up to `Retries.give_up_ms` without progress. An offset that
the log does not hold (any more) raises `RecordsGoneError`, a deleted topic `TopicGoneError`; nothing is
skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.leaders import Leaders
from barnabas.client.cluster.metadata import Leader
from barnabas.client.cluster.topics import EARLIEST, LATEST, TOPIC_GONE_MS, Isolation, Topics
from barnabas.client.errors import (
    BrokerUnavailableError,
    RecordsGoneError,
    TopicGoneError,
    UnknownTopicError,
    broker_error,
    error_code,
)
from barnabas.client.waiting.patience import Patience, Retries
from barnabas.protocol.client.consumer_apis import FETCH
from barnabas.protocol.client.fetch_request import FetchBody, FetchedPartition
from barnabas.protocol.client.fetch_response import FetchReply
from barnabas.protocol.encode.fetch import FetchPartitionResult
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import BATCH_SPAN, HEADER_BYTES, LOG_OVERHEAD
from barnabas.protocol.varint import Buffer

FETCH_BYTES_MIN: Final = 64 * 1024
"""The least that one fetch asks for, even if fewer bytes are needed."""
FIRST_GUESS_BYTES: Final = 1024.0
"""The assumed bytes per offset before the first records have arrived."""
MARGIN: Final = 1.25
"""A fetch asks for the expected size times this factor."""

_EMPTY: Final = memoryview(b"")


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """How to read. Sizes are in bytes, durations in milliseconds."""

    isolation: Isolation = Isolation.READ_UNCOMMITTED
    fetch_bytes: int = 4 * 1024 * 1024
    """The most that one fetch asks for; a larger batch is still returned whole."""
    max_wait_ms: int = 500
    """How long the broker waits for records that do not exist yet."""
    retries: Retries = field(default_factory=Retries)


class FetchedRecords(NamedTuple):
    """The batches of one answer."""

    records: memoryview
    """Whole batches, one after the other, at least one."""
    aborted: Sequence[tuple[int, int]]
    """(producer id, first offset) of the aborted transactions that have records here; only when reading
    committed records."""
    next_offset: int
    """The offset after the last batch."""
    log_start_offset: int
    end_offset: int
    """The end of the readable records: the last stable offset when reading committed records, else the high
    watermark."""


class TopicReader:
    """Reads from any number of partitions, one series of ranges at a time. Call `close` once."""

    def __init__(self, cluster: Cluster, settings: ReadSettings | None = None) -> None:
        """The cluster stays open when this is closed."""
        self._cluster = cluster
        self._settings = settings or ReadSettings()
        self._leaders = Leaders(cluster)

    @property
    def isolation(self) -> Isolation:
        return self._settings.isolation

    def close(self) -> None:
        self._leaders.close()

    async def read(
        self, partition: TopicIdPartition, ranges: Sequence[tuple[int, int]]
    ) -> AsyncGenerator[FetchedRecords]:
        """The batches that hold the records of these ranges; see above.

        Raises `RecordsGoneError`, `TopicGoneError`, `BrokerError` for a lasting error, and
        `BrokerUnavailableError` if nothing arrived for too long.
        """
        patience = self._settings.retries.patience()
        wanted = _Wanted(ranges, self._settings.fetch_bytes)
        answer: asyncio.Future[FetchReply] | None = None
        try:
            while not wanted.is_done:
                answer = answer or await self._fetch(partition, wanted, patience)
                fetched = await self._take(partition, wanted, answer, patience)
                answer = None
                if fetched is None:
                    continue
                patience.reset()
                wanted.note(fetched)
                answer = self._fetch_ahead(partition, wanted)
                yield fetched
        finally:
            if answer is not None:
                answer.cancel()

    def _fetch_ahead(self, partition: TopicIdPartition, wanted: _Wanted) -> asyncio.Future[FetchReply] | None:
        """Send the next fetch if a connection is open."""
        connection = self._leaders.connected(partition)
        if wanted.is_done or connection is None:
            return None
        return connection.start(FETCH, self._body(partition, wanted), wait_ms=self._settings.max_wait_ms)

    async def _fetch(
        self, partition: TopicIdPartition, wanted: _Wanted, patience: Patience
    ) -> asyncio.Future[FetchReply]:
        while True:
            try:
                connection = await self._leaders.connection(partition)
                return connection.start(
                    FETCH, self._body(partition, wanted), wait_ms=self._settings.max_wait_ms
                )
            except TopicGoneError as error:
                await patience.pause(error, give_up_ms=TOPIC_GONE_MS)
            except BrokerUnavailableError as error:
                await patience.pause(error)

    def _body(self, partition: TopicIdPartition, wanted: _Wanted) -> FetchBody:
        fetched = FetchedPartition(partition, wanted.offset, wanted.bytes)
        return FetchBody(self._settings.max_wait_ms, 1, wanted.bytes, self._settings.isolation, [fetched])

    async def _take(
        self,
        partition: TopicIdPartition,
        wanted: _Wanted,
        answer: asyncio.Future[FetchReply],
        patience: Patience,
    ) -> FetchedRecords | None:
        """The batches of an answer; None, after a pause, if the fetch should be repeated."""
        try:
            result = _result(await answer)
        except BrokerUnavailableError as error:
            self._leaders.mark_stale(partition)
            await patience.pause(error)
            return None
        code = error_code(result.error_code)
        if code is ErrorCode.none:
            fetched = _fetched(result, self._settings.isolation)
            if fetched is not None and fetched.next_offset > wanted.offset:
                return fetched
            wanted.note_nothing()
            await patience.pause(self._nothing(partition, wanted.offset, result))
            return None
        await self._refused(partition, wanted.offset, code, answer.result(), patience)
        return None

    def _nothing(
        self, partition: TopicIdPartition, offset: int, result: FetchPartitionResult
    ) -> BrokerUnavailableError:
        end_offset = _end_offset(result, self._settings.isolation)
        name = self._name(partition)
        return BrokerUnavailableError(
            f"{name}-{partition.partition} has no records from offset {offset} on; it ends at {end_offset}."
        )

    async def _refused(
        self,
        partition: TopicIdPartition,
        offset: int,
        code: ErrorCode,
        reply: FetchReply,
        patience: Patience,
    ) -> None:
        if code is ErrorCode.offset_out_of_range:
            await self._out_of_range(partition, offset, patience)
            return
        if not code.retriable:
            raise broker_error(code, f"{self._name(partition)}-{partition.partition} cannot be read")
        leader = _result(reply).current_leader
        self._leaders.mark_stale(partition, None if leader is None else Leader(*leader), reply.node_endpoints)
        name = self._name(partition)
        await patience.pause(
            BrokerUnavailableError(f"{name}-{partition.partition} cannot be read at the moment: {code.name}.")
        )

    async def _out_of_range(self, partition: TopicIdPartition, offset: int, patience: Patience) -> None:
        """Raise the range that the log holds; if the log holds the offset by now, pause and return."""
        name = self._name(partition)
        topics = Topics(self._cluster, self._settings.retries)
        try:
            await topics.find([name])
            starts = await topics.offsets([partition], EARLIEST)
            ends = await topics.offsets([partition], LATEST)
        except UnknownTopicError as error:
            raise TopicGoneError(partition.topic_id, name) from error
        finally:
            topics.close()
        start, end = starts[partition] or 0, ends[partition] or 0
        gone = RecordsGoneError(name, partition.partition, offset, start, end)
        if not start <= offset < end:
            raise gone
        await patience.pause(gone)

    def _name(self, partition: TopicIdPartition) -> str:
        return self._cluster.view.topic_name(partition.topic_id) or str(partition.topic_id)


class _Wanted:
    """The rest of the ranges, and how many bytes the next fetch asks for."""

    def __init__(self, ranges: Sequence[tuple[int, int]], fetch_bytes: int) -> None:
        self._ranges = list(reversed(ranges))
        self._fetch_bytes = fetch_bytes
        self._bytes_per_offset = FIRST_GUESS_BYTES
        self.offset = ranges[0][0] if ranges else 0

    @property
    def is_done(self) -> bool:
        return not self._ranges

    @property
    def bytes(self) -> int:
        """The expected size of the current range's rest, if its records are like the last ones."""
        rest = self._ranges[-1][1] + 1 - self.offset
        return min(self._fetch_bytes, max(FETCH_BYTES_MIN, int(rest * self._bytes_per_offset * MARGIN)))

    def note(self, fetched: FetchedRecords) -> None:
        """Batches arrived: continue after them, in the next range that reaches that far."""
        self._bytes_per_offset = len(fetched.records) / max(fetched.next_offset - self.offset, 1)
        while self._ranges and self._ranges[-1][1] < fetched.next_offset:
            self._ranges.pop()
        if self._ranges:
            self.offset = max(fetched.next_offset, self._ranges[-1][0])

    def note_nothing(self) -> None:
        """No whole batch arrived: ask for the most that is allowed."""
        self._bytes_per_offset = float(self._fetch_bytes)


def _result(reply: FetchReply) -> FetchPartitionResult:
    """The partition's result. Raises `BrokerUnavailableError` if the response contains no partition."""
    for topic in reply.topics:
        for result in topic.partitions:
            return result
    code = error_code(reply.error_code)
    raise BrokerUnavailableError(f"A fetch was not answered: {code.name}.")


def _fetched(result: FetchPartitionResult, isolation: Isolation) -> FetchedRecords | None:
    """The whole batches of a result; None if there is none."""
    records = memoryview(result.records[0]) if result.records else _EMPTY
    size_bytes, next_offset = whole_batches(records)
    if not size_bytes:
        return None
    aborted = result.aborted or ()
    end_offset = _end_offset(result, isolation)
    return FetchedRecords(records[:size_bytes], aborted, next_offset, result.log_start_offset, end_offset)


def _end_offset(result: FetchPartitionResult, isolation: Isolation) -> int:
    is_committed = isolation is Isolation.READ_COMMITTED
    return result.last_stable_offset if is_committed else result.high_watermark


def whole_batches(records: Buffer) -> tuple[int, int]:
    """The size of the whole batches, and the offset after the last of them.

    Stops before bytes that are not a batch; the decoder reports the error.
    """
    unpack_from = BATCH_SPAN.unpack_from
    position = next_offset = 0
    while len(records) - position >= HEADER_BYTES:
        base_offset, length, _, _, last_offset_delta, _, _ = unpack_from(records, position)
        end = position + LOG_OVERHEAD + length
        if end > len(records) or length < HEADER_BYTES - LOG_OVERHEAD:
            break
        next_offset = base_offset + last_offset_delta + 1
        position = end
    return position, next_offset
