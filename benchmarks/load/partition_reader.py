"""Reads a consumer's partitions with a fetch session on one connection (KIP-227, KIP-516).

One long poll is outstanding at a time. A request names the partitions whose position has moved, and those
that are no longer read.
"""

import asyncio
import struct
from collections.abc import Mapping, Sequence

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.fetch_response import decode_fetch_response
from barnabas.protocol.message_parts import INT32, NO_TAGS, compact_count, compact_string
from barnabas.protocol.varint import Buffer
from benchmarks.load.context import FETCH_MAX_BYTES, FETCH_MIN_BYTES, FETCH_WAIT_MS, Load, Topic, check
from benchmarks.load.stamped_records import stamps
from benchmarks.load.wire import BODY_OFFSET, Connection, framed

_VERSION = 18
_READ_UNCOMMITTED = 0
_UNKNOWN = -1
_PARTITION_MAX_BYTES = 1 << 20
_HEAD = struct.Struct(">iiibii")
"""max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch."""
_PARTITION = struct.Struct(">iiqiqix")
"""partition, leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset, max_bytes; no tags."""
_ERROR_AND_SESSION = struct.Struct(">hi")
_ERROR_AT = BODY_OFFSET + 4
_IDLE_SECONDS = 0.05


class PartitionReader:
    """Adds the latency of each record to the sample `name`. `positions` are the next offsets by partition."""

    def __init__(self, load: Load, topic: Topic, name: str, connection: Connection) -> None:
        self.positions: dict[int, int] = {}
        self._load = load
        self._topic_id = topic.topic_id.bytes
        self._name = name
        self._connection = connection
        self._told: Mapping[int, int] = {}
        self._session_id = 0
        self._session_epoch = 0

    async def poll(self) -> None:
        """One fetch, or a pause if there are no partitions."""
        if not self.positions:
            await asyncio.sleep(_IDLE_SECONDS)
            return
        answer = self._connection.send(framed(ApiKey.FETCH, _VERSION, self._request()))
        self._told = dict(self.positions)
        self._take(await answer)

    def _request(self) -> bytes:
        moved = [each for each in self.positions.items() if self._told.get(each[0]) != each[1]]
        forgotten = [index for index in self._told if index not in self.positions]
        wait_and_sizes = (FETCH_WAIT_MS, FETCH_MIN_BYTES, FETCH_MAX_BYTES)
        return b"".join(
            (
                _HEAD.pack(*wait_and_sizes, _READ_UNCOMMITTED, self._session_id, self._session_epoch),
                self._topic([_partition(index, offset) for index, offset in moved]),
                self._topic([INT32.pack(index) for index in forgotten]),
                compact_string("") + NO_TAGS,
            )
        )

    def _topic(self, partitions: list[bytes]) -> bytes:
        """An array with one topic, or an empty one if it has no partitions."""
        if not partitions:
            return compact_count(0)
        count = compact_count(len(partitions))
        return b"".join((compact_count(1), self._topic_id, count, *partitions, NO_TAGS))

    def _take(self, frame: bytes) -> None:
        error_code, self._session_id = _ERROR_AND_SESSION.unpack_from(frame, _ERROR_AT)
        check(error_code, "fetch")
        self._session_epoch += 1
        for topic in decode_fetch_response(_VERSION, frame, BODY_OFFSET).topics:
            for partition in topic.partitions:
                check(partition.error_code, "fetch")
                if partition.partition_index in self.positions:
                    self._read(partition.partition_index, partition.records)

    def _read(self, index: int, buffers: Sequence[Buffer]) -> None:
        for records in buffers:
            for offset, stamp in stamps(records):
                self._load.samples.note(self._name, stamp)
                self.positions[index] = offset + 1


def _partition(index: int, offset: int) -> bytes:
    return _PARTITION.pack(index, _UNKNOWN, offset, _UNKNOWN, _UNKNOWN, _PARTITION_MAX_BYTES)
