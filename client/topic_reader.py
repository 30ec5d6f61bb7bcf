"""Reads ranges of one partition's offsets, as the record batches that lie in the log: nothing is decoded.

    reader = TopicReader(cluster)
    async for fetched in reader.read(partition, [(0, 999), (5_000, 5_999)]):
        decode(fetched.records, fetched.aborted)

Ranges are (first offset, last offset), both inclusive, ascending and disjoint. What comes are whole batches
that hold all records of the ranges that the log has, in its order; they hold others too, since batches are
never cut: whoever decodes drops those outside. Offsets may be missing: transactions' markers, share groups'
state and what compaction took have offsets without records.

While one answer is decoded, the next is fetched already. A leader that changes, a broker that restarts, a
connection that breaks are waited out, within `Retries.give_up_ms` of no progress. An offset that the log does
not hold (any more) is a `RecordsGoneError`, a deleted topic a `TopicGoneError`: nothing is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import (
    BrokerUnavailableError,
    RecordsGoneError,
    TopicGoneError,
    UnknownTopicError,
    broker_error,
    error_code,
)
from barnabas.client.leaders import Leaders
from barnabas.client.metadata import Leader
from barnabas.client.patience import Patience
from barnabas.client.topics import EARLIEST, LATEST, TOPIC_GONE_MS, Isolation, Retries, Topics
from barnabas.protocol.client_apis import FETCH
from barnabas.protocol.decode.fetch_response import FetchReply
from barnabas.protocol.encode.fetch import FetchPartitionResult
from barnabas.protocol.encode.fetch_request import FetchBody, FetchedPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import BATCH_SPAN, HEADER_BYTES, LOG_OVERHEAD
from barnabas.protocol.varint import Buffer

FETCH_BYTES_MIN: Final = 64 * 1024
"""The least that is asked for at once, however little is wanted."""
FIRST_GUESS_BYTES: Final = 1024.0
"""What an offset is taken for before records have come."""
MARGIN: Final = 1.25
"""So much more is asked for than the last records make expect."""

_EMPTY: Final = memoryview(b"")


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """How to read. Sizes are in bytes, durations in milliseconds."""

    isolation: Isolation = Isolation.READ_UNCOMMITTED
    fetch_bytes: int = 4 * 1024 * 1024
    """What one fetch asks for; a batch that is larger comes whole all the same."""
    max_wait_ms: int = 500
    """How long the broker waits for records that are not there yet."""
    retries: Retries = field(default_factory=Retries)


class FetchedRecords(NamedTuple):
    """One answer's batches."""

    records: memoryview
    """Whole batches, one behind the other, at least one."""
    aborted: Sequence[tuple[int, int]]
    """(producer id, first offset) of the aborted transactions that have records here; only if committed
    records are read."""
    next_offset: int
    """Behind the last batch."""
    log_start_offset: int
    end_offset: int
    """Where what may be read ended: the last stable offset if committed records are read, else the high
    watermark."""


class TopicReader:
    """Reads from any number of partitions, one range of requests after another. `close` it once."""

    def __init__(self, cluster: Cluster, settings: ReadSettings | None = None) -> None:
        """The cluster stays open when this is closed."""
        self._cluster = cluster
        self._settings = settings or ReadSettings()
        self._leaders = Leaders(cluster)

    def close(self) -> None:
        self._leaders.close()

    async def read(
        self, partition: TopicIdPartition, ranges: Sequence[tuple[int, int]]
    ) -> AsyncGenerator[FetchedRecords]:
        """The batches that hold the records of these ranges; see above.

        Raises `RecordsGoneError`, `TopicGoneError`, `BrokerError` for what will not change, and
        `BrokerUnavailableError` if nothing came for too long.
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
        """Ask for what is wanted next, if that takes no waiting."""
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
        """What an answer brought; None if it is worth another try, after a pause."""
        try:
            result = _result(await answer)
        except BrokerUnavailableError as error:
            self._leaders.doubt(partition)
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
            f"{name}-{partition.partition} brings nothing from offset {offset} on; it ends at {end_offset}."
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
        self._leaders.doubt(partition, None if leader is None else Leader(*leader), reply.node_endpoints)
        name = self._name(partition)
        await patience.pause(
            BrokerUnavailableError(f"{name}-{partition.partition} cannot be read at the moment: {code.name}.")
        )

    async def _out_of_range(self, partition: TopicIdPartition, offset: int, patience: Patience) -> None:
        """Raise what the log holds instead; a log that does hold the offset by now is read on."""
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
    """What is still to be read of some ranges, and how many bytes to ask for at once."""

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
        """As many as the range's rest takes if its records are like the last ones."""
        rest = self._ranges[-1][1] + 1 - self.offset
        return min(self._fetch_bytes, max(FETCH_BYTES_MIN, int(rest * self._bytes_per_offset * MARGIN)))

    def note(self, fetched: FetchedRecords) -> None:
        """Batches came: go on behind them, in the next range that reaches so far."""
        self._bytes_per_offset = len(fetched.records) / max(fetched.next_offset - self.offset, 1)
        while self._ranges and self._ranges[-1][1] < fetched.next_offset:
            self._ranges.pop()
        if self._ranges:
            self.offset = max(fetched.next_offset, self._ranges[-1][0])

    def note_nothing(self) -> None:
        """Nothing whole came: ask for as much as may be."""
        self._bytes_per_offset = float(self._fetch_bytes)


def _result(reply: FetchReply) -> FetchPartitionResult:
    """The one partition's result. Raises `BrokerUnavailableError` if the answer is about no partition."""
    for topic in reply.topics:
        for result in topic.partitions:
            return result
    code = error_code(reply.error_code)
    raise BrokerUnavailableError(f"A fetch was not answered: {code.name}.")


def _fetched(result: FetchPartitionResult, isolation: Isolation) -> FetchedRecords | None:
    """The whole batches of a result; None if there is none."""
    records = memoryview(result.records[0]) if result.records else _EMPTY
    size_bytes, next_offset = _whole_batches(records)
    if not size_bytes:
        return None
    aborted = result.aborted or ()
    end_offset = _end_offset(result, isolation)
    return FetchedRecords(records[:size_bytes], aborted, next_offset, result.log_start_offset, end_offset)


def _end_offset(result: FetchPartitionResult, isolation: Isolation) -> int:
    is_committed = isolation is Isolation.READ_COMMITTED
    return result.last_stable_offset if is_committed else result.high_watermark


def _whole_batches(records: Buffer) -> tuple[int, int]:
    """How many bytes whole batches take, and the offset behind the last of them.

    Ends in front of what is no batch: whoever decodes says what is wrong with it.
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
