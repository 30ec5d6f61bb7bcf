"""One broker that leads partitions of a consumer: when to connect, and the next fetch (KIP-74, KIP-516).

One fetch is outstanding. It names the partitions that are readable, have a position, and have room in the
buffer. A seek during a fetch makes its answer worthless; the generation of the partition shows that. So does
the answer of another broker, if the leader changes; the offset to fetch shows that.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import Leader
from barnabas.client.cluster.topics import Isolation
from barnabas.client.consume.assignment import AssignedPartition, Assignment
from barnabas.client.consume.consumer_options import ConsumerSettings
from barnabas.client.consume.fetch_buffer import FetchBuffer
from barnabas.client.consume.fetched_slice import FetchedSlice
from barnabas.client.consume.record_filter import RecordFilter
from barnabas.client.consume.topic_reader import whole_batches
from barnabas.client.errors import BrokerUnavailableError, broker_error, error_code
from barnabas.client.network.connection import Connection
from barnabas.client.record_content import Deserializers, KeyT, ValueT
from barnabas.client.waiting.signal import Signal
from barnabas.protocol.client.consumer_apis import FETCH
from barnabas.protocol.client.fetch_request import FetchBody, FetchedPartition
from barnabas.protocol.client.fetch_response import FetchReply
from barnabas.protocol.encode.fetch import FetchPartitionResult
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import HashRange

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000
_FATAL: Final = frozenset({ErrorCode.topic_authorization_failed, ErrorCode.unsupported_version})
"""Errors that the same request would get again."""


@dataclass(frozen=True, slots=True)
class Fetching(Generic[KeyT, ValueT]):
    """The state that all leaders of one consumer share."""

    settings: ConsumerSettings
    cluster: Cluster
    assignment: Assignment[KeyT, ValueT]
    buffer: FetchBuffer[KeyT, ValueT]
    deserializers: Deserializers[KeyT, ValueT] | None
    counts: Counter[str]
    on_out_of_range: Callable[[AssignedPartition[KeyT, ValueT]], None]
    on_stale_metadata: Callable[[], None]
    """Called when a broker's answer contradicts the view of the cluster."""
    on_leader_changed: Callable[[], None]
    """Called when a broker has named another leader and the view was updated."""


class _Asked(NamedTuple, Generic[KeyT, ValueT]):
    """A partition in an outstanding fetch."""

    partition: AssignedPartition[KeyT, ValueT]
    generation: int
    fetch_offset: int

    @property
    def is_current(self) -> bool:
        return (self.generation, self.fetch_offset) == (
            self.partition.generation,
            self.partition.fetch_offset,
        )


class FetchLeader(Generic[KeyT, ValueT]):
    """One broker. `run` it in a task until it is cancelled."""

    def __init__(self, node_id: int, fetching: Fetching[KeyT, ValueT]) -> None:
        self._node_id = node_id
        self._fetching = fetching
        self._settings = fetching.settings
        self._loop = asyncio.get_running_loop()
        self._news = Signal()
        self._wanted: list[TopicIdPartition] = []
        """In the order of the next fetch: the broker may have room only for the first."""
        self._backoff = fetching.settings.backoff()
        self._is_in_trouble = False

    # The consumer calls these (`LeaderTask`).

    def read(self, wanted: frozenset[TopicIdPartition]) -> None:
        kept = [partition for partition in self._wanted if partition in wanted]
        self._wanted = kept + sorted(wanted.difference(kept))
        self._news.set()

    def lose(self, partition: TopicIdPartition) -> None:
        """Does nothing: positions do not belong to a leader."""

    def look_again(self) -> None:
        self._news.set()

    async def run(self) -> None:
        while True:
            self._news.clear()
            if not self._wanted:
                await self._news.wait(None)
                continue
            try:
                await self._read_over_one_connection()
            except BrokerUnavailableError as error:
                level = logging.DEBUG if self._is_in_trouble else logging.WARNING
                log.log(level, "Reading from node %d stops until the next try: %s", self._node_id, error)
                self._is_in_trouble = True
                self._fetching.on_stale_metadata()
                await asyncio.sleep(self._backoff.next_ms() / _MS_PER_SECOND)

    async def _read_over_one_connection(self) -> None:
        address = self._fetching.cluster.view.brokers.get(self._node_id)
        if address is None:
            raise BrokerUnavailableError(f"Node {self._node_id} is not part of the cluster now.")
        connection = await self._fetching.cluster.open(address)
        try:
            while connection.is_open:
                self._news.clear()
                asked, body = self._next_fetch()
                if body is None:
                    await self._news.wait(self._retry_in_ms())
                    continue
                await self._fetch(connection, asked, body)
        finally:
            connection.close()

    async def _fetch(
        self,
        connection: Connection,
        asked: dict[TopicIdPartition, _Asked[KeyT, ValueT]],
        body: FetchBody,
    ) -> None:
        self._fetching.counts["fetch-total"] += 1
        reply = await connection.start(FETCH, body, wait_ms=body.max_wait_ms)
        code = error_code(reply.error_code)
        if code is not ErrorCode.none:
            raise BrokerUnavailableError(f"Node {self._node_id} answers {code.name}.")
        self._backoff.reset()
        if self._is_in_trouble:
            log.info("Reading from node %d again", self._node_id)
            self._is_in_trouble = False
        for topic in reply.topics:
            for result in topic.partitions:
                partition = TopicIdPartition(topic.topic_id, result.partition_index)
                found = asked.get(partition)
                if found is not None and found.is_current:
                    self._take(partition, found.partition, result, reply)

    def _next_fetch(
        self,
    ) -> tuple[dict[TopicIdPartition, _Asked[KeyT, ValueT]], FetchBody | None]:
        """The partitions to ask for, and the request; None if there is nothing to fetch now."""
        buffer, settings = self._fetching.buffer, self._settings
        room_bytes = settings.prefetch_bytes - buffer.size_bytes
        asked: dict[TopicIdPartition, _Asked[KeyT, ValueT]] = {}
        fetched: list[FetchedPartition] = []
        now_ms = self._now_ms()
        for partition in self._wanted if room_bytes > 0 else ():
            state = self._fetching.assignment.find(partition)
            if state is None or not state.is_readable or state.fetch_offset is None or state.needs_ranges:
                continue
            if buffer.has_room(state) and state.retry_at_ms <= now_ms:
                asked[partition] = _Asked(state, state.generation, state.fetch_offset)
                hashes = _hashes_to_ask_for(state)
                fetched.append(
                    FetchedPartition(partition, state.fetch_offset, settings.max_partition_bytes, hashes)
                )
        if not fetched:
            return asked, None
        self._wanted.append(self._wanted.pop(0))
        max_bytes = min(settings.max_bytes, room_bytes)
        return asked, FetchBody(
            settings.max_wait_ms, settings.min_bytes, max_bytes, settings.isolation, fetched
        )

    def _retry_in_ms(self) -> int | None:
        """The time until a partition with an error is fetched again."""
        states = (self._fetching.assignment.find(partition) for partition in self._wanted)
        now_ms = self._now_ms()
        later = [state.retry_at_ms for state in states if state is not None and state.retry_at_ms > now_ms]
        return min(later) - now_ms if later else None

    def _take(
        self,
        partition: TopicIdPartition,
        state: AssignedPartition[KeyT, ValueT],
        result: FetchPartitionResult,
        reply: FetchReply,
    ) -> None:
        code = error_code(result.error_code)
        if code is not ErrorCode.none:
            self._take_error(partition, state, code, result, reply)
            return
        is_committed = self._settings.isolation is Isolation.READ_COMMITTED
        state.end_offset = result.last_stable_offset if is_committed else result.high_watermark
        if state.individual is not None:
            state.individual.note_log_start(result.log_start_offset)
        records = memoryview(result.records[0] if result.records else b"")
        size_bytes, next_offset = whole_batches(records)
        if size_bytes:
            self._take_records(state, result, records[:size_bytes], next_offset)
        if result.looked_until is not None and size_bytes == len(records):
            self._look_until(state, result.looked_until)

    def _take_records(
        self,
        state: AssignedPartition[KeyT, ValueT],
        result: FetchPartitionResult,
        records: memoryview,
        next_offset: int,
    ) -> None:
        is_committed = self._settings.isolation is Isolation.READ_COMMITTED
        aborted = (result.aborted or ()) if is_committed else None
        record_filter: RecordFilter | None = None
        if state.individual is not None:
            assert state.fetch_offset is not None, "only a partition with a position is fetched"
            record_filter = RecordFilter(
                state.individual, state.fetch_offset, is_complete=result.looked_until is None
            )
        slice_ = FetchedSlice(state.name, records, aborted, self._fetching.deserializers, record_filter)
        state.fetch_offset = next_offset
        self._fetching.buffer.add(state, slice_)

    def _look_until(self, state: AssignedPartition[KeyT, ValueT], offset: int) -> None:
        """There is no record of the member's share before this offset but those that were fetched."""
        if state.fetch_offset is None or offset <= state.fetch_offset:
            return
        state.fetch_offset = offset
        if state.slices:
            state.slices[-1].end_offset = offset
        else:
            state.progress.deliver((), offset)

    def _take_error(
        self,
        partition: TopicIdPartition,
        state: AssignedPartition[KeyT, ValueT],
        code: ErrorCode,
        result: FetchPartitionResult,
        reply: FetchReply,
    ) -> None:
        log.debug("A fetch of %s-%d failed: %s", *state.name, code.name)
        state.retry_at_ms = self._now_ms() + self._settings.retry_backoff_ms
        if code in _FATAL:
            raise broker_error(code, f"{state.name.topic}-{state.name.partition} cannot be read")
        if code is ErrorCode.offset_out_of_range:
            if not state.slices:
                self._fetching.on_out_of_range(state)
            return
        leader = result.current_leader
        if leader is None or not reply.node_endpoints:
            self._fetching.on_stale_metadata()
        elif self._fetching.cluster.view.note_leader(partition, Leader(*leader), reply.node_endpoints):
            self._fetching.on_leader_changed()

    def _now_ms(self) -> int:
        return int(self._loop.time() * _MS_PER_SECOND)


def _hashes_to_ask_for(state: AssignedPartition[KeyT, ValueT]) -> HashRange | None:
    """The share of a partition; None if the member has to see all batches."""
    individual = state.individual
    return None if individual is None or individual.sees_all else individual.hashes
