"""A member of a share group, like Java's share consumer in implicit mode (KIP-932).

It accepts acquired records with its next fetch. The broker sets the interval of heartbeats.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.share_fetch_response import decode_share_fetch_response
from barnabas.protocol.client.share_requests import encode_share_fetch_request
from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.encode.share_fetch import ShareFetchPartitionResult
from benchmarks.load.context import (
    FETCH_MAX_BYTES,
    FETCH_MIN_BYTES,
    FETCH_WAIT_MS,
    Load,
    Topic,
    check,
    connect_to_coordinator,
    send_heartbeat,
)
from benchmarks.load.stamped_records import stamps
from benchmarks.load.wire import BODY_OFFSET, Connection, framed

_VERSION = 2
_RECORDS_MAX = 500
_BATCH_OPTIMIZED = 0
_ACCEPT = b"\x01"
_LEAVING = -1


class ShareMember:
    """Acquires and accepts records until it is cancelled; then call `leave`."""

    def __init__(self, load: Load, group: str, topic: Topic) -> None:
        self._load = load
        self._group = group
        self._topic = topic
        self._member_id = str(uuid4())
        self._epoch = 0
        self._session_epoch = 0
        self.assigned: frozenset[int] = frozenset()
        self._in_session: frozenset[int] = frozenset()
        self._is_assigned = asyncio.Event()
        self._acquired: dict[int, list[AckBatch]] = {}

    async def run(self) -> None:
        self._coordinator = await connect_to_coordinator(self._load.address, self._group)
        self._leader = await Connection.open(self._load.address)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_heartbeats())
            while True:
                await self._is_assigned.wait()
                await self._fetch()

    async def leave(self) -> None:
        """Accept the held records, end the session, and leave the group."""
        self._session_epoch = _LEAVING
        await self._leader.send(self._request(self._acquired))
        self._epoch = _LEAVING
        await self._heartbeat()

    async def _send_heartbeats(self) -> None:
        response = await self._heartbeat(subscribed_topic_names=[self._topic.name])
        while True:
            if response.assignment is not None:
                self._assign(response.assignment.topic_partitions)
            await asyncio.sleep(response.heartbeat_interval.total_seconds())
            response = await self._heartbeat()

    async def _heartbeat(self, **values: Any) -> Any:
        response = await send_heartbeat(
            self._load,
            self._coordinator,
            "share_group_heartbeat",
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            **values,
        )
        self._epoch = response.member_epoch
        return response

    def _assign(self, topics: Iterable[Any]) -> None:
        self.assigned = frozenset(index for topic in topics for index in topic.partitions)
        if self.assigned:
            self._is_assigned.set()
        else:
            self._is_assigned.clear()

    async def _fetch(self) -> None:
        """Accept the last records, and acquire the next."""
        accepted, self._acquired = self._acquired, {}
        answer = self._leader.send(self._request({} if self._session_epoch == 0 else accepted))
        self._in_session = self.assigned
        self._session_epoch += 1
        response = decode_share_fetch_response(_VERSION, await answer, BODY_OFFSET)
        check(response.error_code, "share_fetch")
        for topic in response.topics:
            for partition in topic.partitions:
                self._take(partition)

    def _request(self, accepted: Mapping[int, list[AckBatch]]) -> bytes:
        named = (self.assigned - self._in_session) | accepted.keys()
        forgotten = sorted(self._in_session - self.assigned)
        topic_id = self._topic.topic_id
        partitions = [AckPartition(index, accepted.get(index, [])) for index in sorted(named)]
        body = ShareFetchBody(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._session_epoch,
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=FETCH_MIN_BYTES,
            max_bytes=FETCH_MAX_BYTES,
            max_records=_RECORDS_MAX,
            batch_size=_RECORDS_MAX,
            share_acquire_mode=_BATCH_OPTIMIZED,
            is_renew_ack=False,
            topics=[AckTopic(topic_id, partitions)] if partitions else [],
            forgotten_topics=[(topic_id, forgotten)] if forgotten else [],
        )
        return framed(ApiKey.SHARE_FETCH, _VERSION, encode_share_fetch_request(_VERSION, body))

    def _take(self, partition: ShareFetchPartitionResult) -> None:
        check(partition.error_code, "share_fetch")
        check(partition.acknowledge_error_code, "acknowledgement")
        if not partition.acquired:
            return
        self._acquired[partition.partition_index] = [
            AckBatch(first, last, _ACCEPT) for first, last, _ in partition.acquired
        ]
        for records in partition.records:
            for offset, stamp in stamps(records):
                if any(first <= offset <= last for first, last, _ in partition.acquired):
                    self._load.samples.note("share_delivery", stamp)
