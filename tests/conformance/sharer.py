"""A consumer that shares partition 0 of a topic with others: it fetches by hash range, in a fetch session."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.packed import pack_hash_range
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.record_keys import NO_KEY, key_hash
from barnabas.protocol.record_keys.hash_range import HashRange
from barnabas.protocol.records import iterate_records
from tests.conformance.harness import Client, Lab, Pending
from tests.conformance.messages import message, read, written
from tests.protocol.range_fetches import NO_OFFSET, range_fetch

UNCOMMITTED, COMMITTED = 0, 1
MIB = 1 << 20


class Taken(NamedTuple):
    """The partition in one answer."""

    error: int
    high_watermark: int
    base_offsets: list[int]
    """The batches in the answer."""
    looked_until: int
    """NO_OFFSET without the tag."""


class Sharer:
    """See the module. It begins at offset 0; `kept` are the offsets of the records in its range."""

    def __init__(
        self,
        client: Client,
        topic_id: UUID,
        hashes: HashRange | None,
        *,
        isolation_level: int = UNCOMMITTED,
        version: int = 18,
    ) -> None:
        self._client = client
        self._topic_id = topic_id
        self.hashes = hashes
        self.hash_range = None if hashes is None else pack_hash_range(hashes)
        """The content of the tag."""
        self._isolation_level = isolation_level
        self._version = version
        self._session = (0, 0)
        self._asked: tuple[int, bytes | None] | None = None
        self.position = 0
        self.kept: list[int] = []
        self.received_bytes = 0

    def send(self, **fields: Any) -> Pending:
        """A fetch that names the partition only if the session does not know its present fields."""
        partition = {
            "partition": 0,
            "fetch_offset": self.position,
            "partition_max_bytes": fields.pop("partition_max_bytes", MIB),
            "current_leader_epoch": -1,
            "last_fetched_epoch": -1,
            "hash_range": self.hash_range,
        }
        asked = self.position, self.hash_range
        topics = [{"topic_id": self._topic_id, "partitions": [partition]}]
        values: dict[str, Any] = {
            "max_wait": 0,
            "min_bytes": 1,
            "max_bytes": 8 * MIB,
            "isolation_level": self._isolation_level,
            "session_id": self._session[0],
            "session_epoch": self._session[1],
            "topics": topics if asked != self._asked else [],
            **fields,
        }
        self._asked = asked
        request = message(range_fetch(self._version).request, values)
        return self._client.send_body("fetch", self._version, written(request))

    async def fetch(self, **fields: Any) -> Taken | None:
        """The partition in the answer, which must come before any time passes; None if it is not there."""
        pending = self.send(**fields)
        await self._client.lab.ended(pending)
        return self.take(pending)

    def take(self, pending: Pending) -> Taken | None:
        """Reads an answer, keeps its records in the range, and moves the position."""
        answer: Any = read(range_fetch(self._version).response, pending.body())
        assert answer.error_code is ErrorCode.none
        self._session = answer.session_id, self._session[1] + 1
        if not answer.responses:
            return None
        (topic,) = answer.responses
        (partition,) = topic.partitions
        taken = Taken(
            partition.error_code.value,
            partition.high_watermark,
            self._keep(bytes(partition.records or b"")),
            partition.looked_until_offset,
        )
        assert not partition.aborted_transactions or self.hashes is None
        if taken.looked_until != NO_OFFSET:
            assert taken.looked_until >= self.position, "the position goes back"
            self.position = taken.looked_until
        return taken

    async def catch_up(self, end_offset: int, **fields: Any) -> None:
        """Fetches until the position is `end_offset`; each fetch must bring it nearer."""
        while self.position < end_offset:
            before = self.position
            taken = await self.fetch(**fields)
            assert taken is not None
            assert taken.error == 0
            assert before < self.position <= end_offset

    def _keep(self, data: bytes) -> list[int]:
        """Keeps the records from the position on; returns the base offsets of the batches."""
        self.received_bytes += len(data)
        headers = list(iterate_headers(data))
        assert sum(header.size_bytes for _, header in headers) == len(data), "a batch is cut"
        for position, header in headers:
            assert not header.is_control or self.hashes is None
            for record in iterate_records(data, position) if not header.is_control else ():
                if record.offset >= self.position and self._is_mine(record.key, record.offset):
                    self.kept.append(record.offset)
        return [header.base_offset for _, header in headers]

    def _is_mine(self, key: bytes | None, offset: int) -> bool:
        return self.hashes is None or self.hashes.has_record(NO_KEY if key is None else key_hash(key), offset)


def sharers(lab: Lab, topic_id: UUID, ranges: list[HashRange], **options: Any) -> list[Sharer]:
    """A sharer for each range, with a connection of its own."""
    return [Sharer(lab.client(), topic_id, one, **options) for one in ranges]
