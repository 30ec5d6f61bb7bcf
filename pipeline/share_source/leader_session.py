"""One share session with one broker: fetches that acquire, acknowledgements, renewals (KIP-932, KIP-1222).

A fetch returns the acquired ranges. It asks the broker to leave the records out, and ignores those that come.
A session that fails as a whole ends with `SessionLostError` or `BrokerUnavailableError`, and the broker then
releases its records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.client.cluster.metadata import Leader
from barnabas.client.errors import error_code
from barnabas.client.network.connection import Connection
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.client.share.session_errors import check_response, temporary_code
from barnabas.pipeline.share_requests import AckBatches, ShareRequests
from barnabas.pipeline.share_source.ranges import AcquiredRange
from barnabas.protocol.client.consumer_apis import SHARE_ACKNOWLEDGE, SHARE_FETCH
from barnabas.protocol.decode.share_acknowledge import RENEWAL_VERSION
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.message_parts import NodeEndpoint

_MS_PER_SECOND: Final = 1000


class Refusal(NamedTuple):
    """A partition could not be fetched from; the response may name another leader (KIP-951)."""

    partition: TopicIdPartition
    code: ErrorCode
    leader: Leader
    endpoints: Sequence[NodeEndpoint]


class Fetched(NamedTuple):
    """The result of one fetch. Locks hold until `lock_deadline_ms` at least, by the loop's clock."""

    acquired: dict[TopicIdPartition, list[AcquiredRange]]
    refusals: list[Refusal]
    lock_deadline_ms: int


class LeaderSession:
    """The session of one connection. `end` it in order, or `close` it."""

    def __init__(self, connection: Connection, group_id: str, member_id: str) -> None:
        self.lock_ms = 0
        """The duration of locks in the broker's last response; 0 before the first one."""
        self.can_renew = connection.version(SHARE_ACKNOWLEDGE) >= RENEWAL_VERSION
        self._connection = connection
        self._requests = ShareRequests(group_id, member_id)
        self._loop = asyncio.get_running_loop()
        connection.version(SHARE_FETCH)  # raises, before anything is sent, if the broker has no share groups

    @property
    def is_open(self) -> bool:
        return self._connection.is_open

    @property
    def partitions(self) -> frozenset[TopicIdPartition]:
        """The partitions of the session."""
        return self._requests.session.partitions

    async def fetch(
        self,
        wanted: frozenset[TopicIdPartition],
        record_count: int,
        max_wait_ms: int,
        *,
        is_exact: bool = False,
    ) -> Fetched:
        """Acquires about `record_count` records of these partitions, in whole producer batches.

        With `is_exact` it acquires no more than that (KIP-1206; older brokers acquire whole batches).
        """
        body = self._requests.fetch(wanted, record_count, max_wait_ms, is_exact=is_exact)
        sent_at_ms = self._now_ms()
        reply = await self._connection.start(SHARE_FETCH, body, wait_ms=max_wait_ms)
        check_response(reply.error_code, reply.error_message)
        self.lock_ms = max(reply.acquisition_lock_timeout_ms, 1)
        fetched = Fetched({}, [], sent_at_ms + self.lock_ms)
        for topic_id, results in reply.topics:
            for result in results:
                partition = TopicIdPartition(topic_id, result.partition_index)
                if result.acquired:
                    fetched.acquired[partition] = [AcquiredRange(*bounds) for bounds in result.acquired]
                if result.error_code:
                    code = temporary_code(result.error_code, result.error_message)
                    leader = Leader(result.leader_id, result.leader_epoch)
                    fetched.refusals.append(Refusal(partition, code, leader, reply.node_endpoints))
        return fetched

    async def acknowledge(self, settlement: AckBatches) -> dict[TopicIdPartition, ErrorCode]:
        """The result by partition: the broker accepts all of its acknowledgements, or none."""
        renews = any(
            AcknowledgeType.RENEW in batch.types for batches in settlement.values() for batch in batches
        )
        reply = await self._connection.ask(
            SHARE_ACKNOWLEDGE, self._requests.acknowledge(settlement, renews=renews)
        )
        check_response(reply.error_code, reply.error_message)
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
        """Ends the session: the broker releases its held records at once. Call `close` afterwards.

        Raises `BrokerUnavailableError`.
        """
        if self.lock_ms:
            await self._connection.ask(SHARE_ACKNOWLEDGE, self._requests.end())

    def close(self) -> None:
        """Closes the connection, which ends every lock."""
        self._connection.close()

    def _now_ms(self) -> int:
        return int(self._loop.time() * _MS_PER_SECOND)
