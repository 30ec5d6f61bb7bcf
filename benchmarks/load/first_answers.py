"""The times until a starting broker describes topics, accepts a record and returns records."""

import asyncio
import time
from collections.abc import Sequence

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.fetch_request import FetchBody, FetchedPartition, encode_fetch_request
from barnabas.protocol.client.fetch_response import decode_fetch_response
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from benchmarks.load.context import FETCH_MAX_BYTES, FETCH_MIN_BYTES, FETCH_WAIT_MS, Topic, described_topics
from benchmarks.load.producer import produce_error, produce_frame
from benchmarks.load.stamped_records import NO_PRODUCER, stamped_batch
from benchmarks.load.wire import BODY_OFFSET, Connection, framed

START_SECONDS = 120.0
_PAUSE_SECONDS = 0.005
_FETCH_VERSION = 18
_READ_UNCOMMITTED = 0
_PARTITION_MAX_BYTES = 16 * 1024


async def first_answers(address: str, names: Sequence[str], begin: float) -> dict[str, float]:
    """Seconds from `begin` (`time.perf_counter`) to the broker's first answers.

    `metadata`: all topics are described; `produce`: a record is confirmed; `fetch`: records are read from
    another partition; `fetch_all`: records are read from each partition. Raises TimeoutError.
    """
    seconds: dict[str, float] = {}
    async with asyncio.timeout(START_SECONDS):
        connection = await _connected(address)
        topics = await described_topics(connection, names, pause_seconds=_PAUSE_SECONDS)
        seconds["metadata"] = time.perf_counter() - begin
        await _produce(connection, topics[0])
        seconds["produce"] = time.perf_counter() - begin
        await _fetch(connection, {TopicIdPartition(topics[-1].topic_id, 0)})
        seconds["fetch"] = time.perf_counter() - begin
        every = [(topic.topic_id, index) for topic in topics for index in range(topic.partition_count)]
        await _fetch(connection, {TopicIdPartition(*one) for one in every})
        seconds["fetch_all"] = time.perf_counter() - begin
        connection.close()
    return seconds


async def _connected(address: str) -> Connection:
    while True:
        try:
            return await Connection.open(address)
        except OSError:
            await asyncio.sleep(_PAUSE_SECONDS)


async def _produce(connection: Connection, topic: Topic) -> None:
    frame = produce_frame(topic, 0, stamped_batch(0.0, NO_PRODUCER, -1))
    while produce_error(await connection.send(frame)) != ErrorCode.none.value:  # noqa: ASYNC110
        await asyncio.sleep(_PAUSE_SECONDS)


async def _fetch(connection: Connection, wanted: set[TopicIdPartition]) -> None:
    """Read the first batch of each partition."""
    missing = set(wanted)
    while missing:
        partitions = [FetchedPartition(partition, 0, _PARTITION_MAX_BYTES) for partition in missing]
        body = FetchBody(FETCH_WAIT_MS, FETCH_MIN_BYTES, FETCH_MAX_BYTES, _READ_UNCOMMITTED, partitions)
        request = framed(ApiKey.FETCH, _FETCH_VERSION, encode_fetch_request(_FETCH_VERSION, body))
        response = decode_fetch_response(_FETCH_VERSION, await connection.send(request), BODY_OFFSET)
        for topic in response.topics:
            missing -= {
                TopicIdPartition(topic.topic_id, each.partition_index)
                for each in topic.partitions
                if each.records
            }
