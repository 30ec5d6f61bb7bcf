"""Brings records in flight of a share-partition into the same state in another broker (KIP-932).

Start offsets can be set; the group's work above them can only be repeated. So before any other member joins,
one member acquires these records, and accepts and rejects those that the group had finished. It acquires
records with n deliveries n times and releases them in between, while those with fewer deliveries stay locked:
at the end each record has its own count.

    deliveries wanted   1  3  2  accepted
    acquire             x  x  x  x
    release, acquire       x  x
    release, acquire       x
    release             x  x  x              and accept the last

A record on its way to a dead letter is acquired as often as it had been delivered, and rejected: the target
writes its letter, with this count. A record that was archived may have its letter already. If the target
would write another one, it is acknowledged as a gap, which archives it without a letter.

A record with no delivery waits until it is due, by the header with its delay (`share.delay.header`). Nothing
is repeated for it: the target finds its delay itself. If it is due by then, the target may deliver it.

Four cases are not exact. A record between these without a state in the source is delivered, too, and gets a
count of 1. Records above the target's limit of locks stay new to the group. A record at the target's delivery
limit gets one delivery less and is delivered once more, because the target would archive it otherwise. A
record on its way to a dead letter is archived without it if the target writes none. The result counts the
last three cases. Any other behaviour of the target is an error, after which the restore can be repeated.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple
from uuid import uuid4

from barnabas.client.errors import broker_error, error_code
from barnabas.client.network.connection import Connection
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.manifest import ACCEPTED, ARCHIVED, ARCHIVING, AVAILABLE
from barnabas.pipeline.export.target_limits import TargetLimits
from barnabas.pipeline.share_requests import ShareRequests
from barnabas.protocol.client.consumer_apis import SHARE_ACKNOWLEDGE, SHARE_FETCH
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

GIVE_UP_SECONDS: Final = 10.0
"""How long a broker may deliver no records: it may have to load the share-partition first."""

_MAX_WAIT_MS: Final = 500
_FINAL: Final = {
    AVAILABLE: AcknowledgeType.RELEASE,
    ACCEPTED: AcknowledgeType.ACCEPT,
    ARCHIVED: AcknowledgeType.REJECT,
    ARCHIVING: AcknowledgeType.REJECT,
}
_WITH_COUNT: Final = frozenset({AVAILABLE, ARCHIVING})
"""The states whose number of deliveries is seen later: by members, or in a dead letter."""


class WantedState(NamedTuple):
    """The wanted state of records of the target; `end_offset` is exclusive."""

    first_offset: int
    end_offset: int
    state: str
    delivery_count: int


class Inexact(NamedTuple):
    """The number of records that did not get the wanted states."""

    new_count: int
    """They are above the target's limit of locks, and new to the group."""
    less_delivered_count: int
    """They have one delivery left; with the wanted counts they would have none."""
    lost_letter_count: int = 0
    """They were on their way to dead letters, and the target writes none."""


class InFlightReplay:
    """One share-partition of a group that has no members and nothing in flight, by offsets of the target."""

    def __init__(
        self, connection: Connection, group_id: str, partition: TopicIdPartition, limits: TargetLimits
    ) -> None:
        """The connection is to the partition's leader, and stays open; the limits are the leader's."""
        self._connection = connection
        self._group_id = group_id
        self._partition = partition
        self._limits = limits
        self._requests = ShareRequests(group_id, str(uuid4()))

    async def run(self, wanted: Sequence[WantedState], record_count: int) -> Inexact:
        """Brings `record_count` records from the start offset on into the wanted states.

        `wanted` ascends and is disjoint, and its end is that of these records. `record_count` leaves out
        records without a delivery. Raises `PipelineError` if the target delivers other records, `BrokerError`
        and `BrokerUnavailableError`.
        """
        goals = _Goals(wanted, has_letters=self._limits.has_letters)
        deliveries_max = self._limits.deliveries_max - 1
        try:
            held = await self._acquire(record_count, goals)
            await self._check_first(held, record_count, wanted[-1].end_offset)
            for deliveries in range(1, deliveries_max):
                again = [offset for offset in held if goals.deliveries(offset) > deliveries]
                await self._deliver_again(again, goals)
            await self._acknowledge({offset: goals.final(offset) for offset in held})
        finally:
            await self._end()
        less_delivered = [
            offset
            for offset in held
            if goals.deliveries(offset) > deliveries_max and goals.final(offset) is AcknowledgeType.RELEASE
        ]
        lost_letters = (
            [] if self._limits.has_letters else [offset for offset in held if goals.is_lettered(offset)]
        )
        return Inexact(record_count - len(held), len(less_delivered), len(lost_letters))

    async def _check_first(self, held: Sequence[int], record_count: int, end_offset: int) -> None:
        """Checks that all are held, or the first ones up to the target's limit of locks, with holes."""
        is_all = len(held) == record_count
        is_full = bool(held) and held[-1] - held[0] >= self._limits.locks_max - 1
        if not (is_all or is_full) or held[-1] >= end_offset:
            # A leader with an old start offset for the group learns the new one here, by this error.
            await self._acknowledge(dict.fromkeys(held, AcknowledgeType.RELEASE))
            raise self._unexpected(f"{len(held)} records where there are {record_count}")

    async def _deliver_again(self, offsets: Sequence[int], goals: _Goals) -> None:
        """Releases records that are held, and acquires the same."""
        if not offsets:
            return
        await self._acknowledge(dict.fromkeys(offsets, AcknowledgeType.RELEASE))
        if await self._acquire(len(offsets), goals) != offsets:
            raise self._unexpected("other records than the released ones")

    def _unexpected(self, found: str) -> PipelineError:
        return PipelineError(
            f"The target delivers {found} to the share group {self._group_id}, in partition "
            f"{self._partition.partition} of the topic with id {self._partition.topic_id}. The group must "
            "have no other members during the restore: restore again to go on."
        )

    async def _acquire(self, count: int, goals: _Goals) -> list[int]:
        """Acquires `count` records; returns their offsets, ascending. Fewer if the broker has no more.

        Records that were never delivered may come along. The end of the session releases them.
        """
        acquired: list[int] = []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GIVE_UP_SECONDS
        while len(acquired) < count and loop.time() < deadline:
            offsets = await self._fetch(count - len(acquired))
            if offsets:
                acquired += (offset for offset in offsets if goals.was_delivered(offset))
                deadline = loop.time() + GIVE_UP_SECONDS
        return sorted(acquired)

    async def _fetch(self, count: int) -> list[int]:
        body = self._requests.fetch([self._partition], count, _MAX_WAIT_MS, is_exact=True)
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
        reply = await self._connection.ask(SHARE_ACKNOWLEDGE, self._requests.acknowledge(batches))
        _check(reply.error_code, reply.error_message)
        for _, results in reply.topics:
            for result in results:
                _check(result.error_code, result.error_message)

    async def _end(self) -> None:
        """Ends the session, which releases all locks."""
        if self._requests.session.is_open and self._connection.is_open:
            await self._connection.ask(SHARE_ACKNOWLEDGE, self._requests.end())


class _Goals:
    """The wanted state by offset."""

    def __init__(self, wanted: Sequence[WantedState], *, has_letters: bool) -> None:
        """`has_letters`: the target writes a dead letter for each rejected record."""
        self._wanted = wanted
        self._types = {**_FINAL, ARCHIVED: AcknowledgeType.GAP} if has_letters else _FINAL
        self._firsts = [state.first_offset for state in wanted]

    def deliveries(self, offset: int) -> int:
        """The wanted number of deliveries: a finished record needs only one."""
        found = self._find(offset)
        return found.delivery_count if found is not None and found.state in _WITH_COUNT else 1

    def was_delivered(self, offset: int) -> bool:
        """Whether the record was delivered in the source, or has no state there."""
        found = self._find(offset)
        return found is None or found.state != AVAILABLE or found.delivery_count > 0

    def final(self, offset: int) -> AcknowledgeType:
        found = self._find(offset)
        return AcknowledgeType.RELEASE if found is None else self._types[found.state]

    def is_lettered(self, offset: int) -> bool:
        """Whether the record is on its way to a dead letter."""
        found = self._find(offset)
        return found is not None and found.state == ARCHIVING

    def _find(self, offset: int) -> WantedState | None:
        slot = bisect_right(self._firsts, offset) - 1
        if slot < 0 or offset >= self._wanted[slot].end_offset:
            return None
        return self._wanted[slot]


def _batches(types: Mapping[int, AcknowledgeType]) -> Iterable[AckBatch]:
    """Runs of offsets with the same acknowledgement."""
    ordered = sorted(types.items())
    for _, run in groupby(
        enumerate(ordered), key=lambda numbered: (numbered[1][0] - numbered[0], numbered[1][1])
    ):
        offsets = [offset for _, (offset, _) in run]
        yield AckBatch(offsets[0], offsets[-1], [types[offsets[0]]])


def _check(number: int, message: str | None) -> None:
    code = error_code(number)
    if code is not ErrorCode.none:
        raise broker_error(code, message)
