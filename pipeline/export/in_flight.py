"""Brings what was in flight in a share-partition into the same state in another broker (KIP-932).

Start offsets can be set; what a group did above them can only be done again. So before anybody else joins,
one member acquires these records, and accepts and rejects what the group had finished. Records that were
delivered n times and came back are acquired n times and released in between, while those with fewer
deliveries stay locked: at the end each has its own count.

    deliveries wanted   1  3  2  accepted
    acquire             x  x  x  x
    release, acquire       x  x
    release, acquire       x
    release             x  x  x              and accept the last

Exact up to this: a record between these that the source says nothing of was delivered, too, and gets a count
of 1. What the target doesn't hand out, because it locks fewer records at a time, is told.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple
from uuid import uuid4

from barnabas.client.acknowledgements import AcknowledgeType
from barnabas.client.connection import Connection
from barnabas.client.errors import broker_error, error_code
from barnabas.client.share_session import FINAL_EPOCH, ShareSession, ack_topics
from barnabas.pipeline.export.manifest import ACCEPTED, ARCHIVED, AVAILABLE
from barnabas.protocol.client_apis import SHARE_ACKNOWLEDGE, SHARE_FETCH
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

GIVE_UP_SECONDS: Final = 10.0
"""How long a broker may hand out nothing: one that has just opened a share-partition loads it first."""

_MAX_WAIT_MS: Final = 500
_FETCH_BYTES: Final = 1024 * 1024
_RECORD_LIMIT: Final = 1
"""Acquire so many records and not one more (KIP-1206); an older broker rounds up to batches."""
_FINAL: Final = {
    AVAILABLE: AcknowledgeType.RELEASE,
    ACCEPTED: AcknowledgeType.ACCEPT,
    ARCHIVED: AcknowledgeType.REJECT,
}


class Wanted(NamedTuple):
    """The state that records of the target are to have; `end_offset` is exclusive."""

    first_offset: int
    end_offset: int
    state: str
    delivery_count: int


class InFlightReplay:
    """One share-partition of a group that has no members, by offsets of the target."""

    def __init__(self, connection: Connection, group_id: str, partition: TopicIdPartition) -> None:
        """The connection is to the partition's leader, and stays open."""
        self._connection = connection
        self._group_id = group_id
        self._partition = partition
        self._member_id = str(uuid4())
        self._session = ShareSession()

    async def run(self, wanted: Sequence[Wanted], record_count: int) -> int:
        """Brings `record_count` records from the start offset on into the states that are wanted.

        `wanted` ascends and is disjoint. Answers how many of the records the broker didn't hand out. Raises
        `BrokerError` and `BrokerUnavailableError`.
        """
        goals = _Goals(wanted)
        try:
            held = await self._acquire(record_count)
            missing_count = max(0, record_count - len(held))
            deliveries = 1
            while again := [one for one in held if goals.deliveries(one) > deliveries]:
                await self._acknowledge(dict.fromkeys(again, AcknowledgeType.RELEASE))
                missing_count += len(again) - len(await self._acquire(len(again)))
                deliveries += 1
            await self._acknowledge({one: goals.final(one) for one in held})
        finally:
            await self._end()
        return missing_count

    async def _acquire(self, count: int) -> list[int]:
        """The offsets of so many records, ascending; fewer if the broker hands out no more."""
        acquired: list[int] = []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GIVE_UP_SECONDS
        while len(acquired) < count and loop.time() < deadline:
            offsets = await self._fetch(count - len(acquired))
            if offsets:
                acquired += offsets
                deadline = loop.time() + GIVE_UP_SECONDS
        return sorted(acquired)

    async def _fetch(self, count: int) -> list[int]:
        step = self._session.fetch(frozenset({self._partition}))
        body = ShareFetchBody(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=step.share_session_epoch,
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            max_records=count,
            batch_size=count,
            share_acquire_mode=_RECORD_LIMIT,
            is_renew_ack=False,
            topics=ack_topics(step.added, {}),
            forgotten_topics=[],
            without_records=True,
        )
        reply = await self._connection.start(SHARE_FETCH, body, wait_ms=_MAX_WAIT_MS)
        _check(reply.error_code, reply.error_message)
        offsets: list[int] = []
        for _, results in reply.topics:
            for result in results:
                if not error_code(result.error_code).retriable:
                    _check(result.error_code, result.error_message)
                for first_offset, last_offset, _ in result.acquired:
                    offsets += range(first_offset, last_offset + 1)
        return offsets

    async def _acknowledge(self, types: Mapping[int, AcknowledgeType]) -> None:
        if not types:
            return
        batches = {self._partition: list(_batches(types))}
        reply = await self._connection.ask(
            SHARE_ACKNOWLEDGE, self._acknowledgement(self._session.acknowledge(), batches)
        )
        _check(reply.error_code, reply.error_message)
        for _, results in reply.topics:
            for result in results:
                _check(result.error_code, result.error_message)

    async def _end(self) -> None:
        """End the session, and with it whatever is still locked."""
        if self._session.is_open and self._connection.is_open:
            await self._connection.ask(SHARE_ACKNOWLEDGE, self._acknowledgement(FINAL_EPOCH, {}))

    def _acknowledgement(
        self, share_session_epoch: int, batches: Mapping[TopicIdPartition, Sequence[AckBatch]]
    ) -> ShareAcknowledgeBody:
        return ShareAcknowledgeBody(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=share_session_epoch,
            is_renew_ack=False,
            topics=ack_topics((), batches),
        )


class _Goals:
    """What is wanted of each offset."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self._wanted = wanted
        self._firsts = [one.first_offset for one in wanted]

    def deliveries(self, offset: int) -> int:
        """How often the record is to be delivered: what is finished needs one delivery only."""
        found = self._find(offset)
        return found.delivery_count if found is not None and found.state == AVAILABLE else 1

    def final(self, offset: int) -> AcknowledgeType:
        found = self._find(offset)
        return AcknowledgeType.RELEASE if found is None else _FINAL[found.state]

    def _find(self, offset: int) -> Wanted | None:
        slot = bisect_right(self._firsts, offset) - 1
        if slot < 0 or offset >= self._wanted[slot].end_offset:
            return None
        return self._wanted[slot]


def _batches(types: Mapping[int, AcknowledgeType]) -> Iterable[AckBatch]:
    """Runs of offsets that are told the same."""
    ordered = sorted(types.items())
    for _, run in groupby(enumerate(ordered), key=lambda one: (one[1][0] - one[0], one[1][1])):
        offsets = [offset for _, (offset, _) in run]
        yield AckBatch(offsets[0], offsets[-1], [types[offsets[0]]])


def _check(number: int, message: str | None) -> None:
    code = error_code(number)
    if code is not ErrorCode.none:
        raise broker_error(code, message)
