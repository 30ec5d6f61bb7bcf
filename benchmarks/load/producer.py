"""An idempotent producer that sends one record at a time to the partitions of a topic in turn."""

import asyncio
import struct
import time
from functools import partial

from barnabas.protocol.api import ApiKey
from barnabas.protocol.message_parts import NO_TAGS, compact_count
from benchmarks.load.context import Load, Topic, ask_coordinator, check
from benchmarks.load.stamped_records import stamped_batch
from benchmarks.load.wire import BODY_OFFSET, Connection, framed

_VERSION = 13
_NO_TRANSACTION_ALL_REPLICAS = struct.pack(">xhi", -1, 30_000)
"""No transactional id, acks, and the timeout in ms."""
_INDEX = struct.Struct(">i")
_ERROR = struct.Struct(">h")
_ERROR_AT = BODY_OFFSET + 1 + 16 + 1 + _INDEX.size
"""After the count of topics, the topic's id, the count of partitions and the partition's index."""


class Producer:
    """Sends at a steady rate without waiting for answers, so that a slow answer delays no other record."""

    def __init__(self, load: Load, topic: Topic, interval_seconds: float) -> None:
        self._load = load
        self._topic = topic
        self._interval_seconds = interval_seconds
        self._failure: Exception | None = None

    async def run(self, delay_seconds: float) -> None:
        """Sends until it is cancelled; raises RuntimeError once a record was refused.

        Producers with different delays never send at the same moment.
        """
        connection = await Connection.open(self._load.address)
        self._producer_id = await _producer_id(connection)
        await asyncio.sleep(delay_seconds)
        begin, number = time.perf_counter(), 0
        while self._failure is None:
            self._send(connection, number)
            number += 1
            await asyncio.sleep(max(0.0, begin + number * self._interval_seconds - time.perf_counter()))
        raise self._failure

    def _send(self, connection: Connection, number: int) -> None:
        sequence, index = divmod(number, self._topic.partition_count)
        begin = time.perf_counter()
        batch = stamped_batch(begin, self._producer_id, sequence)
        answer = connection.send(produce_frame(self._topic, index, batch))
        answer.add_done_callback(partial(self._confirmed, begin))

    def _confirmed(self, begin: float, answer: "asyncio.Future[bytes]") -> None:
        try:
            check(produce_error(answer.result()), "produce")
        except (RuntimeError, ConnectionError) as failure:
            self._failure = self._failure or failure
        else:
            self._load.samples.note("produce", begin)


def produce_frame(topic: Topic, index: int, batch: bytes) -> bytes:
    """A request with one batch, with acks=all."""
    parts = (
        _NO_TRANSACTION_ALL_REPLICAS,
        compact_count(1) + topic.topic_id.bytes + compact_count(1),
        _INDEX.pack(index) + compact_count(len(batch)) + batch,
        NO_TAGS * 3,
    )
    return framed(ApiKey.PRODUCE, _VERSION, b"".join(parts))


def produce_error(frame: bytes) -> int:
    """The error code in the answer to `produce_frame`."""
    code: int = _ERROR.unpack_from(frame, _ERROR_AT)[0]
    return code


async def _producer_id(connection: Connection) -> int:
    response = await ask_coordinator(
        connection,
        "init_producer_id",
        5,
        transactional_id=None,
        transaction_timeout=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    check(response.error_code, "init_producer_id")
    return int(response.producer_id)
