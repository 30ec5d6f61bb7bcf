"""One share session with one broker: fetches that acquire, acknowledgements, renewals (KIP-932, KIP-1222).

What was acquired is told as ranges. Barnabas is asked to leave the records out; those that come all the same
are not looked at. A session that goes wrong as a whole ends with `SessionLostError` or
`BrokerUnavailableError`, and the broker then releases what it held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.client.acknowledgements import AcknowledgeType
from barnabas.client.connection import Connection
from barnabas.client.errors import broker_error, error_code
from barnabas.client.metadata import Leader
from barnabas.client.share_session import FINAL_EPOCH, ShareSession, ack_topics, forgotten_topics
from barnabas.pipeline.share_source.ranges import AcquiredRange
from barnabas.protocol.client.consumer_apis import SHARE_ACKNOWLEDGE, SHARE_FETCH
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.decode.share_acknowledge import RENEWAL_VERSION, ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.message_parts import NodeEndpoint

FETCH_BYTES: Final = 1024 * 1024
"""What a fetch asks for. Apache Kafka walks over all the batches that it has read: with its clients' usual
50 MB a fetch takes six times as long."""

_BATCH_OPTIMIZED: Final = 0
_RECORD_LIMIT: Final = 1
_MS_PER_SECOND: Final = 1000

_FATAL: Final = frozenset(
    {
        ErrorCode.group_authorization_failed,
        ErrorCode.topic_authorization_failed,
        ErrorCode.unsupported_version,
        ErrorCode.invalid_request,
        ErrorCode.invalid_group_id,
    }
)
"""What would be answered to the same request again."""

Settlement = Mapping[TopicIdPartition, Sequence[AckBatch]]
"""What is said of ranges, by partition; ascending and disjoint within each."""


class SessionLostError(Exception):
    """The broker answers for this session no more."""


class Refusal(NamedTuple):
    """A partition could not be fetched from; another leader was named, or not (KIP-951)."""

    partition: TopicIdPartition
    code: ErrorCode
    leader: Leader
    endpoints: Sequence[NodeEndpoint]


class Fetched(NamedTuple):
    """What one fetch brought. Locks hold until `lock_deadline_ms` at least, by the loop's clock."""

    acquired: dict[TopicIdPartition, list[AcquiredRange]]
    refusals: list[Refusal]
    lock_deadline_ms: int


class LeaderSession:
    """The session of one connection. `end` it in order, or `close` it."""

    def __init__(self, connection: Connection, group_id: str, member_id: str) -> None:
        self.lock_ms = 0
        """How long records are locked, as the broker said last; 0 before it said so."""
        self.can_renew = connection.version(SHARE_ACKNOWLEDGE) >= RENEWAL_VERSION
        self._connection = connection
        self._group_id = group_id
        self._member_id = member_id
        self._session = ShareSession()
        self._loop = asyncio.get_running_loop()
        connection.version(SHARE_FETCH)  # raises, before anything is sent, if the broker has no share groups

    @property
    def is_open(self) -> bool:
        return self._connection.is_open

    @property
    def partitions(self) -> frozenset[TopicIdPartition]:
        """Those that are fetched from."""
        return self._session.partitions

    async def fetch(
        self,
        wanted: frozenset[TopicIdPartition],
        record_count: int,
        max_wait_ms: int,
        *,
        is_exact: bool = False,
    ) -> Fetched:
        """Acquire some `record_count` records of these partitions: producers' batches as a whole, or, if it
        is to be exact, no more than that (KIP-1206; brokers too old for it take whole batches)."""
        step = self._session.fetch(wanted)
        body = ShareFetchBody(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=step.share_session_epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            max_records=record_count,
            batch_size=record_count,
            share_acquire_mode=_RECORD_LIMIT if is_exact else _BATCH_OPTIMIZED,
            is_renew_ack=False,
            topics=ack_topics(step.added, {}),
            forgotten_topics=forgotten_topics(step.forgotten),
            without_records=True,  # Apache Kafka doesn't know it, and sends them all the same
        )
        sent_at_ms = self._now_ms()
        reply = await self._connection.start(SHARE_FETCH, body, wait_ms=max_wait_ms)
        _check(reply.error_code, reply.error_message)
        self.lock_ms = max(reply.acquisition_lock_timeout_ms, 1)
        fetched = Fetched({}, [], sent_at_ms + self.lock_ms)
        for topic_id, results in reply.topics:
            for result in results:
                partition = TopicIdPartition(topic_id, result.partition_index)
                if result.acquired:
                    fetched.acquired[partition] = [AcquiredRange(*one) for one in result.acquired]
                if result.error_code:
                    code = _passing(result.error_code, result.error_message)
                    leader = Leader(result.leader_id, result.leader_epoch)
                    fetched.refusals.append(Refusal(partition, code, leader, reply.node_endpoints))
        return fetched

    async def acknowledge(self, settlement: Settlement) -> dict[TopicIdPartition, ErrorCode]:
        """How each partition took it: all that was said of it, or nothing."""
        renews = any(
            AcknowledgeType.RENEW in batch.types for batches in settlement.values() for batch in batches
        )
        body = ShareAcknowledgeBody(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self._session.acknowledge(),
            is_renew_ack=renews,
            topics=ack_topics((), settlement),
        )
        reply = await self._connection.ask(SHARE_ACKNOWLEDGE, body)
        _check(reply.error_code, reply.error_message)
        self.lock_ms = reply.acquisition_lock_timeout_ms or self.lock_ms
        answered = {
            TopicIdPartition(topic_id, result.partition_index): error_code(result.error_code)
            for topic_id, results in reply.topics
            for result in results
        }
        return {
            partition: answered.get(partition, ErrorCode.unknown_server_error) for partition in settlement
        }

    async def end(self) -> None:
        """End the session: the broker releases at once what is still held in it. It is to be closed then.

        Raises `BrokerUnavailableError`.
        """
        if self.lock_ms:
            body = ShareAcknowledgeBody(
                group_id=self._group_id,
                member_id=self._member_id,
                share_session_epoch=FINAL_EPOCH,
                is_renew_ack=False,
                topics=[],
            )
            await self._connection.ask(SHARE_ACKNOWLEDGE, body)

    def close(self) -> None:
        """Drop the connection, and with it every lock."""
        self._connection.close()

    def _now_ms(self) -> int:
        return int(self._loop.time() * _MS_PER_SECOND)


def _check(number: int, message: str | None) -> None:
    """Raises if a whole answer is an error: what will not change, and what may do so in a new session."""
    code = error_code(number)
    if code is ErrorCode.none:
        return
    if code in _FATAL:
        raise broker_error(code, message)
    raise SessionLostError(f"{code.name}: {message}" if message else code.name)


def _passing(number: int, message: str | None) -> ErrorCode:
    """The code of a partition's error that may pass; raises `BrokerError` for another."""
    code = error_code(number)
    if code in _FATAL:
        raise broker_error(code, message)
    return code
